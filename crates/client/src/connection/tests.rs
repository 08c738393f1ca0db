//! Tests of exchanges with servers that refuse, keep silent, break off, and say too much.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use hyper::header::LOCATION;

use super::*;

/// What comes at once comes within this, on a slow machine too.
const SILENCE: Duration = Duration::from_secs(2);

/// Answers one connection with these bytes, then waits for its end, which it tells.
fn answering(answer: &'static [u8]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/team", listener.local_addr().unwrap());
    let (ended, end) = channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = head(&mut stream);
        stream.write_all(answer).unwrap();
        let is_cut = answer.ends_with(b"cut");
        if !is_cut {
            stream.read_to_end(&mut Vec::new()).ok();
        }
        ended.send(head).ok();
    });
    (url, end)
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    String::from_utf8(head).unwrap()
}

async fn sent(url: &str) -> Result<Answer, Error> {
    sent_within(url, SILENCE).await
}

async fn sent_within(url: &str, silence: Duration) -> Result<Answer, Error> {
    let token: Token = "bb_secret".parse().unwrap();
    let limits = Limits { connect: Duration::from_secs(5), silence };
    let client = Client::new(url.parse().unwrap(), Some(&token), &Roots::System, limits).unwrap();
    assert!(!format!("{client:?}").contains("secret"));
    let request = Client::post(&client.base().join("/mcp?session=a").unwrap());
    client.send(request.body(Bytes::new()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_the_path_and_the_token() {
    let (url, end) = answering(b"HTTP/1.1 307 \r\nLocation: /b\r\nContent-Length: 2\r\n\r\nab");
    let answer = sent(&url).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.header(LOCATION.as_str())), (307, "/b"));
    assert_eq!(answer.bytes(2).await.unwrap(), "ab");
    let head = end.recv().unwrap();
    assert!(head.starts_with("POST /team/mcp?session=a HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer bb_secret\r\n"), "{head}");
    assert!(head.contains("user-agent: blackboard/"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_read_up_to_its_bound() {
    let answer =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let (url, _end) = answering(answer);
    assert_eq!(sent(&url).await.unwrap().bytes(3).await.unwrap(), "abc");
    let (url, end) = answering(answer);
    let refused = sent(&url).await.unwrap().bytes(2).await;
    assert!(matches!(refused, Err(Error::TooLong { max: 2 })));
    end.recv().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_a_request_and_its_connection() {
    for answer in [
        b"".as_slice(),
        b"HTTP/1.1 200 OK\r\nConten",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
    ] {
        let (url, end) = answering(answer);
        let short = Duration::from_millis(200);
        let read = async { sent_within(&url, short).await?.bytes(9).await };
        assert!(matches!(read.await, Err(Error::Silent(_))));
        end.recv().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_off_is_an_error() {
    for answer in [
        b"cut".as_slice(),
        b"HTTP/1.1 200 OK\r\ncut",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut",
        b"220 smtp.example.org ESMTP\r\ncut",
    ] {
        let (url, _end) = answering(answer);
        let read = async { sent(&url).await?.bytes(9).await };
        assert!(matches!(read.await, Err(Error::Broken(_))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        let (mut stream, _) = TcpListener::bind(address).unwrap().accept().unwrap();
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 204 \r\n\r\n").unwrap();
    });
    assert_eq!(sent(&format!("http://{address}")).await.unwrap().status().as_u16(), 204);
    server.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_host_is_named_at_once() {
    let refused = sent("http://host.invalid").await.unwrap_err();
    assert!(matches!(refused, Error::Connect(ConnectError::Unreachable(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_they_are_sent() {
    let (url, _end) = answering(
        b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n: a\n\ndata: a\n\ndata: b\n\n\
          data: c\n",
    );
    let answer = sent(&url).await.unwrap();
    assert_eq!(answer.media_type(), "text/event-stream");
    let mut events = answer.events();
    for expected in ["a", "b"] {
        assert_eq!(events.next().await.unwrap().unwrap().data, expected);
    }
    assert!(matches!(events.next().await, Err(Error::Silent(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_its_reason() {
    let (url, _end) = answering(
        b"HTTP/1.1 401 \r\nContent-Type: application/problem+json\r\nContent-Length: 37\r\n\r\n\
          {\"code\":\"unauthorized\",\"detail\":\"why\"}",
    );
    let problem = sent(&url).await.unwrap().problem().await;
    assert_eq!(problem.status.as_u16(), 401);
    let (url, _end) = answering(b"HTTP/1.1 502 \r\nContent-Type: text/html\r\n\r\n<html>");
    let problem = sent(&url).await.unwrap().problem().await;
    assert_eq!((problem.status.as_u16(), problem.detail), (502, None));
}
