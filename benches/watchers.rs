//! Ten thousand watchers of one session: their events a second beside a bare axum that streams the same frame, and the
//! processor time of a commit beside that for as many agents that wait for their attention.
//!
//! `cargo build --profile dist --workspace && cargo bench --profile dist --bench watchers` takes about a minute, and 11,000 open files;
//! `-- PATH` takes another binary of the server. Each round measures both with the same number of streams. One writer
//! appends an item once all streams have the frame of the one before, so that both send each frame by itself. The aim
//! is a ratio of at least 0.7. The readers share the processors with both servers.
//!
//! The agents wait for requests with one of ten sets of members. Each commit posts a request that none of them wants, so that
//! all look and none is answered. The aim is at most 1.5 times the processor time for the watchers.
#![allow(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

mod server;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use server::{Server, binary};

const WATCHERS: usize = 10_000;
const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(4);

/// The commits whose processor time is measured.
const COMMITS: u32 = 20;

/// The time between two of them, in which all clients have looked.
const PACE: Duration = Duration::from_millis(400);

/// The time after which all clients wait.
const SETTLED: Duration = Duration::from_secs(3);

/// The pause between two looks for the last frame.
const LOOK: Duration = Duration::from_millis(1);

const ITEM: &str = r#"{"step":1,"agent":"HostAgent","status":"CONTINUE"}"#;

/// Room for the streams, the writer and the first look.
const FLAGS: [&str; 4] = ["--connections-max", "10100", "--streams-max", "10050"];

fn main() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit can be raised to the hard one");
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let mut ratios = Vec::new();
        for round in 0..ROUNDS {
            let (ours, frame) = of_server().await;
            let bare = of_bare(&frame).await;
            println!(
                "round {round}: {ours:>9.0} events/s, bare axum {bare:>9.0}, ratio {:.2}",
                ours / bare
            );
            ratios.push(ours / bare);
        }
        ratios.sort_by(f64::total_cmp);
        println!("FIGURE watchers_vs_bare_axum {:.2} x", ratios[ROUNDS / 2]);
        let mut ratios = Vec::new();
        for round in 0..ROUNDS {
            let watchers = ticks_of(|_| "/v1/sessions/s/events".to_owned()).await;
            let agents = ticks_of(attention).await;
            let ratio = agents / watchers;
            println!(
                "round {round}: ticks a commit for watchers {watchers:.1}, for agents {agents:.1}, ratio {ratio:.2}"
            );
            ratios.push(ratio);
        }
        ratios.sort_by(f64::total_cmp);
        println!("FIGURE attentions_vs_watchers {:.2} x", ratios[ROUNDS / 2]);
    });
}

/// What the n-th agent waits for.
fn attention(n: usize) -> String {
    let wanted = format!("%7B%22device%22:%22linux-{}%22%7D", n % 10);
    format!("/v1/sessions/s/agents/agent-{n}/attention?after=1&wait=60s&match={wanted}")
}

/// The processor time of the server for a commit, in ticks, while clients wait for these.
async fn ticks_of(path: impl Fn(usize) -> String) -> f64 {
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(&binary(), home, &FLAGS);
    let client = Client::builder().no_proxy().build().unwrap();
    let append = format!("http://{}/v1/sessions/s/requests", server.address);
    post(&client, &append).await;
    let mut clients = JoinSet::new();
    for n in 0..WATCHERS {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        stream.write_all(request(&path(n)).as_bytes()).await.expect("a request");
        clients.spawn(async move {
            let mut piece = [0; 16 << 10];
            while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
        });
    }
    sleep(SETTLED).await;
    let before = ticks(&server);
    for _ in 0..COMMITS {
        post(&client, &append).await;
        sleep(PACE).await;
    }
    sleep(SETTLED).await;
    let ticks = (ticks(&server) - before) as f64 / f64::from(COMMITS);
    clients.abort_all();
    ticks
}

/// Returns the processor time that a server has used, in ticks of the kernel's clock.
fn ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.child.id()));
    let stat = stat.expect("the server runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let used = fields.split_whitespace().skip(11).take(2);
    used.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// The events a second of the server, and one of its frames.
async fn of_server() -> (f64, String) {
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(&binary(), home, &FLAGS);
    let append = format!("http://{}/v1/sessions/s/trajectories", server.address);
    let client = Client::builder().no_proxy().build().unwrap();
    post(&client, &append).await;
    let mut frames = TcpStream::connect(server.address).await.unwrap();
    frames.write_all(request("/v1/sessions/s/events?after=0").as_bytes()).await.unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains("}\n\n") {
        let read = frames.read(&mut piece).await.unwrap();
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    let begin = text.rfind("id: ").expect("a frame");
    let end = text.find("}\n\n").expect("its end") + 3;
    let rate = rate(server.address, "/v1/sessions/s/events", &append).await;
    (rate, text[begin..end].to_owned())
}

/// The events a second of bare axum with this frame.
async fn of_bare(frame: &str) -> f64 {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("frame");
    fs::write(&file, frame).expect("a file");
    let mut bare = Bare(
        Command::new(bare_axum()).arg(file).stderr(Stdio::piped()).spawn().expect("bare axum"),
    );
    let log = BufReader::new(bare.0.stderr.take().expect("its log"));
    let line = log
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("http://"))
        .expect("an address");
    let address: SocketAddr =
        line[line.find("http://").unwrap() + 7..].trim().parse().expect("an address");
    rate(address, "/events", &format!("http://{address}/item")).await
}

/// Ends with the benchmark.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn bare_axum() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    own.parent().and_then(|deps| deps.parent()).expect("a target directory").join("bare-axum")
}

/// Opens the streams, appends, and counts the frames of a window.
async fn rate(address: SocketAddr, events: &str, append: &str) -> f64 {
    let (opened, frames) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for n in 0..WATCHERS {
        tasks.spawn(watch(address, request(events), Arc::clone(&opened), Arc::clone(&frames)));
        if n % 100 == 0 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    let begun = Instant::now();
    while opened.load(Ordering::Relaxed) < WATCHERS {
        assert!(begun.elapsed() < Duration::from_secs(60), "{opened:?} streams are open");
        sleep(Duration::from_millis(20)).await;
    }
    let client = Client::builder().no_proxy().build().unwrap();
    // A stream of the server begins with a frame without an event.
    sleep(WARM_UP).await;
    let first = frames.load(Ordering::Relaxed);
    let (mut begun, mut before, mut sent) = (Instant::now(), None, 0);
    while before.is_none() || begun.elapsed() < WINDOW {
        if before.is_none() && begun.elapsed() >= WARM_UP {
            (begun, before) = (Instant::now(), Some(sent));
        }
        post(&client, append).await;
        sent += WATCHERS;
        while frames.load(Ordering::Relaxed) < first + sent {
            sleep(LOOK).await;
        }
    }
    let rate = (sent - before.unwrap_or_default()) as f64 / begun.elapsed().as_secs_f64();
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    rate
}

/// Reads a stream, and counts its frames.
async fn watch(
    address: SocketAddr,
    request: String,
    opened: Arc<AtomicUsize>,
    frames: Arc<AtomicUsize>,
) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let (mut piece, mut last, mut is_open) = ([0; 16 << 10], 0, false);
    while let Ok(read) = stream.read(&mut piece).await {
        assert!(read > 0, "a stream ended");
        if !is_open {
            assert!(piece.starts_with(b"HTTP/1.1 200"), "a stream was refused");
            is_open = true;
            opened.fetch_add(1, Ordering::Relaxed);
        }
        let mut count = 0;
        for &byte in &piece[..read] {
            count += usize::from(byte == b'\n' && last == b'\n');
            last = byte;
        }
        frames.fetch_add(count, Ordering::Relaxed);
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
}

async fn post(client: &Client, to: &str) {
    let request = client.post(to).header("content-type", "application/json").body(ITEM);
    let answer = request.send().await.expect("an answer").error_for_status();
    answer.expect("an append is taken").bytes().await.expect("an answer");
}
