//! Raw HTTP, for requests that no client library sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::harness::{DEADLINE, Server};

pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.authority()).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// Sends the head as it stands (lines parted by `\n`, `Host` and `Connection: close` added) and a body.
pub(crate) fn exchange(server: &Server, head: &str, body: &[u8]) -> RawAnswer {
    let mut stream = connect(server);
    let host = if head.to_ascii_lowercase().contains("\nhost:") {
        String::new()
    } else {
        format!("\r\nHost: {}", server.authority())
    };
    let head = head.trim_end().replace('\n', "\r\n");
    let head = format!("{head}{host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // A server that has already refused may have closed; what counts is its answer.
    stream.write_all(body).ok();
    answer(stream)
}

/// Reads to the connection's end, or to a reset after an early refusal.
pub(crate) fn answer(mut stream: TcpStream) -> RawAnswer {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    while let Ok(n) = stream.read(&mut piece) {
        if n == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..n]);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    RawAnswer { status: status.unwrap_or(0), head: head.to_owned(), body: body.to_owned() }
}

/// Reads one answer that has a length, and leaves the connection open.
pub(crate) fn next_answer(stream: &mut TcpStream) -> RawAnswer {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
        bytes.extend_from_slice(&byte);
    }
    let head = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let named =
        |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok();
    let mut body = vec![0; head.lines().find_map(named).unwrap_or(0)];
    stream.read_exact(&mut body).expect("a whole body");
    let body = String::from_utf8_lossy(&body).into_owned();
    RawAnswer { status: status.unwrap_or(0), head, body }
}

impl RawAnswer {
    /// Whether it says that the connection is closed after it.
    pub(crate) fn closes(&self) -> bool {
        self.head.to_ascii_lowercase().contains("\r\nconnection: close")
    }

    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        let code = format!("\"code\":\"{code}\"");
        let body = self.body.replace("\": \"", "\":\"");
        assert!(body.contains(&code), "{}\n{}", self.head, self.body);
    }
}
