//! Stalled watchers: no memory, no delay for others, nothing missed on resuming.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::follower::{Follower, Frame};
use crate::harness::{Board, Server};
use crate::idle_streams::memory;

/// Each nearly as large as an event shows in full, so that they come to 64 MiB.
const VALUE_BYTES: usize = 240 << 10;
const VALUES: usize = (64 << 20) / VALUE_BYTES + 1;

const STALLED: usize = 2;
const READING: usize = 2;

/// What the watchers may take besides: a quarter of what would be kept for only one of those that stall.
const MARGIN: u64 = 16 << 20;

/// The value that one commit puts, the same place each time, so that the board stays as small.
fn value(n: usize) -> String {
    format!("{{\"commit\":{n},\"text\":\"{}\"}}", "x".repeat(VALUE_BYTES))
}

/// Puts them all, and now and then what others do meanwhile; which value each revision brought, from 1 on.
async fn written(board: &Board) -> Vec<Option<usize>> {
    let mut brought = Vec::new();
    for n in 0..VALUES {
        board.put("state/large", &value(n)).await.succeeded();
        brought.push(Some(n));
        if n % 32 == 0 {
            let labels = json!({"labels":{"at":n.to_string()}}).to_string();
            ask(board.json(Method::PUT, "", &labels)).await.is(200);
            brought.push(None);
            let shown = board.get("").await;
            assert_eq!(shown.is(200).json()["labels"]["at"], n.to_string());
            assert_eq!(shown.revision(), brought.len() as u64);
        }
    }
    brought
}

/// The most that a server takes more than at first, while all is written.
async fn growth(server: &Server, board: &Board) -> (u64, Vec<Option<usize>>) {
    let before = memory(server, "VmRSS");
    let brought = written(board).await;
    (memory(server, "VmHWM").saturating_sub(before), brought)
}

/// Follows from a revision to the end, over more than one connection if need be.
async fn reads(board: Board, follower: Option<Follower>, end: usize) -> Vec<Frame> {
    let (mut follower, mut last, mut events) = (follower, 0, Vec::new());
    while events.len() < end {
        let Some(open) = &mut follower else {
            follower = Follower::open(&board, "", Some(last)).await;
            continue;
        };
        match open.frame().await {
            Some(frame) if frame.data.is_empty() => assert_eq!(frame.id, Some(last)),
            Some(frame) => {
                assert_eq!(frame.id, Some(last + 1), "{} comes after {last}", frame.event);
                last += 1;
                events.push(frame);
            }
            None => follower = None,
        }
    }
    events
}

#[track_caller]
fn judge(events: &[Frame], brought: &[Option<usize>]) {
    assert_eq!(events.len(), brought.len());
    for ((revision, event), brought) in (1..).zip(events).zip(brought) {
        let begin = format!("{{\"revision\":{revision},");
        assert!(event.data.starts_with(&begin), "revision {revision}: {}", event.event);
        if let Some(n) = brought {
            let value = value(*n);
            assert!(event.data.contains(&value), "revision {revision} brings no value {n}");
        } else {
            assert_eq!(event.event, "configured");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_that_stop_reading_cost_no_memory_and_miss_nothing() {
    let unwatched = Server::start();
    let at_first = memory(&unwatched, "VmRSS");
    let (alone, brought) = growth(&unwatched, &unwatched.board("s")).await;
    // Whoever comes later and never stalled reads all of it from the store too.
    let late = Follower::open(&unwatched.board("s"), "?after=0", None).await.expect("a server");
    judge(&reads(unwatched.board("s"), Some(late), brought.len()).await, &brought);
    let read_alone = memory(&unwatched, "VmHWM").saturating_sub(at_first);
    drop(unwatched);

    let server = Server::start();
    let before = memory(&server, "VmRSS");
    let board = server.board("s");
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut follower = Follower::open(&board, "?after=0", None).await.expect("a server");
        assert_eq!(follower.frame().await.expect("a first frame").id, Some(0));
        stalled.push(follower);
    }
    let brought = Arc::new(brought);
    let reading = [(); READING].map(|()| {
        let (board, brought) = (board.clone(), Arc::clone(&brought));
        tokio::spawn(async move {
            judge(&reads(board, None, brought.len()).await, &brought);
        })
    });
    let (watched, again) = growth(&server, &board).await;
    assert_eq!(again, *brought);
    for reader in reading {
        reader.await.expect("a reader gets all while others stall");
    }
    eprintln!("{} KiB more without a watcher, {} KiB with them", alone >> 10, watched >> 10);
    assert!(watched <= read_alone + MARGIN, "{watched} bytes more, {read_alone} for one reader");

    for follower in stalled {
        judge(&reads(board.clone(), Some(follower), brought.len()).await, &brought);
    }
    let caught_up = memory(&server, "VmHWM").saturating_sub(before);
    eprintln!(
        "{} KiB more when all have caught up, {} for one reader",
        caught_up >> 10,
        read_alone >> 10
    );
    assert!(caught_up <= read_alone + 2 * MARGIN, "{caught_up} bytes more after catching up");
}
