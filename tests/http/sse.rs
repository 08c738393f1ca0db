//! Reader of server-sent events, frame by frame.

use std::collections::VecDeque;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::time::timeout;

use crate::harness::{Board, DEADLINE};

const COMMENT: &[u8] = b":\n";

/// A frame: what stands in its fields, empty where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frame {
    fn read(text: &str) -> Self {
        let mut frame = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            match name {
                "id" => frame.id = value.to_owned(),
                "event" => frame.event = value.to_owned(),
                "data" => frame.data = value.to_owned(),
                "" => {}
                _ => panic!("no field of a frame: {line}"),
            }
        }
        frame
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The event's revision, which is its id too.
    #[track_caller]
    pub(crate) fn revision(&self) -> u64 {
        let data = self.json();
        assert_eq!(self.id, data["revision"].to_string(), "{self:?}");
        self.id.parse().unwrap_or_else(|_| panic!("no revision: {self:?}"))
    }
}

/// A stream of events.
pub(crate) struct Stream {
    response: Response,
    read: Vec<u8>,
    frames: VecDeque<Frame>,
}

impl Stream {
    /// Opens a stream, which must be one.
    pub(crate) async fn open(request: RequestBuilder) -> Self {
        let response =
            timeout(DEADLINE, request.send()).await.expect("in time").expect("an answer");
        assert_eq!(response.status(), 200, "{response:?}");
        let header = |name: &str| response.headers().get(name).map_or("", |v| v.to_str().unwrap());
        assert_eq!(header("content-type"), "text/event-stream");
        assert_eq!(header("cache-control"), "no-store, no-transform");
        assert_eq!(header("x-accel-buffering"), "no");
        assert_eq!(header("content-encoding"), "");
        Self { response, read: Vec::new(), frames: VecDeque::new() }
    }

    /// Opens a session's events with this query.
    pub(crate) async fn of(board: &Board, query: &str) -> Self {
        Self::open(board.to(Method::GET, &format!("events{query}"))).await
    }

    /// The revision that the answer names.
    pub(crate) fn revision(&self) -> u64 {
        let revision = self.response.headers().get("blackboard-revision").expect("a revision");
        revision.to_str().unwrap().parse().unwrap()
    }

    /// Receives bytes; false at the end.
    async fn receive(&mut self) -> bool {
        let chunk = timeout(DEADLINE, self.response.chunk()).await.expect("a frame in time");
        let chunk = chunk.expect("the stream goes on");
        self.read.extend_from_slice(chunk.as_deref().unwrap_or_default());
        chunk.is_some()
    }

    /// Reads a comment, which comes next. It is a line, not a frame.
    pub(crate) async fn comment(&mut self) {
        assert_eq!(self.frames.pop_front(), None);
        while self.read.len() < COMMENT.len() {
            assert!(self.receive().await, "the stream goes on");
        }
        let rest = self.read.split_off(COMMENT.len());
        assert_eq!(std::mem::replace(&mut self.read, rest), COMMENT);
    }

    /// The next frame, whatever it has; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            if !self.receive().await {
                assert!(self.read.is_empty(), "the stream ends within a frame");
                return None;
            }
            while let Some(end) = self.read.windows(2).position(|two| two == b"\n\n") {
                let rest = self.read.split_off(end + 2);
                let text = String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap();
                self.frames.push_back(Frame::read(&text));
            }
        }
    }

    /// The next event; frames that only say how far the stream has read are passed over.
    pub(crate) async fn event(&mut self) -> Frame {
        loop {
            let frame = self.frame().await.expect("the stream goes on");
            if !frame.event.is_empty() {
                return frame;
            }
        }
    }

    /// The next event's revision.
    pub(crate) async fn next_revision(&mut self) -> u64 {
        self.event().await.revision()
    }

    /// Reads to the end.
    pub(crate) async fn end(&mut self) {
        while self.frame().await.is_some() {}
    }
}
