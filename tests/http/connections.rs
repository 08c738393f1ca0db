//! Connections: half closed, idle, and many at once.

use std::io::{ErrorKind, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Barrier;
use tokio::time::timeout;

use crate::harness::{DEADLINE, Server};
use crate::raw::{answer, connect, next_answer};

const READERS: usize = 8;
const TRAJECTORIES: usize = 30_000;
/// Few enough to take no noticeable part of the time that the long answers take.
const SHORT_ANSWERS: usize = 10;

#[tokio::test]
async fn a_client_that_closed_its_sending_side_is_answered() {
    let server = Server::start();
    let board = server.made("s").await;
    for n in 1..=20 {
        for (line, headers, body, status) in [
            (
                "POST /v1/sessions/s/requests",
                "Content-Type: application/json\r\n",
                "{\"n\":1}",
                201,
            ),
            ("GET /v1/sessions/s/requests", "", "", 200),
            ("GET /v1/sessions/s/requests/0", "", "", 404),
        ] {
            let mut stream = connect(&server);
            let (host, length) = (server.authority(), body.len());
            let head = format!(
                "{line} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let answer = answer(stream);
            assert_eq!(answer.status, status, "{line}: {}", answer.head);
            assert!(answer.body.ends_with("}\n"), "{line}: {}", answer.body);
        }
        assert_eq!(board.get("requests").await.json()["count"], n);
    }
}

#[tokio::test]
async fn an_idle_connection_keeps_nobody_out() {
    let server = Server::start_with(&["--connections-max", "1"]);
    let asked = || {
        let mut stream = connect(&server);
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_eq!(next_answer(&mut stream).status, 200);
        stream
    };
    let mut idle = asked();
    for _ in 0..3 {
        let newcomer = asked();
        assert_eq!(answer(idle).head, "", "the idle connection is closed");
        idle = newcomer;
    }
}

/// A connection from this address, over which this was sent.
async fn connected_from(server: &Server, address: &str, said: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(server.authority().parse().unwrap()).await.unwrap();
    stream.write_all(said).await.unwrap();
    stream
}

async fn is_answered(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    let read = timeout(DEADLINE, stream.read(&mut bytes)).await.unwrap().unwrap();
    assert!(bytes[..read].starts_with(b"HTTP/1.1 200 "), "{:?}", &bytes[..read]);
}

/// How many of them the server has closed.
fn closed(streams: &[TcpStream]) -> usize {
    let is_closed = |stream: &&TcpStream| match stream.try_read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    };
    streams.iter().filter(is_closed).count()
}

const HEALTHZ: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn connections_without_a_request_keep_no_other_address_out() {
    let server = Server::start_with(&["--connections-max", "8"]);
    for said in [&b""[..], b"GET /healthz HTTP/1.1\r\nX-"] {
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(connected_from(&server, "127.0.0.2", said).await);
        }
        for newcomers in 1..=3 {
            is_answered(&mut connected_from(&server, "127.0.0.3", HEALTHZ).await).await;
            assert!(closed(&silent) <= newcomers, "all of them had to end for a newcomer");
        }
    }
}

#[tokio::test]
async fn heads_that_dawdle_keep_nobody_out() {
    let server = Server::start_with(&["--connections-max", "2"]);
    let silent = connected_from(&server, "127.0.0.1", b"").await;
    let dawdling = connected_from(&server, "127.0.0.1", b"GET ").await;
    is_answered(&mut connected_from(&server, "127.0.0.1", HEALTHZ).await).await;
    assert_eq!(closed(&[silent, dawdling]), 1);
}

#[tokio::test]
async fn the_address_with_most_idle_connections_yields_first() {
    let server = Server::start_with(&["--connections-max", "4"]);
    let mut rare = connected_from(&server, "127.0.0.1", HEALTHZ).await;
    is_answered(&mut rare).await;
    let mut many = Vec::new();
    for _ in 0..3 {
        let mut stream = connected_from(&server, "127.0.0.2", HEALTHZ).await;
        is_answered(&mut stream).await;
        many.push(stream);
    }
    is_answered(&mut connected_from(&server, "127.0.0.3", HEALTHZ).await).await;
    assert_eq!(closed(&many), 1);
    rare.write_all(HEALTHZ).await.unwrap();
    is_answered(&mut rare).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_leave_room_for_short_ones() {
    let server = Server::start();
    let board = server.board("s");
    let text = "a step and another ".repeat(55);
    let items: Vec<String> =
        (0..TRAJECTORIES).map(|n| format!("{{\"step\":{n},\"text\":\"{text}\"}}")).collect();
    let body = format!("{{\"trajectories\":[{}]}}", items.join(","));
    board.put("blackboard", &body).await.succeeded();
    let alone = board.get("prompt").await;
    let prompt = Arc::new(alone.is(200).body().to_vec());
    assert!(prompt.len() > 30 << 20, "{} bytes", prompt.len());

    let (begun, ended) = (Arc::new(Barrier::new(READERS + 1)), Arc::new(AtomicUsize::new(0)));
    let readers = [(); READERS].map(|()| {
        // With keys of its own it is made while it is sent; the usual one lies there, and may well be sent before
        // the others begin.
        let request = board.to(Method::GET, "prompt?keys=step,text");
        let (prompt, begun, ended) = (Arc::clone(&prompt), Arc::clone(&begun), Arc::clone(&ended));
        tokio::spawn(async move {
            let response = request.send().await.unwrap();
            begun.wait().await;
            let read = response.bytes().await.unwrap();
            ended.fetch_add(1, Ordering::SeqCst);
            assert!(read == *prompt, "{} bytes in place of {}", read.len(), prompt.len());
        })
    });
    // Every head is here, and each body is far longer than what may wait between the two sides.
    begun.wait().await;
    for _ in 0..SHORT_ANSWERS {
        server.get("/healthz").await.is(200);
    }
    let ended = ended.load(Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(ended, 0, "long answers ended before short ones that they share the server with");
}
