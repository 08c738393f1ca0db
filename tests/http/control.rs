//! The control socket: private to its owner, strict about requests, gone with the server.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Server;

fn connect(server: &Server) -> UnixStream {
    let stream = UnixStream::connect(server.data().join("control.sock")).expect("it answers");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream
}

/// All lines of the answer to a request line.
fn answer(server: &Server, request: &str) -> Vec<Value> {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).expect("written");
    let lines = BufReader::new(stream).lines();
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect()
}

#[tokio::test]
async fn the_socket_lives_with_its_server_and_serves_its_owner_only() {
    let mut server = Server::start();
    let path = server.data().join("control.sock");
    let found = fs::metadata(&path).expect("it is there");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(server.stop().success());
    assert!(!path.exists());
}

#[tokio::test]
async fn a_killed_servers_socket_is_replaced_by_the_next_one() {
    let mut server = Server::start();
    server.made("s").await;
    server.kill();
    assert!(server.data().join("control.sock").exists());
    server.start_again();
    let told = answer(&server, "{\"sessions\":{}}\n");
    assert_eq!(told, [json!({"session":"s"}), json!({"done":{"sessions":1}})]);
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_a_word_and_a_sentence() {
    let server = Server::start();
    for request in ["\n", "[]\n", "{}\n", "{\"x\":{}}\n", "{\"sessions\":{\"x\":1}}\n", "\u{0}\n"] {
        let told = answer(&server, request);
        assert_eq!(told[0]["failed"]["code"], "invalid-field", "{request:?}: {told:?}");
    }
    let told = answer(&server, "{\"export\":{\"session\":\"a/b\"}}\n");
    assert_eq!(told[0]["failed"]["code"], "invalid-field");
    let told = answer(&server, "{\"export\":{\"session\":\"absent\"}}\n");
    let expected =
        json!({"failed":{"code":"session-not-found","detail":"session 'absent' does not exist"}});
    assert_eq!(told, [expected]);
}

#[tokio::test]
async fn a_request_line_has_a_bound() {
    let server = Server::start();
    let mut stream = connect(&server);
    // It may be refused before all of it was sent.
    stream.write_all(&vec![b' '; 1 << 20]).ok();
    let mut told = String::new();
    stream.read_to_string(&mut told).ok();
    assert!(told.contains("\"request-timeout\"") && told.contains("65536 bytes"), "{told}");
    assert_eq!(answer(&server, "{\"sessions\":{}}\n").len(), 1);
}

#[tokio::test]
async fn whoever_says_nothing_is_ended_with_the_server() {
    let mut server = Server::start();
    let silent: Vec<UnixStream> = (0..20).map(|_| connect(&server)).collect();
    server.get("/healthz").await.is(200);
    assert!(server.stop().success());
    for mut stream in silent {
        let mut told = Vec::new();
        stream.read_to_end(&mut told).ok();
        assert!(told.is_empty());
    }
}
