//! Ten thousand idle streams: cheap to hold, and all reached by an event.
//!
//! If the limit of open files is too low, the test opens fewer and says so.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::harness::{DEADLINE, Server};

const STREAMS: usize = 10_000;

/// Files of the other tests in this process, and of the server besides its connections.
const OTHER_FILES: u64 = 1_000;

/// What all streams together may take of the server's memory.
const GROWTH_MAX: u64 = 200 << 20;

/// So many connections are opened at the same time.
const OPENERS: usize = 64;

/// A number of `/proc/PID/status` that is given in kB: `VmRSS`, what a process takes of the memory, or
/// `VmHWM`, the most that it took so far.
pub(crate) fn memory(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kb = line.and_then(|rest| rest.trim().strip_suffix(" kB")).expect("a size");
    kb.parse::<u64>().expect("a number") << 10
}

/// How many streams fit into the limit of open files, which is raised as far as it goes.
fn fitting() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit can be raised to the hard one");
    let files = limit.maximum.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
    let fitting = usize::try_from(files).unwrap_or(usize::MAX).min(STREAMS);
    if fitting < STREAMS {
        eprintln!(
            "!!! ONLY {fitting} STREAMS OF {STREAMS}: the hard limit of open files is too low"
        );
    }
    fitting
}

/// A connection, and what it has brought.
struct Stream {
    connection: TcpStream,
    text: String,
}

impl Stream {
    /// Open, and followed from now on.
    async fn open(authority: &str) -> Self {
        let connection = TcpStream::connect(authority).await.expect("a connection");
        let mut stream = Self { connection, text: String::new() };
        let head = format!(
            "GET /v1/sessions/s/events HTTP/1.1\r\nHost: {authority}\r\nAccept: text/event-stream\r\n\r\n"
        );
        stream.connection.write_all(head.as_bytes()).await.expect("the head is sent");
        stream.until("id: 1\n\n").await;
        stream
    }

    async fn until(&mut self, end: &str) {
        let mut piece = [0; 1024];
        while !self.text.contains(end) {
            let read = timeout(DEADLINE, self.connection.read(&mut piece)).await;
            let read = read.expect("in time").expect("a piece");
            assert!(read > 0, "the stream ends: {}", self.text);
            self.text.push_str(std::str::from_utf8(&piece[..read]).expect("UTF-8"));
        }
    }
}

async fn opened(server: &Server, streams: usize) -> Vec<Stream> {
    let mut openers = JoinSet::new();
    for opener in 0..OPENERS {
        let authority = server.authority().to_owned();
        openers.spawn(async move {
            let mut own = Vec::new();
            for _ in (opener..streams).step_by(OPENERS) {
                own.push(Stream::open(&authority).await);
            }
            own
        });
    }
    openers.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_streams_are_cheap_and_all_get_an_event() {
    let streams = fitting();
    let max = (streams + 100).to_string();
    let server = Server::start_with(&["--connections-max", &max, "--streams-max", &max]);
    let board = server.made("s").await;
    let before = memory(&server, "VmRSS");
    let mut opened = opened(&server, streams).await;
    assert_eq!(opened.len(), streams);
    let idle = memory(&server, "VmRSS").saturating_sub(before);

    assert_eq!(board.post("trajectories", r#"{"n":1}"#).await.is(201).revision(), 2);
    for stream in &mut opened {
        stream.until("\"changes\":[").await;
        stream.until("}\n\n").await;
        assert_eq!(stream.text.matches("id: 2\nevent: appended\n").count(), 1, "{}", stream.text);
    }
    let told = memory(&server, "VmRSS").saturating_sub(before);
    let growth_max = GROWTH_MAX * streams as u64 / STREAMS as u64;
    eprintln!(
        "{streams} streams: {} KiB idle, {} KiB after an event, of {} KiB",
        idle >> 10,
        told >> 10,
        growth_max >> 10
    );
    assert!(idle <= growth_max && told <= growth_max, "{idle} and {told} bytes of {growth_max}");
}
