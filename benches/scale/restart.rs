//! Time to restart: after a clean stop with everything compacted, and after a crash with nothing compacted.

use std::fs;
use std::path::Path;
use std::time::Instant;

use tempfile::TempDir;

use crate::Failure;
use crate::figures::{figure, median, mib, ms};
use crate::fill::{Plan, fill, open, session, settle};
use crate::server::Server;
use crate::texts::Kind;

const STARTS: usize = 3;

const SETTLED: Plan = Plan { sessions: 10_000, commits: 100, at_once: 100, kind: Kind::Step };

/// What each item has once.
const STEP: &[u8] = b"\"step\":";

const UNSETTLED: usize = 200_000;

pub fn settled() -> Result<(), Failure> {
    let (dir, begin) = (TempDir::new()?, Instant::now());
    let store = open(dir.path())?;
    let payload = fill(&store, SETTLED)?;
    println!("{:.0} MiB of items written in {:.1} s", mib(payload), begin.elapsed().as_secs_f64());
    println!("settled in {:.1} s", settle(store)?.as_secs_f64());
    let (mut listening, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let server = Server::start(dir.path(), &[])?;
        listening.push(server.listening.as_secs_f64());
        ready.push(server.ready.as_secs_f64());
        let (resident, peak) = server.resident()?;
        // It knows its sessions: the last one is there, and whole.
        let log = format!("/v1/sessions/{}/trajectories", session(SETTLED.sessions - 1));
        let mut client = server.client()?;
        let first = client.get(&log)?.1;
        let (items, _) = client.get(&format!("{log}?limit=1000"))?;
        let items = items.windows(STEP.len()).filter(|part| part == &STEP).count();
        if items != SETTLED.commits {
            return Err(format!("{items} items are left of {}", SETTLED.commits).into());
        }
        println!(
            "listens after {:.0} ms, ready after {:.0} ms ({:.0} of CPU); {:.0} MiB resident, {:.0} at the peak; a first read {:.1} ms; stopped in {} ms",
            ms(server.listening),
            ms(server.ready),
            ms(server.ready_cpu),
            mib(resident),
            mib(peak),
            ms(first),
            server.stop()?.as_millis(),
        );
    }
    println!("median until it listens: {:.3} s", median(listening));
    figure("restart_settled_seconds", median(ready), "s");
    Ok(())
}

pub fn unsettled() -> Result<(), Failure> {
    let empty = TempDir::new()?;
    let mut nothing = Vec::new();
    for _ in 0..STARTS {
        let server = Server::start(empty.path(), &[])?;
        nothing.push(server.ready.as_secs_f64());
        server.stop()?;
    }
    let nothing = median(nothing);
    println!("ready after {:.0} ms with an empty store", nothing * 1e3);
    let sessions = after_crash("1,000 sessions", 1_000, nothing)?;
    let session = after_crash("one session", 1, nothing)?;
    figure("restart_unsettled_commits_per_second", sessions, "commits/s");
    figure("restart_unsettled_one_session_commits_per_second", session, "commits/s");
    Ok(())
}

/// How many unsettled commits a second are read at a start after a crash.
fn after_crash(what: &str, sessions: usize, nothing: f64) -> Result<f64, Failure> {
    let dir = TempDir::new()?;
    let store = open(dir.path())?;
    let commits = UNSETTLED / sessions;
    let payload = fill(&store, Plan { sessions, commits, at_once: sessions, kind: Kind::Step })?;
    let mut rates = Vec::new();
    for _ in 0..STARTS {
        // What lies there while the store is open and nobody writes is what a crash would leave.
        let crashed = TempDir::new()?;
        copy(dir.path(), crashed.path())?;
        let server = Server::start(crashed.path(), &[])?;
        let rate = UNSETTLED as f64 / (server.ready.as_secs_f64() - nothing);
        let (resident, peak) = server.resident()?;
        println!(
            "{what}, {:.0} MiB of items: ready after {:.0} ms ({:.0} of CPU); {:.0} MiB resident, {:.0} at the peak",
            mib(payload),
            ms(server.ready),
            ms(server.ready_cpu),
            mib(resident),
            mib(peak),
        );
        rates.push(rate);
    }
    Ok(median(rates))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
