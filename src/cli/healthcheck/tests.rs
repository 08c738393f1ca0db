//! Tests of `healthcheck` against responding and silent servers.

use std::{net::TcpListener, thread};

use super::*;

/// Answers one connection with these bytes.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        stream.write_all(answer.as_bytes()).expect("written");
    });
    format!("http://{address}/readyz")
}

#[test]
fn a_200_is_healthy_and_nothing_else() {
    assert!(check(answering("HTTP/1.1 200 OK\r\n\r\n")).is_ok());
    for answer in ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "200", ""] {
        let error = check(answering(answer)).expect_err(answer);
        assert!(matches!(error, Unhealthy::Status { .. }), "{error}");
    }
}

#[test]
fn nobody_there_is_unhealthy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = url_of(listener.local_addr().expect("an address"));
    drop(listener);
    let error = check(url).expect_err("refused");
    assert!(matches!(error, Unhealthy::Unreachable { .. }), "{error}");
}

#[test]
fn the_address_follows_the_one_to_listen_on() {
    for (listen, url) in [
        ("127.0.0.1:8733", "http://127.0.0.1:8733/readyz"),
        ("0.0.0.0:80", "http://127.0.0.1:80/readyz"),
        ("[::]:80", "http://[::1]:80/readyz"),
        ("10.0.0.7:80", "http://10.0.0.7:80/readyz"),
    ] {
        assert_eq!(url_of(listen.parse().expect("an address")), url);
    }
}

#[test]
fn only_a_plain_url_is_asked() {
    assert_eq!(parts("http://a:1"), Some(("a:1", "/")));
    assert_eq!(parts("http://[::1]/x?y"), Some(("[::1]", "/x?y")));
    for url in ["https://a/", "http:///x", "a/b", "http://a/\r\nX: y"] {
        assert_eq!(parts(url), None, "{url}");
    }
}
