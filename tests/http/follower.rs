//! Reader of server-sent events over connections that break anywhere, even within a frame.
//!
//! As browsers do, it takes a frame once its blank line has come; what was torn is gone with its connection.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::time::Duration;

use reqwest::{Method, Response};
use serde::Deserialize;
use tokio::time::timeout;

use crate::harness::{Board, DEADLINE};

/// A stream has no end of its own: a test's deadline is between two frames.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// A frame's fields; one without data says only how far the stream has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frame {
    fn add(&mut self, line: &str) {
        match line.split_once(": ") {
            Some(("id", id)) => self.id = Some(id.parse().expect("a revision")),
            Some(("event", event)) => event.clone_into(&mut self.event),
            Some(("data", data)) => data.clone_into(&mut self.data),
            Some(_) | None => panic!("no line of a frame: {line}"),
        }
    }

    pub(crate) fn commit(&self) -> Commit {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// What an event's data says, as far as the tests that follow a session need it.
#[derive(Debug, Deserialize)]
pub(crate) struct Commit {
    pub(crate) revision: u64,
    pub(crate) changes: Vec<Change>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) log: String,
    #[serde(default)]
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) item: Item,
}

/// An item that says who wrote it, and which of his it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    pub(crate) w: u64,
    pub(crate) n: u64,
}

/// The frames of a text that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    line: Vec<u8>,
    frame: Frame,
    whole: VecDeque<Frame>,
}

impl Frames {
    pub(crate) fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            piece.read_until(b'\n', &mut self.line).expect("a line");
            let Some(line) = self.line.strip_suffix(b"\n") else { return };
            if line.is_empty() {
                self.whole.push_back(std::mem::take(&mut self.frame));
            } else {
                self.frame.add(std::str::from_utf8(line).expect("UTF-8"));
            }
            self.line.clear();
        }
    }

    pub(crate) fn next(&mut self) -> Option<Frame> {
        self.whole.pop_front()
    }

    /// Whether a frame has begun and not ended.
    pub(crate) fn is_torn(&self) -> bool {
        !self.line.is_empty() || self.frame != Frame::default()
    }
}

/// One connection that follows a session.
pub(crate) struct Follower {
    response: Response,
    frames: Frames,
    left: usize,
}

impl Follower {
    /// Opens a stream; nothing where there is no server.
    pub(crate) async fn open(board: &Board, query: &str, last: Option<u64>) -> Option<Self> {
        let mut request = board.to(Method::GET, &format!("events{query}")).timeout(STREAM_MAX);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = timeout(DEADLINE, request.send()).await.expect("an answer in time").ok()?;
        assert_eq!(response.status(), 200, "{response:?}");
        Some(Self { response, frames: Frames::default(), left: usize::MAX })
    }

    /// Closes the connection after so many bytes more.
    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.left = bytes;
        self
    }

    /// The next frame, or nothing at the end of the connection, whoever closed it.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.frames.next() {
                return Some(frame);
            }
            if self.left == 0 {
                return None;
            }
            let piece = timeout(DEADLINE, self.response.chunk()).await.expect("a frame in time");
            let piece = piece.ok()??;
            let taken = piece.len().min(self.left);
            self.frames.take(&piece[..taken]);
            self.left -= taken;
        }
    }

    /// Whether it ended within a frame.
    pub(crate) fn is_torn(&self) -> bool {
        self.frames.is_torn()
    }
}
