//! Latency of watchers after a write, and their cost to writers.
//!
//! `cargo bench --bench watch` builds and starts the release server; `-- PATH` takes another binary. It takes one or
//! two minutes, and 11,000 open files for its largest rows. A time runs from the writer's answer to the watcher's; a
//! negative one means that the watcher was first. Server and watchers share the processors, so with many watchers the
//! figure is the time that all of them take together.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use server::{Server, binary};

const FLAGS: [&str; 4] = ["--connections-max", "12000", "--streams-max", "12000"];

const WATCHERS: [usize; 3] = [1, 100, 1_000];
const IDLE_STREAMS: [usize; 3] = [0, 100, 10_000];

/// Writes whose way to the watchers is timed, for each number of watchers.
const TIMED_WRITES: usize = 50;

/// Between two of them, so that all who poll have asked again.
const PAUSE: Duration = Duration::from_millis(50);

const WRITERS: usize = 16;

/// How long they write, for each number of idle streams.
const WRITING: Duration = Duration::from_secs(5);

/// Connections that are opened at the same time.
const OPENERS: usize = 64;

/// Files of this process besides its streams.
const OTHER_FILES: u64 = 500;

/// A server under test, and where its sessions are.
fn started() -> (Server, String) {
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(&binary(), home, &FLAGS);
    let sessions = format!("http://{}/v1/sessions", server.address);
    (server, sessions)
}

fn main() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit can be raised to the hard one");
    let files = limit.maximum.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
    let streams_max = usize::try_from(files).unwrap_or(usize::MAX);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        println!(
            "{:<28}{:>9}{:>11}{:>11}",
            "from a write's answer to", "watchers", "median", "p99"
        );
        for (name, watching) in [("a long poll's", Watching::Poll), ("its event", Watching::Stream)]
        {
            for watchers in WATCHERS {
                let mut times = times(watching, watchers).await;
                times.sort_by(f64::total_cmp);
                let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
                println!("{name:<28}{watchers:>9}{median:>8.2} ms{p99:>8.2} ms");
            }
        }
        println!("\n{:<28}{:>9}{:>11}{:>11}", "idle streams", "streams", "writes/s", "ratio");
        for (name, followed) in [("on another session", "other"), ("on the same session", "s")] {
            let mut without = None;
            for streams in IDLE_STREAMS.map(|streams| streams.min(streams_max)) {
                let rate = rate(followed, streams).await;
                let ratio = rate / *without.get_or_insert(rate);
                println!("{name:<28}{streams:>9}{rate:>11.0}{ratio:>11.2}");
            }
        }
    });
}

/// How a watcher hears of a write.
#[derive(Clone, Copy)]
enum Watching {
    Poll,
    Stream,
}

/// When a watcher knew of a revision.
type Heard = (u64, Instant);

/// The times of all watchers from the writes' answers on, in milliseconds.
async fn times(watching: Watching, watchers: usize) -> Vec<f64> {
    let (_server, sessions) = started();
    let client = Client::builder().no_proxy().build().unwrap();
    let board = format!("{sessions}/s");
    let (_, first) = put(&client, &board, 0).await;
    let (tell, mut heard) = mpsc::channel(watchers);
    let mut at_work = JoinSet::new();
    for _ in 0..watchers {
        let (client, board, tell) = (client.clone(), board.clone(), tell.clone());
        match watching {
            Watching::Poll => at_work.spawn(poll(client, board, first.clone(), tell)),
            Watching::Stream => at_work.spawn(follow(client, board, tell)),
        };
    }
    let mut times = Vec::new();
    for n in 0..=TIMED_WRITES {
        sleep(PAUSE).await;
        let (written, _) = put(&client, &board, n + 1).await;
        let answered = Instant::now();
        for _ in 0..watchers {
            let (revision, at) = heard.recv().await.expect("watchers");
            assert_eq!(revision, written, "a watcher missed a revision");
            let late = at.saturating_duration_since(answered).as_secs_f64();
            let early = answered.saturating_duration_since(at).as_secs_f64();
            // With the first write the connections may still be on their way.
            if n > 0 {
                times.push((late - early) * 1_000.0);
            }
        }
    }
    times
}

/// Writes a value, and gives its revision and tag.
async fn put(client: &Client, board: &str, n: usize) -> (u64, String) {
    let request = client.put(format!("{board}/state/x")).header("content-type", "application/json");
    let answer = request.body(n.to_string()).send().await.expect("an answer");
    let answer = answer.error_for_status().expect("a write is taken");
    let written = (revision(&answer), tag(&answer));
    answer.bytes().await.expect("an answer");
    written
}

fn tag(answer: &Response) -> String {
    answer.headers()["etag"].to_str().expect("a tag").to_owned()
}

fn revision(answer: &Response) -> u64 {
    let header = answer.headers()["blackboard-revision"].to_str().expect("a revision");
    header.parse().expect("a revision")
}

/// Polls a path again and again.
async fn poll(client: Client, board: String, mut known: String, tell: mpsc::Sender<Heard>) {
    loop {
        let request = client.get(format!("{board}/state/x?wait=60s"));
        let answer = request.header("if-none-match", &known).send().await.expect("an answer");
        known = tag(&answer);
        let revision = revision(&answer);
        answer.bytes().await.expect("a value");
        if tell.send((revision, Instant::now())).await.is_err() {
            return;
        }
    }
}

/// Follows the events from the first revision on.
async fn follow(client: Client, board: String, tell: mpsc::Sender<Heard>) {
    let request = client.get(format!("{board}/events?after=1"));
    let mut answer = request.send().await.expect("an answer");
    let mut text = String::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
        while let Some(end) = text.find("\n\n") {
            let rest = text.split_off(end + 2);
            let frame = std::mem::replace(&mut text, rest);
            let id = frame.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id");
            let heard = (id.parse().expect("a revision"), Instant::now());
            if frame.contains("\ndata: ") && tell.send(heard).await.is_err() {
                return;
            }
        }
    }
}

/// How many writes a second go through while so many idle streams follow that session.
async fn rate(followed: &str, streams: usize) -> f64 {
    let (_server, sessions) = started();
    let client = Client::builder().no_proxy().build().unwrap();
    let followed = format!("{sessions}/{followed}");
    let mut idle = opened(&client, &followed, streams).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    let begin = Instant::now();
    for writer in 0..WRITERS {
        let (client, stop, written) = (client.clone(), Arc::clone(&stop), Arc::clone(&written));
        let log = format!("{sessions}/s/trajectories");
        writers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let request = client.post(&log).header("content-type", "application/json");
                let answer = request.body(format!("{{\"w\":{writer}}}")).send().await;
                let answer = answer.expect("an answer").error_for_status();
                answer.expect("a write is taken").bytes().await.expect("an answer");
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    sleep(WRITING).await;
    let rate = written.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    while writers.join_next().await.is_some_and(|ended| ended.is_ok()) {}
    idle.abort_all();
    rate
}

/// So many streams, each read by a task that throws away what comes.
async fn opened(client: &Client, board: &str, streams: usize) -> JoinSet<()> {
    let (mut idle, openers) = (JoinSet::new(), Arc::new(Semaphore::new(OPENERS)));
    let ready = Arc::new(Semaphore::new(0));
    for _ in 0..streams {
        let request = client.get(format!("{board}/events"));
        let (openers, ready) = (Arc::clone(&openers), Arc::clone(&ready));
        idle.spawn(async move {
            let opening = openers.acquire().await.expect("open");
            let mut answer = request.send().await.expect("an answer");
            drop(opening);
            ready.add_permits(1);
            while answer.chunk().await.is_ok_and(|piece| piece.is_some()) {}
        });
    }
    let all = ready.acquire_many(u32::try_from(streams).expect("a small number")).await;
    all.expect("open").forget();
    idle
}
