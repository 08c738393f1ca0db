//! SIGTERM: streams and waits end with whole answers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{DEADLINE, Server};
use crate::raw::{RawAnswer, answer, connect};

const STREAMS: usize = 100;
const POLLS: usize = 100;

/// A connection on which that was asked.
fn asked(server: &Server, tail: &str, headers: &str) -> TcpStream {
    let mut stream = connect(server);
    let host = server.authority();
    let head = format!("GET /v1/sessions/s{tail} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    stream
}

/// A stream that has brought its first frame.
fn followed(server: &Server) -> TcpStream {
    let mut stream = asked(server, "/events", "Accept: text/event-stream\r\n");
    let mut text = Vec::new();
    while !text.ends_with(b"\n\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a first frame");
        text.extend(byte);
    }
    stream
}

/// Whether the server has read all that was sent to it, as Linux tells.
fn has_read_all(server: &Server) -> bool {
    let port: u16 = server.authority().rsplit(':').next().unwrap().parse().unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    table.lines().skip(1).all(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let own = fields[1].ends_with(&format!(":{port:04X}"));
        !own || fields[4].ends_with(":00000000")
    })
}

/// Those who wait: for a tag, for an entry, for events, for a path, for a session.
fn polls(server: &Server, tag: &str) -> Vec<(&'static [u16], TcpStream)> {
    let known = format!("If-None-Match: {tag}\r\n");
    let json = "Accept: application/json\r\n";
    let kinds: [(&[u16], &str, &str); 5] = [
        (&[304], "/state/x?wait=60s", &known),
        (&[200], "/trajectories?after=0&wait=60s", ""),
        (&[200], "/events?wait=60s", json),
        (&[412], "/state/y?until=exists&wait=60s", ""),
        (&[412], "?until=absent&wait=60s", ""),
    ];
    let all = kinds.iter().cycle().take(POLLS);
    all.map(|(statuses, tail, headers)| (*statuses, asked(server, tail, headers))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_streams_and_polls_with_whole_answers() {
    let mut server = Server::start();
    let tag = server.board("s").put("state/x", "1").await.is(201).etag();
    let streams: Vec<TcpStream> = (0..STREAMS).map(|_| followed(&server)).collect();
    let polls = polls(&server, &tag);
    let start = Instant::now();
    while !has_read_all(&server) {
        assert!(start.elapsed() < DEADLINE, "the server does not read");
        thread::sleep(Duration::from_millis(5));
    }

    server.signal(Signal::TERM);
    for mut stream in streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("no reset");
        assert_eq!(rest, b"0\r\n\r\n", "{}", String::from_utf8_lossy(&rest));
    }
    for (statuses, poll) in polls {
        let RawAnswer { status, head, body } = answer(poll);
        assert!(statuses.contains(&status), "{head}\n{body}");
        assert!(status == 304 || body.ends_with("}\n"), "{head}\n{body}");
    }
    assert!(server.wait().success());
}
