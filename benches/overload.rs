//! Goodput at three times the load.
//!
//! `cargo bench --bench overload` builds and starts the release server; `-- PATH` takes another binary. First, writers
//! that wait for each answer find the maximum rate of durable writes; then three times that rate is sent, regardless of
//! answers. Goodput is the writes completed in a second, relative to the maximum of the same run. With two processors
//! or more the server gets the first half and the load generator the others, so that the load takes nothing from the
//! server.
#![allow(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

mod server;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use server::{Server, binary};

const FLAGS: [&str; 4] = ["--connections-max", "10000", "--session-items-max", "100000000"];

/// Those who find the most that can be done.
const WRITERS: usize = 64;
const FINDING: Duration = Duration::from_secs(5);

/// How often as much is offered then.
const TIMES: f64 = 3.0;
const OFFERING: Duration = Duration::from_secs(10);

/// As many as the server takes; more than may wait for its writer.
const CONNECTIONS: usize = 9_900;

/// What is not answered by then is of no use any more.
const DEADLINE: Duration = Duration::from_secs(1);

/// How often what is due is sent.
const TICK: Duration = Duration::from_millis(1);

/// After so long a client goes away.
const GONE: Duration = Duration::from_secs(5);

fn main() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit can be raised to the hard one");
    let (for_server, for_load) = halves();
    // A child inherits it.
    sched_setaffinity(None, &for_server).expect("our own processors");
    let home = tempfile::tempdir().expect("a directory");
    let server = Server::start(&binary(), home, &FLAGS);
    sched_setaffinity(None, &for_load).expect("our own processors");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((for_load.count() as usize).max(1))
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        most(server.address, Duration::from_secs(1)).await;
        let most = most(server.address, FINDING).await;
        println!("the most durable writes a second, {WRITERS} writers: {most:.0}");
        let mut found = offer(server.address, most * TIMES).await;
        found.print(most);
    });
}

/// The processors, halved; twice the same where there is one.
fn halves() -> (CpuSet, CpuSet) {
    let all = sched_getaffinity(None).expect("our processors");
    let of_all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect();
    if of_all.len() < 2 {
        return (all, all);
    }
    let set = |cpus: &[usize]| {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    };
    let (first, second) = of_all.split_at(of_all.len() / 2);
    (set(first), set(second))
}

/// A connection, and what of an answer has come.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    come: Vec<u8>,
}

impl Client {
    /// Each writes to one of 64 sessions.
    async fn open(address: SocketAddr, n: usize) -> Self {
        let stream = loop {
            match TcpStream::connect(address).await {
                Ok(stream) => break stream,
                Err(_) => sleep(TICK).await,
            }
        };
        stream.set_nodelay(true).expect("a socket");
        let item = r#"{"step":1,"thought":"Open the spreadsheet, then look for the total.","status":"CONTINUE"}"#;
        let (session, length) = (n % 64, item.len());
        let request = format!(
            "POST /v1/sessions/s{session}/trajectories HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{item}"
        );
        Self { stream, request: request.into_bytes(), come: Vec::with_capacity(2048) }
    }

    /// Writes once; the status of the answer, and whether it says when to come back.
    async fn write(&mut self) -> std::io::Result<(u16, bool)> {
        self.stream.write_all(&self.request).await?;
        self.come.clear();
        loop {
            if self.stream.read_buf(&mut self.come).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some(head) = self.come.windows(4).position(|end| end == b"\r\n\r\n") else {
                continue;
            };
            let text = std::str::from_utf8(&self.come[..head]).expect("text");
            let length = text.split_once("content-length: ").expect("a length").1;
            let length: usize = length.split("\r\n").next().unwrap().parse().expect("a length");
            if self.come.len() >= head + 4 + length {
                return Ok((
                    text[9..12].parse().expect("a status"),
                    text.contains("retry-after: "),
                ));
            }
        }
    }
}

/// What so many writers, who wait for their answers, get done a second.
async fn most(address: SocketAddr, time: Duration) -> f64 {
    let begun = Instant::now();
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        writers.spawn(async move {
            let mut client = Client::open(address, n).await;
            let mut done = 0_u64;
            while begun.elapsed() < time {
                let (status, _) = client.write().await.expect("an answer");
                assert_eq!(status, 201);
                done += 1;
            }
            done
        });
    }
    let done: u64 = writers.join_all().await.into_iter().sum();
    done as f64 / begun.elapsed().as_secs_f64()
}

/// What became of the writes that were offered.
#[derive(Default)]
struct Found {
    /// No connection was free for them.
    unsent: usize,
    in_time: usize,
    late: usize,
    refused: usize,
    /// Refused without a word on when to come back.
    unadvised: usize,
    other: usize,
    lost: usize,
    /// In seconds.
    times: Vec<f64>,
    refused_times: Vec<f64>,
    took: f64,
    rate: f64,
}

impl Found {
    fn add(&mut self, answer: Option<&std::io::Result<(u16, bool)>>, took: Duration) {
        match answer {
            Some(Ok((201, _))) if took <= DEADLINE => self.in_time += 1,
            Some(Ok((201, _))) => self.late += 1,
            Some(Ok((503, advised))) => {
                self.refused += 1;
                self.unadvised += usize::from(!*advised);
                self.refused_times.push(took.as_secs_f64());
                return;
            }
            Some(Ok(_)) => self.other += 1,
            Some(Err(_)) | None => self.lost += 1,
        }
        self.times.push(took.as_secs_f64());
    }

    fn print(&mut self, most: f64) {
        let offered = self.rate * self.took;
        println!("offered: {:.0} a second for {:.1} s, {offered:.0} in all", self.rate, self.took);
        println!(
            "done within {DEADLINE:?}: {} ({:.0} a second); later: {}; refused with 503: {} ({} without Retry-After); \
             lost: {}; otherwise: {}; never sent, for want of one of {CONNECTIONS} connections: {}",
            self.in_time,
            self.in_time as f64 / self.took,
            self.late,
            self.refused,
            self.unadvised,
            self.lost,
            self.other,
            self.unsent,
        );
        for (what, times) in
            [("an answer", &mut self.times), ("a refusal", &mut self.refused_times)]
        {
            times.sort_by(f64::total_cmp);
            if let Some(last) = times.last() {
                let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
                println!(
                    "{what} took {:.1} ms (median), {:.1} ms (p99), {:.1} ms (longest)",
                    median * 1e3,
                    p99 * 1e3,
                    last * 1e3
                );
            }
        }
        println!("goodput: {:.2} of the most", self.in_time as f64 / self.took / most);
    }
}

/// Sends so many writes a second, whatever is answered.
async fn offer(address: SocketAddr, rate: f64) -> Found {
    let (free, mut idle) = mpsc::channel(CONNECTIONS);
    let mut opening = JoinSet::new();
    for opener in 0..WRITERS {
        let free = free.clone();
        opening.spawn(async move {
            for n in (opener..CONNECTIONS).step_by(WRITERS) {
                free.send(Client::open(address, n).await).await.expect("room");
            }
        });
    }
    opening.join_all().await;
    let found = Arc::new(Mutex::new(Found { rate, ..Found::default() }));
    let begun = Instant::now();
    let mut sent = 0.0;
    let mut writes = JoinSet::new();
    while begun.elapsed() < OFFERING {
        let due = begun.elapsed().as_secs_f64() * rate;
        while sent < due {
            sent += 1.0;
            let Ok(mut client) = idle.try_recv() else {
                found.lock().unwrap().unsent += 1;
                continue;
            };
            let (free, found) = (free.clone(), Arc::clone(&found));
            writes.spawn(async move {
                let begun = Instant::now();
                let answer = timeout(GONE, client.write()).await.ok();
                let is_whole = matches!(answer, Some(Ok(_)));
                found.lock().unwrap().add(answer.as_ref(), begun.elapsed());
                if is_whole {
                    free.send(client).await.ok();
                }
            });
        }
        while writes.try_join_next().is_some() {}
        sleep(TICK).await;
    }
    let took = begun.elapsed().as_secs_f64();
    writes.join_all().await;
    let mut found = std::mem::take(&mut *found.lock().unwrap());
    found.took = took;
    found
}
