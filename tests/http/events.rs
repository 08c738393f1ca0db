//! Event streams: every commit once and in order, trimmed, with `resync` for gaps.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::sse::{Frame, Stream};

/// A frame that only says how far the stream has read.
fn at(revision: u64) -> Frame {
    Frame { id: revision.to_string(), ..Frame::default() }
}

fn resync(revision: u64, oldest: u64) -> Frame {
    Frame {
        event: "resync".to_owned(),
        data: json!({"revision":revision,"oldest_revision":oldest}).to_string(),
        ..Frame::default()
    }
}

fn same(frame: &Frame, other: &Frame) {
    assert_eq!((&frame.id, &frame.event), (&other.id, &other.event));
    if other.data.is_empty() {
        assert_eq!(frame.data, "");
    } else {
        assert_eq!(frame.json(), other.json());
    }
}

async fn post(board: &Board, log: &str, item: &str) -> u64 {
    board.post(log, item).await.is(201).revision()
}

#[tokio::test]
async fn a_frame_without_an_event_is_an_id_or_a_comment() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut ids = Stream::of(&board, "?heartbeat=id").await;
    let mut comments = Stream::of(&board, "?heartbeat=comment").await;
    // The first one is sent at once, the second after 15 s of silence.
    for _ in 0..2 {
        assert_eq!(ids.frame().await, Some(at(1)));
        comments.comment().await;
    }
    assert_eq!(post(&board, "requests", "{}").await, 2);
    assert_eq!(comments.next_revision().await, 2);
    // A reader that learns of a gap reconnects behind it.
    let mut behind = Stream::of(&board, "?heartbeat=comment&after=9").await;
    same(&behind.frame().await.unwrap(), &Frame { id: "2".to_owned(), ..resync(2, 0) });
    board.get("events?heartbeat=none").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn every_commit_comes_once_from_the_store_and_then_live() {
    let mut server = Server::start();
    let board = server.made("s").await;
    for n in 0..300 {
        post(&board, "trajectories", &format!("{{\"step\":{n}}}")).await;
    }
    server.stop();
    server.start_again();
    let board = server.board("s");
    let mut stream = Stream::of(&board, "?after=0").await;
    assert_eq!(stream.revision(), 0);
    assert_eq!(stream.frame().await, Some(at(0)));
    assert_eq!(stream.event().await.event, "created");
    for revision in 2..=301 {
        assert_eq!(stream.next_revision().await, revision);
    }
    for _ in 0..10 {
        let revision = post(&board, "requests", "\"x\"").await;
        assert_eq!(stream.next_revision().await, revision);
    }
}

#[tokio::test]
async fn an_event_says_who_changed_what_and_when() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut stream = Stream::of(&board, "").await;
    assert_eq!((stream.revision(), stream.frame().await), (1, Some(at(1))));
    let item = r#"{ "b" : 1E5, "a":-0.0 }"#;
    let posted = ask(board.by("Host é", Method::POST, "trajectories", item)).await;
    let event = stream.frame().await.unwrap();
    assert_eq!((&*event.id, &*event.event), ("2", "appended"));
    let time = posted.is(201).json()["entries"][0]["at"].as_str().unwrap().to_owned();
    let data = format!(
        r#"{{"revision":2,"at":"{time}","agent":"Host é","changes":[{{"kind":"appended","log":"trajectories","entries":[{{"seq":1,"item":{item}}}]}}]}}"#
    );
    assert_eq!(event.data, data);
    let both = r#"{"then":[{"put":"a/b c","value":[1]},{"append":"requests","item":{}}]}"#;
    board.post("transactions", both).await.is(200);
    let event = stream.event().await;
    assert_eq!(event.event, "transaction");
    let changes = json!([
        {"kind":"state_put","path":"a/b c","value":[1]},
        {"kind":"appended","log":"requests","entries":[{"seq":1,"item":{}}]}
    ]);
    assert_eq!(event.json()["changes"], changes);
    assert_eq!(event.json().get("agent"), None);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_cut_off() {
    let server = Server::start();
    let board = server.made("s").await;
    for _ in 0..5 {
        post(&board, "requests", "{}").await;
    }
    let resumed = |id: &str| board.to(Method::GET, "events?after=1").header("last-event-id", id);
    let mut stream = Stream::open(resumed("4")).await;
    assert_eq!(stream.frame().await, Some(at(4)));
    assert_eq!(stream.next_revision().await, 5);
    for wrong in ["x", "-1", "+1", "1.0", "4,5"] {
        ask(resumed(wrong)).await.problem(400, "invalid-parameter");
    }
    for query in ["after=x", "aftr=1", "wait=1s"] {
        board.get(&format!("events?{query}")).await.is(400);
    }
    board.get("events?aftr=1").await.problem(400, "unknown-parameter");
}

#[tokio::test]
async fn a_reader_sees_only_what_it_names() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut tasks = Stream::of(&board, "?on=state/tasks~11&on=%5B%22agents/A,B/memory%22%5D").await;
    let mut by_a = Stream::of(&board, "?agent=A").await;
    let mut merged = Stream::of(&board, "?on=requests,state/x").await;
    board.put("state/other", "1").await.is(201);
    let puts = r#"{"then":[{"put":"tasks~11/a","value":1},{"append":"requests","item":{}}]}"#;
    board.post("transactions", puts).await.is(200);
    ask(board.by("A", Method::POST, "agents/A%2CB/memory", "{}")).await.is(201);
    board.merge("state", r#"{"y":1}"#).await.succeeded();
    board.merge("state", r#"{"x":{"y":1}}"#).await.succeeded();
    board.delete("").await.is(200);

    let event = tasks.event().await;
    assert_eq!((event.revision(), &*event.event), (3, "transaction"));
    let put = json!([{"kind":"state_put","path":"tasks~11/a","value":1}]);
    assert_eq!(event.json()["changes"], put);
    let event = tasks.event().await;
    assert_eq!(event.revision(), 4);
    assert_eq!(event.json()["changes"][0]["log"], "agents/A,B/memory");
    // What ends all of it is told to everybody.
    assert_eq!((tasks.next_revision().await, by_a.next_revision().await), (7, 4));
    let mut seen = Vec::new();
    while seen.last() != Some(&7) {
        seen.push(merged.next_revision().await);
    }
    assert_eq!(seen, [3, 6, 7]);
    for wrong in ["", "x", "state/", "state//a", "agents/", "agents/A/b", "questions/1", "state/~"]
    {
        board.get(&format!("events?on={wrong}")).await.problem(400, "invalid-parameter");
    }
    board.get("events?on=state/%ff").await.problem(400, "invalid-encoding");
}

#[tokio::test]
async fn a_stream_waits_for_its_session_and_outlives_it() {
    let server = Server::start();
    let board = server.board("s");
    let mut stream = Stream::of(&board, "").await;
    assert_eq!((stream.revision(), stream.frame().await), (0, Some(at(0))));
    board.put("", "{}").await.is(201);
    assert_eq!(stream.event().await.event, "created");
    board.delete("").await.is(200);
    assert_eq!(stream.event().await.event, "deleted");
    post(&board, "requests", "{}").await;
    let made = stream.event().await;
    assert_eq!((made.revision(), &*made.event), (3, "transaction"));
    assert_eq!(made.json()["changes"][0]["kind"], "created");
}

#[tokio::test]
async fn a_cursor_that_cannot_be_served_gets_one_resync() {
    let server = Server::start();
    let none = server.board("none");
    let mut stream = Stream::of(&none, "?after=7").await;
    assert_eq!(stream.revision(), 0);
    same(&stream.frame().await.unwrap(), &resync(0, 0));
    assert_eq!(stream.frame().await, Some(at(0)));
    none.put("", "{}").await.is(201);
    assert_eq!(stream.next_revision().await, 1);

    let board = server.made("s").await;
    post(&board, "requests", "{}").await;
    for after in ["3", "18446744073709551615"] {
        let mut stream = Stream::of(&board, &format!("?after={after}")).await;
        assert_eq!(stream.revision(), 2);
        same(&stream.frame().await.unwrap(), &resync(2, 0));
        assert_eq!(stream.frame().await, Some(at(2)));
    }
    let far = board.to(Method::GET, "events").header("last-event-id", "9".repeat(30));
    same(&Stream::open(far).await.frame().await.unwrap(), &resync(2, 0));
}

#[tokio::test]
async fn a_large_event_has_addresses_in_place_of_items() {
    let server = Server::start();
    let board = server.made("s é").await;
    let mut stream = Stream::of(&board, "").await;
    let item = format!("{{\"text\":\"{}\"}}", "x".repeat(200_000));
    board.post("trajectories", &format!("[{item},{item}]")).await.is(201);
    let event = stream.event().await;
    let url = "/v1/sessions/s%20%C3%A9/trajectories?after=0&before=3";
    let brief = json!([{"kind":"appended","log":"trajectories","first":1,"count":2,"url":url}]);
    assert_eq!(event.json()["changes"], brief);
    assert_eq!(server.get(url).await.seqs(), [1, 2]);
    board.post("trajectories", &item).await.is(201);
    let whole = stream.event().await.json();
    assert_eq!(
        whole["changes"][0]["entries"][0]["item"],
        serde_json::from_str::<Value>(&item).unwrap()
    );
}

#[tokio::test]
async fn a_slow_reader_is_caught_up_and_slows_nobody() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut slow = Stream::of(&board, "").await;
    let item = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let mut unread = 2..=201;
    // It takes one event in four, or it would be ended on a busy machine. What is left is more than the system's buffers take.
    for posted in 1..=200 {
        post(&board, "trajectories", &item).await;
        if posted % 4 == 0 {
            assert_eq!(Some(slow.next_revision().await), unread.next());
        }
    }
    let mut fast = Stream::of(&board, "?after=200").await;
    assert_eq!(fast.next_revision().await, 201);
    for revision in unread {
        assert_eq!(slow.next_revision().await, revision);
    }
}

/// This takes as long as the silence that is broken.
#[tokio::test]
async fn a_silent_stream_says_how_far_it_has_read() {
    let server = Server::start();
    let board = server.made("s").await;
    let mut stream = Stream::of(&board, "?on=questions").await;
    let mut all = Stream::open(server.to(Method::GET, "/v1/events")).await;
    assert_eq!(stream.frame().await, Some(at(1)));
    post(&board, "requests", "{}").await;
    assert_eq!(stream.frame().await, Some(at(2)));
    assert_eq!(all.frame().await.unwrap().event, "notice");
    all.comment().await;
}

#[tokio::test]
async fn streams_end_when_the_server_does() {
    let mut server = Server::start();
    let board = server.made("s").await;
    let mut stream = Stream::of(&board, "").await;
    let mut none = Stream::of(&server.board("none"), "").await;
    let mut all = Stream::open(server.to(Method::GET, "/v1/events")).await;
    server.signal(Signal::TERM);
    stream.end().await;
    none.end().await;
    all.end().await;
    assert!(server.wait().success());
}

#[tokio::test]
async fn all_sessions_are_followed_by_notices() {
    let server = Server::start();
    let mut all = Stream::open(server.to(Method::GET, "/v1/events")).await;
    let board = server.board("s é");
    post(&board, "requests", "{}").await;
    board.delete("").await.is(200);
    let first = all.frame().await.unwrap();
    assert_eq!((&*first.id, &*first.event), ("", "notice"));
    let data = json!({"session":"s é","revision":1,"kinds":["appended","created"]});
    assert_eq!(first.json(), data);
    assert_eq!(
        all.frame().await.unwrap().json(),
        json!({"session":"s é","revision":2,"kinds":["deleted"]})
    );
    server.get("/v1/events?after=1").await.problem(400, "unknown-parameter");
}
