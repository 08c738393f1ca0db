//! Connections that share the server: one that said all it has to say, and many that read at once.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use tokio::sync::Barrier;

use crate::harness::Server;
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
