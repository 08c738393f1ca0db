//! Benchmarks of compaction. Run in release, by name, with `--ignored --nocapture`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use uuid::Uuid;

use crate::sqlite::rows::journal;
use crate::sqlite::schema;
use crate::tests::compaction::compact_all;
use crate::tests::sqlite;
use crate::tests::sqlite::open;
use crate::*;
use blackboard_board::Frame;
use blackboard_board::stored::Body;

/// About 1 KB of words and numbers, none twice.
fn body(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut body = format!("{{\"revision\":{seed},\"text\":\"");
    while body.len() < 1_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.push_str(["open ", "the ", "window ", "click "][(state >> 8) as usize & 3]);
        body.push_str(&format!("{:x} ", (state >> 12) & 0xf_ffff));
    }
    body.into_bytes()
}

fn session(number: u64) -> SessionId {
    SessionId(Uuid::from_u128(u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | 1))
}

/// One run of this many commits for each session.
fn batch(sessions: std::ops::Range<u64>, head: u64, commits: u64) -> Vec<Run> {
    let run = |number| {
        let frame = |revision| {
            let body = body(number << 24 | revision);
            Frame::encode(session(number), Revision(revision), &Body::plain(&body)).unwrap()
        };
        Run {
            session: session(number),
            expected: Revision(head),
            ends: None,
            frames: (head + 1..=head + commits).map(frame).collect(),
            grows: true,
            claim: None,
            adopts: false,
            group: None,
            row: None,
        }
    };
    sessions.map(run).collect()
}

/// Appends rounds of one commit a session, 64 sessions a batch. Returns the duration of each append.
fn append(store: &SqliteStore, sessions: u64, rounds: std::ops::Range<u64>) -> Vec<Duration> {
    let mut took = Vec::new();
    for head in rounds {
        for from in (0..sessions).step_by(64) {
            let batch = batch(from..sessions.min(from + 64), head, 1);
            let begun = Instant::now();
            assert!(store.append(&batch).iter().all(|outcome| *outcome == Outcome::Appended));
            took.push(begun.elapsed());
        }
    }
    took.sort();
    took
}

fn file_bytes(dir: &Path) -> u64 {
    fs::read_dir(dir).unwrap().filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

fn tell(what: &str, commits: u64, took: Duration) {
    let rate = commits as f64 / took.as_secs_f64();
    println!("{what}: {commits} commits in {took:.2?}, {rate:.0}/s");
}

fn compact_and_tell(sessions: u64, rounds: u64) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let took = append(&store, sessions, 0..rounds);
    let commits = sessions * rounds;
    let p99 = took[took.len() * 99 / 100];
    println!("-- {sessions} sessions of {rounds}: appends' p99 {p99:.2?}");
    tell("append", commits, took.iter().sum());
    drop(store);
    let begun = Instant::now();
    let store = open(dir.path());
    tell("open uncompacted", commits, begun.elapsed());
    let begun = Instant::now();
    store.replay_journal(&mut |_| ControlFlow::Continue(())).unwrap();
    tell("replay uncompacted", commits, begun.elapsed());
    let begun = Instant::now();
    compact_all(&store);
    tell("compact", commits, begun.elapsed());
    while store.idle() {}
    println!("file/payload {:.3}", file_bytes(dir.path()) as f64 / (commits * 1_000) as f64);
    let count = "SELECT count(*), avg(length(body)), avg(commits) FROM segment";
    let segments: (i64, f64, f64) =
        sqlite::database(&dir).query_one(count, [], |row| row.try_into()).unwrap();
    println!("segments, their bytes and commits: {segments:?}");
    drop(store);
    let begun = Instant::now();
    let store = open(dir.path());
    tell("open compacted", commits, begun.elapsed());
    let begun = Instant::now();
    let mut seen = 0;
    store
        .replay(&mut |_| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    tell("replay compacted", seen, begun.elapsed());
    let begun = Instant::now();
    let done = AtomicBool::new(false);
    let took = thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.compact(&mut |_| Vec::new()).unwrap();
            }
        });
        let took = append(&store, sessions.min(256), rounds..rounds + 200);
        done.store(true, Ordering::Relaxed);
        took
    });
    tell("append while compaction", sessions.min(256) * 200, begun.elapsed());
    println!("p99 {:.2?}, longest {:.2?}", took[took.len() * 99 / 100], took.last().unwrap());
}

#[test]
#[ignore = "it measures"]
fn compaction_of_many_sessions_in_turn() {
    compact_and_tell(10_000, 20);
}

#[test]
#[ignore = "it measures"]
fn compaction_of_few_sessions_in_turn() {
    compact_and_tell(64, 3_000);
}

#[test]
#[ignore = "it measures"]
fn opening_many_compacted_sessions() {
    for (sessions, commits) in [(10_000, 100), (100_000, 1)] {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        for from in (0..sessions).step_by(100) {
            store.append(&batch(from..from + 100, 0, commits));
        }
        compact_all(&store);
        drop(store);
        let begun = Instant::now();
        let store = open(dir.path());
        tell("open", sessions * commits, begun.elapsed());
        println!(
            "file/payload {:.3}",
            file_bytes(dir.path()) as f64 / (sessions * commits * 1_000) as f64
        );
        drop(store);
    }
}

#[test]
#[ignore = "it measures"]
fn appending_with_and_without_shrinking() {
    for mode in ["INCREMENTAL", "NONE", "INCREMENTAL", "NONE"] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("blackboard.db");
        let connection = schema::open(&path, None, schema::STEPS).unwrap();
        connection.execute_batch(&format!("PRAGMA auto_vacuum = {mode}; VACUUM")).unwrap();
        let mut journal = journal::Journal::open(connection, &path, None).unwrap();
        for size in [1, 16, 64] {
            let begun = Instant::now();
            let mut head = 0;
            for _ in 0..1_500 {
                journal.write(batch(size..size + 1, head, size).iter()).unwrap();
                head += size;
                journal.checkpoint_if_long().unwrap();
            }
            tell(&format!("auto_vacuum {mode}, batches of {size}"), head, begun.elapsed());
        }
    }
}
