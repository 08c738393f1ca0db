//! Connections cut within an event: the reader resumes after its last whole event and misses nothing.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::follower::{Follower, Frame, Frames};
use crate::harness::{Board, Server};

const ENDS: &str = r#"{"w":99,"n":0}"#;

/// As many items of a KiB each as one array.
fn batch(items: u64) -> String {
    let text = "x".repeat(1000);
    let items: Vec<Value> = (0..items).map(|n| json!({"w":0,"n":n,"text":text})).collect();
    Value::from(items).to_string()
}

/// As many puts of a KiB each as one transaction.
fn transaction(puts: u64) -> String {
    let text = "x".repeat(1000);
    let put = |n| json!({"put":format!("many/{n}"),"value":text});
    json!({ "then": (0..puts).map(put).collect::<Vec<_>>() }).to_string()
}

/// All that a connection brings that nobody cuts, up to the last commit: the bytes and their frames.
async fn uncut(board: &Board) -> (Vec<u8>, Vec<Frame>) {
    let mut response = board.to(Method::GET, "events?after=0").send().await.unwrap();
    let (mut bytes, mut frames, mut whole) = (Vec::new(), Frames::default(), Vec::new());
    while !whole.last().is_some_and(|frame: &Frame| frame.data.contains(ENDS)) {
        let piece = response.chunk().await.unwrap().expect("the stream goes on");
        bytes.extend_from_slice(&piece);
        frames.take(&piece);
        whole.extend(std::iter::from_fn(|| frames.next()));
    }
    (bytes, whole)
}

/// What a connection brings before it breaks after so many bytes, and what the next one brings.
async fn cut(board: &Board, bytes: usize) -> Vec<Frame> {
    let first = Follower::open(board, "?after=0", None).await;
    let mut first = first.expect("a server").cut_after(bytes);
    let (mut last, mut events) = (None, Vec::new());
    while let Some(frame) = first.frame().await {
        last = frame.id;
        events.extend((!frame.data.is_empty()).then_some(frame));
    }
    let query = if last.is_none() { "?after=0" } else { "" };
    let mut second = Follower::open(board, query, last).await.expect("a server");
    while !events.last().is_some_and(|event: &Frame| event.data.contains(ENDS)) {
        let frame = second.frame().await.expect("the stream goes on");
        events.extend((!frame.data.is_empty()).then_some(frame));
    }
    events
}

/// Within each frame near its begin and its end and at its middle, and at its end.
fn places(bytes: &[u8]) -> BTreeSet<usize> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let (mut places, mut start) = (BTreeSet::new(), 0_usize);
    for (end, _) in text.match_indices("\n\n") {
        let end = end + 2;
        for place in [start + 1, start + 5, start + 60, start.midpoint(end), end - 2, end - 1, end]
        {
            places.insert(place.min(end));
        }
        start = end;
    }
    places
}

fn change(event: &Frame, index: usize) -> Value {
    let data: Value = serde_json::from_str(&event.data).expect("JSON");
    data["changes"][index].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_cut_anywhere_comes_again_whole_and_no_other_twice() {
    let server = Server::start();
    let board = server.board("s");
    board.post("trajectories", r#"{"w":0,"n":0}"#).await.is(201);
    board.post("trajectories", &batch(190)).await.is(201);
    board.post("trajectories", &batch(400)).await.is(201);
    board.post("transactions", &transaction(400)).await.succeeded();
    board.post("requests", r#"{"w":0,"n":1}"#).await.is(201);
    board.post("questions", ENDS).await.is(201);

    let (bytes, frames) = uncut(&board).await;
    let events: Vec<Frame> = frames.into_iter().filter(|frame| !frame.data.is_empty()).collect();
    let revisions: Vec<u64> = events.iter().map(|event| event.id.expect("an id")).collect();
    assert_eq!(revisions, [1, 2, 3, 4, 5, 6]);
    assert_eq!(change(&events[1], 0)["entries"].as_array().map(Vec::len), Some(190));
    let brief = change(&events[2], 0);
    assert_eq!((&brief["first"], &brief["count"]), (&json!(192), &json!(400)), "{brief}");
    assert!(brief.get("entries").is_none(), "{brief}");
    let shown = server.get(&format!("{}&limit=1000", brief["url"].as_str().expect("a url"))).await;
    assert_eq!(shown.seqs(), (192..592).collect::<Vec<_>>());
    let put = change(&events[3], 399);
    assert!(put.get("value").is_none(), "{put}");
    let shown = server.get(put["url"].as_str().expect("a url")).await;
    assert_eq!(shown.is(200).json(), "x".repeat(1000));

    for place in places(&bytes) {
        let seen = cut(&board, place).await;
        assert!(seen == events, "a cut after {place} bytes: {:?}", ids(&seen));
    }
}

fn ids(events: &[Frame]) -> Vec<Option<u64>> {
    events.iter().map(|event| event.id).collect()
}
