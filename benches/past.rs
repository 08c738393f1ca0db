//! Reads of the past among 100,000 commits, and a fork of 100,000 items.
//!
//! `cargo bench --bench past` makes a store in a temporary directory, fills one session, and prints how long
//! each took and what the process grew by. Times are of this machine; the ratios are what to look at.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it found")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackboard::auth::Caller;
use blackboard::board::{
    Board, Command, Item, LogCommand, LogName, Policy, Revision, SessionName, Terms,
};
use blackboard::clock::Clock;
use blackboard::service::{At, Reply, Service};
use blackboard::store::{SqliteOptions, SqliteStore, SyncLevel};
use tempfile::TempDir;

type Failure = Box<dyn std::error::Error>;

const COMMITS: u64 = 100_000;

/// How many writers fill the session; each batch of the server takes what they wait with.
const WRITERS: u64 = 64;

fn main() -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let dir = TempDir::new()?;
    let name: SessionName = "s".parse()?;
    let service = start(dir.path())?;
    let session = service.session(&Caller::owner(), &name).await?;
    let begin = Instant::now();
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let session = session.clone();
        writers.push(tokio::spawn(async move {
            for n in (writer..COMMITS).step_by(usize::try_from(WRITERS).unwrap_or(1)) {
                let text = format!("{{\"step\":{n},\"said\":\"{}\"}}", "x".repeat(200));
                let items = vec![Item::from_json(&text).map_err(|error| error.to_string())?];
                let command = Command::Log(LogName::Trajectories, LogCommand::Append { items });
                let written = session.write(Terms::default(), command, Vec::new(), None).await;
                written.map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        }));
    }
    for writer in writers {
        writer.await??;
    }
    tell("100,000 commits of 200 B written", begin.elapsed());
    stop(service).await?;

    let begin = Instant::now();
    let service = start(dir.path())?;
    tell("all of it loaded at a start", begin.elapsed());
    let session = service.session(&Caller::owner(), &name).await?;
    let now = session.published().await?.ok_or("the session is gone")?;
    for revision in [1_000, COMMITS / 2, COMMITS / 2 + 100, COMMITS - 1] {
        let begin = Instant::now();
        let then = session.board_at(&now, &At::Revision(Revision(revision))).await?;
        tell(&format!("the board at revision {revision}"), begin.elapsed());
        drop(then);
    }

    let (before, begin) = (resident()?, Instant::now());
    let board: Arc<Board> = Arc::clone(&now.board);
    let forked = service.session(&Caller::owner(), &"f".parse()?).await?;
    let reply = forked.fork(Terms::default(), board, name, None).await?;
    let took = begin.elapsed();
    let grown = resident()?.saturating_sub(before);
    tell("a fork of 100,000 items", took);
    println!("{:>12}  resident more after it", format!("{} KiB", grown >> 10));
    println!("{:>12}  of items in the session", format!("{} KiB", now.board.bytes() >> 10));
    drop(reply_board(reply)?);
    stop(service).await
}

fn reply_board(reply: Reply) -> Result<Arc<Board>, Failure> {
    match reply {
        Reply::Now(receipt) => Ok(receipt.board),
        Reply::Before(_) => Err("it was forked before".into()),
    }
}

fn start(dir: &Path) -> Result<Service, Failure> {
    let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
    let policy = Policy {
        auto_create: true,
        session_bytes_max: 1 << 30,
        session_blob_bytes_max: 1 << 30,
        session_items_max: 1 << 30,
        sessions_max: 1 << 30,
        qa_pairs: Vec::new(),
    };
    Ok(Service::start(Arc::new(SqliteStore::open(dir, options)?), policy, Clock::system())?)
}

async fn stop(service: Service) -> Result<(), Failure> {
    Ok(tokio::task::spawn_blocking(move || service.stop()).await?)
}

fn tell(what: &str, took: Duration) {
    println!("{:>12}  {what}", format!("{:.1} ms", took.as_secs_f64() * 1e3));
}

/// The bytes of this process in memory, as Linux tells them.
fn resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}
