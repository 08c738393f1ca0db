//! The cost of a backup: p99 of appends without, during and after it.
//!
//! `cargo bench --bench backup` builds and starts the release server; `-- PATH` takes another binary, and a number sets
//! the MiB to copy (5,120). Each writer appends to a session of its own and waits for each answer. Latencies with and
//! without a backup come from the same run; writes within ten seconds after the backup count as after it. The length of
//! the write-ahead log is sampled throughout.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark tells what it found"
)]

mod server;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use server::{Server, binary};

const WRITERS: usize = 8;

/// How long they write without a backup, and after it.
const BESIDE: Duration = Duration::from_secs(10);

/// How much is there unless told otherwise, in MiB.
const STORED_MIB: usize = 5 << 10;

/// How many sessions that lies in.
const SESSIONS: usize = 64;

const SMALL: &str =
    r#"{"step":1,"thought":"Open the spreadsheet, then look for the total.","status":"CONTINUE"}"#;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let stored = arguments.find_map(|argument| argument.parse().ok()).unwrap_or(STORED_MIB);
    let (path, home) = (binary(), tempfile::tempdir().expect("a directory"));
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let server = Server::start(&path, home, &[]);
    fill(server.address, stored);
    println!("{stored} MiB in {SESSIONS} sessions; {WRITERS} writers");
    let without = write_while(server.address, || thread::sleep(BESIDE));
    tell("without a backup", &without, &data);
    let mut longest = 0;
    let begun = Instant::now();
    let during = write_while(server.address, || longest = back_up(&path, &data, &to));
    let took = begun.elapsed();
    tell("during a backup", &during, &data);
    let after = write_while(server.address, || thread::sleep(BESIDE));
    tell("after it", &after, &data);
    println!("the backup took {took:.1?}; the log was at most {} MiB long", longest >> 20);
    let ratio = |times: &[Duration]| p99(times).as_secs_f64() / p99(&without).as_secs_f64();
    println!("p99 during / without: {:.2}, after / without: {:.2}", ratio(&during), ratio(&after));
}

fn tell(what: &str, times: &[Duration], data: &Path) {
    let log = fs::metadata(data.join("blackboard.db-wal")).map_or(0, |log| log.len());
    println!(
        "{what}: {} appends, p50 {:.2?}, p99 {:.2?}, longest {:.2?}; the log has {} MiB",
        times.len(),
        times.get(times.len() / 2).copied().unwrap_or_default(),
        p99(times),
        times.last().copied().unwrap_or_default(),
        log >> 20
    );
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() * 99 / 100).copied().unwrap_or_default()
}

/// One connection that appends to one session.
struct Client {
    stream: BufReader<TcpStream>,
    session: String,
}

impl Client {
    fn open(address: SocketAddr, session: String) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Self { stream: BufReader::new(stream), session }
    }

    fn append(&mut self, body: &str) {
        let Self { stream, session } = self;
        write!(
            stream.get_mut(),
            "POST /v1/sessions/{session}/trajectories HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("it is taken");
        let (mut length, mut line) = (0, String::new());
        stream.read_line(&mut line).expect("a status");
        assert!(line.contains(" 201 "), "{line}");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).expect("a header");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length");
            }
        }
        stream.read_exact(&mut vec![0; length]).expect("an answer");
    }
}

/// Text that packing makes hardly shorter than half.
fn letters(state: &mut u64) -> char {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    char::from(b'a' + (*state >> 32) as u8 % 26)
}

fn fill(address: SocketAddr, mib: usize) {
    thread::scope(|threads| {
        for writer in 0..WRITERS {
            threads.spawn(move || {
                let mut state = writer as u64 + 1;
                let mut clients: Vec<_> = (writer..SESSIONS)
                    .step_by(WRITERS)
                    .map(|n| Client::open(address, format!("stored{n}")))
                    .collect();
                for n in 0..2 * mib / WRITERS {
                    let text: String = (0..512 << 10).map(|_| letters(&mut state)).collect();
                    let place = n % clients.len();
                    clients[place].append(&format!("{{\"text\":\"{text}\"}}"));
                }
            });
        }
    });
}

/// How long each append took while this was done, in order of length.
fn write_while(address: SocketAddr, act: impl FnOnce()) -> Vec<Duration> {
    let is_over = AtomicBool::new(false);
    let mut times: Vec<Duration> = thread::scope(|threads| {
        let write = |n| {
            let is_over = &is_over;
            threads.spawn(move || {
                let mut client = Client::open(address, format!("w{n}"));
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    client.append(SMALL);
                    times.push(begun.elapsed());
                }
                times
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        act();
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    times.sort_unstable();
    times
}

/// Makes a backup; how long the log became meanwhile.
fn back_up(path: &str, data: &Path, to: &PathBuf) -> u64 {
    let mut backup = Command::new(path)
        .args(["backup", "--data"])
        .arg(data)
        .arg("--to")
        .arg(to)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut longest = 0;
    let status = loop {
        let log = fs::metadata(data.join("blackboard.db-wal")).map_or(0, |log| log.len());
        longest = longest.max(log);
        if let Some(status) = backup.try_wait().expect("a child") {
            break status;
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "no backup");
    longest
}
