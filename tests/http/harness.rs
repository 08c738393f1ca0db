//! Real server in a new directory: started, stopped, killed and restarted.
//!
//! Its log is shown if the test fails, and otherwise searched for secrets that no log may contain.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderMap;
use reqwest::{Body, Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::answer::{Answer, ask};
use crate::canaries::{self, Canaries};

/// How long anything may take that is not itself about time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Longer than a server over PostgreSQL takes to see a change of the tokens.
const TOKENS_WITHIN: Duration = Duration::from_millis(350);

/// All that RFC 3986 does not leave free in a segment or a value.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One name or value as it stands in a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The binary, with none of the caller's settings.
pub(crate) fn blackboard(arguments: &[&str]) -> Command {
    of_binary(env!("CARGO_BIN_EXE_blackboard"), arguments)
}

fn of_binary(binary: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BLACKBOARD_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end, which must come before the deadline.
pub(crate) fn finished(arguments: &[&str]) -> Output {
    let mut child = blackboard(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stdout = thread::spawn(move || drained(streams.0));
    let stderr = thread::spawn(move || drained(streams.1));
    let status = ended(&mut child).unwrap_or_else(|| {
        child.kill().expect("kill");
        child.wait().expect("wait");
        panic!("`blackboard {}` does not end", arguments.join(" "))
    });
    Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

fn drained(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("its output");
    bytes
}

/// The child's exit, or nothing when the deadline passes first.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return Some(status);
        }
        if start.elapsed() > DEADLINE {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A client that goes straight to where it is sent, and no further.
pub(crate) fn client() -> reqwest::Client {
    client_with(HeaderMap::new())
}

/// One that sends these headers with every request that has none of their names.
fn client_with(headers: HeaderMap) -> reqwest::Client {
    reqwest::Client::builder()
        .default_headers(headers)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(120))
        .build()
        .expect("a client")
}

/// A store in the PostgreSQL service that `BLACKBOARD_TEST_POSTGRES` names, as in `postgres://user@host:port/database`:
/// a schema of its own. `None` for an embedded store, in the server's directory.
#[derive(Clone)]
pub(crate) struct Schema(String);

impl Schema {
    pub(crate) fn new() -> Option<Self> {
        static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
        let service = std::env::var("BLACKBOARD_TEST_POSTGRES").ok()?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{}_{number}", since.as_secs(), std::process::id());
        Some(Self(format!("{service}?options=-csearch_path%3D{name}")))
    }

    /// Its address, as `--store` takes it.
    pub(crate) fn url(&self) -> &str {
        &self.0
    }
}

/// How many servers a test has on one PostgreSQL schema, by `BLACKBOARD_TEST_REPLICAS`: requests go to each in turn.
fn replicas() -> usize {
    let replicas = std::env::var("BLACKBOARD_TEST_REPLICAS").ok();
    replicas.map_or(1, |number| number.parse().expect("BLACKBOARD_TEST_REPLICAS is a number"))
}

/// The binary of one of them: of every other one that of another version, by `BLACKBOARD_TEST_OTHER`.
fn binary_of(number: usize) -> String {
    let other = std::env::var("BLACKBOARD_TEST_OTHER").ok().filter(|_| number % 2 == 1);
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_blackboard").to_owned())
}

/// Addresses that take turns.
#[derive(Clone)]
struct Turns {
    addresses: Arc<[String]>,
    next: Arc<AtomicUsize>,
}

impl Turns {
    fn of(addresses: Vec<String>) -> Self {
        Self { addresses: addresses.into(), next: Arc::default() }
    }

    fn next(&self) -> &str {
        // Not in a round, by which two requests of one test would always go to the same two servers.
        let number = self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9) >> 16;
        &self.addresses[number % self.addresses.len()]
    }
}

/// A running server. Dropped, it is killed and its directory goes.
pub(crate) struct Server {
    child: Child,
    /// The other servers on its schema.
    others: Vec<Child>,
    turns: Turns,
    address: String,
    said: Arc<Mutex<String>>,
    followers: Vec<JoinHandle<()>>,
    canaries: Canaries,
    flags: Vec<String>,
    home: Arc<TempDir>,
    schema: Option<Schema>,
    http: reqwest::Client,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more flags than the harness gives, `--log` perhaps among them; another given twice is a mistake.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::start_on(Schema::new(), flags)
    }

    /// On a store that other servers may use too.
    pub(crate) fn start_on(schema: Option<Schema>, flags: &[&str]) -> Self {
        let home = Arc::new(tempfile::tempdir().expect("a directory"));
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let said = Arc::new(Mutex::new(String::new()));
        let Launched { child, others, addresses, followers } =
            launch_all(&home, schema.as_ref(), &flags, &said);
        let address = addresses[0].clone();
        let turns = Turns::of(addresses);
        let (canaries, http) = (Canaries::default(), client_with(canaries::headers()));
        Self { child, others, turns, address, said, followers, canaries, flags, home, schema, http }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The place of its store, as commands take it.
    pub(crate) fn place(&self) -> [String; 2] {
        match &self.schema {
            Some(schema) => ["--store".to_owned(), schema.url().to_owned()],
            None => ["--data".to_owned(), self.data().display().to_string()],
        }
    }

    /// Its schema, if its store is in PostgreSQL.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// Waits until a change of the tokens by a command holds: at once in a directory.
    pub(crate) fn settle(&self) {
        if self.schema.is_some() {
            thread::sleep(TOKENS_WITHIN);
        }
    }

    /// `127.0.0.1:41234`
    pub(crate) fn authority(&self) -> &str {
        self.address.trim_start_matches("http://")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn to(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.turns.next()))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        ask(self.to(Method::GET, path)).await
    }

    pub(crate) fn board(&self, session: &str) -> Board {
        self.canaries.name(session);
        let turns = self.turns.clone();
        Board { turns, canaries: self.canaries.clone(), ..Board::at(&self.http, "", session) }
    }

    /// A session made by name, so that reads of it work before anything is written.
    pub(crate) async fn made(&self, session: &str) -> Board {
        let board = self.board(session);
        board.put("", "{}").await.is(201);
        board
    }

    /// Power cut for the process: nothing is asked of it any more.
    pub(crate) fn kill(&mut self) {
        for child in self.others.iter_mut().chain([&mut self.child]) {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
        self.others.clear();
    }

    /// A session's board on the other servers, if there are any, where this one is about to be killed. A dead server's port
    /// may be another test's at any time.
    pub(crate) fn board_without(&self, number: u32, session: &str) -> Option<Board> {
        let mut addresses = self.turns.addresses.to_vec();
        addresses.remove(number as usize % addresses.len());
        let turns = (!addresses.is_empty()).then(|| Turns::of(addresses))?;
        Some(Board { turns, ..self.board(session) })
    }

    /// Kills one of the servers, by a number that may be any, and starts another in its place; its address may be another.
    pub(crate) fn replace(&mut self, number: u32) {
        let mut addresses = self.turns.addresses.to_vec();
        let number = number as usize % addresses.len();
        let child = if number == 0 { &mut self.child } else { &mut self.others[number - 1] };
        child.kill().expect("kill");
        child.wait().expect("wait");
        let (schema, said) = (self.schema.as_ref(), &self.said);
        let (launched, address, more) =
            launch(&binary_of(number), &self.home, schema, &self.flags, said);
        *child = launched;
        self.followers.extend(more);
        addresses[number].clone_from(&address);
        if number == 0 {
            self.address = address;
        }
        self.turns = Turns::of(addresses);
    }

    /// What it has written on standard output and error, once these words are among it.
    pub(crate) fn said(&self, words: &str) -> String {
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            let said = self.said.lock().unwrap().clone();
            if said.contains(words) {
                return said;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the server never said {words:?}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        for child in self.others.iter().chain([&self.child]) {
            kill_process(Pid::from_child(child), signal).expect("a signal");
        }
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        for mut other in self.others.drain(..) {
            ended(&mut other).expect("the server ends");
        }
        ended(&mut self.child).expect("the server ends")
    }

    /// Starts again on the same directory; the address may be another.
    pub(crate) fn start_again(&mut self) {
        let launched = launch_all(&self.home, self.schema.as_ref(), &self.flags, &self.said);
        (self.child, self.others) = (launched.child, launched.others);
        self.followers.extend(launched.followers);
        self.address = launched.addresses[0].clone();
        self.turns = Turns::of(launched.addresses);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.others.iter_mut().chain([&mut self.child]) {
            if child.try_wait().is_ok_and(|status| status.is_none()) {
                child.kill().ok();
                child.wait().ok();
            }
        }
        let is_followed = self.followers.drain(..).all(|follower| follower.join().is_ok());
        let said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if thread::panicking() {
            let from = said.len().saturating_sub(20_000);
            let tail = said.get(said.ceil_char_boundary(from)..).unwrap_or_default();
            eprintln!("--- what the server said\n{tail}--- its end");
            return;
        }
        assert!(is_followed, "what the server said was not read to its end");
        self.canaries.check(&said);
    }
}

/// Servers that listen.
struct Launched {
    child: Child,
    others: Vec<Child>,
    addresses: Vec<String>,
    followers: Vec<JoinHandle<()>>,
}

/// Starts as many servers as a test has, every other one of the other version.
fn launch_all(
    home: &TempDir,
    schema: Option<&Schema>,
    flags: &[String],
    said: &Arc<Mutex<String>>,
) -> Launched {
    let (child, address, followers) = launch(&binary_of(0), home, schema, flags, said);
    let (mut others, mut addresses) = (Vec::new(), vec![address]);
    let mut followers = Vec::from(followers);
    let count = if schema.is_some() { replicas() } else { 1 };
    for number in 1..count {
        let (child, address, more) = launch(&binary_of(number), home, schema, flags, said);
        others.push(child);
        addresses.push(address);
        followers.extend(more);
    }
    Launched { child, others, addresses, followers }
}

/// Starts it, and waits until it says where it listens; who reads what it says goes on until it ends.
fn launch(
    binary: &str,
    home: &TempDir,
    schema: Option<&Schema>,
    flags: &[String],
    said: &Arc<Mutex<String>>,
) -> (Child, String, [JoinHandle<()>; 2]) {
    let log: &[&str] =
        if flags.iter().any(|flag| flag == "--log") { &[] } else { &["--log", "trace"] };
    let mut serve = of_binary(binary, &["serve", "--listen", "127.0.0.1:0"]);
    match schema {
        Some(schema) => serve.args(["--store", schema.url()]),
        None => serve.arg("--data").arg(home.path().join("data")),
    };
    let mut child = serve
        .args(log)
        .args(flags)
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let (line, lines) = channel();
    let followers = [
        follow(child.stdout.take().unwrap(), line.clone(), Arc::clone(said)),
        follow(child.stderr.take().unwrap(), line, Arc::clone(said)),
    ];
    match listening(&lines) {
        Some(address) => (child, address, followers),
        None => {
            child.kill().expect("kill");
            child.wait().expect("wait");
            panic!("no server listens; it said:\n{}", said.lock().unwrap());
        }
    }
}

fn follow(
    stream: impl Read + Send + 'static,
    line: Sender<String>,
    said: Arc<Mutex<String>>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            said.lock().unwrap().push_str(&text);
            // Nobody listens any more once the address is known.
            line.send(text).ok();
            bytes.clear();
        }
    })
}

fn listening(lines: &Receiver<String>) -> Option<String> {
    let start = Instant::now();
    loop {
        let left = DEADLINE.checked_sub(start.elapsed())?;
        match lines.recv_timeout(left) {
            Ok(line) if line.contains("listening") => {
                let rest = &line[line.find("http://")?..];
                let end = rest.find(|c: char| !(c.is_alphanumeric() || ":/.[]-".contains(c)));
                let address = &rest[..end.unwrap_or(rest.len())];
                return Some(address.trim_end_matches('/').to_owned());
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// One session's board, as a client sees it. A tail is what follows the session in the path.
#[derive(Clone)]
pub(crate) struct Board {
    http: reqwest::Client,
    turns: Turns,
    root: String,
    canaries: Canaries,
}

impl Board {
    /// On the server at this address.
    pub(crate) fn at(http: &reqwest::Client, address: &str, session: &str) -> Self {
        let root = format!("/v1/sessions/{}", encoded(session));
        let turns = Turns::of(vec![address.to_owned()]);
        Self { http: http.clone(), turns, root, canaries: Canaries::default() }
    }

    pub(crate) fn to(&self, method: Method, tail: &str) -> RequestBuilder {
        let slash = if tail.is_empty() || tail.starts_with('?') { "" } else { "/" };
        self.http.request(method, format!("{}{}{slash}{tail}", self.turns.next(), self.root))
    }

    /// A request whose body is JSON text, sent byte for byte.
    pub(crate) fn json(&self, method: Method, tail: &str, text: &str) -> RequestBuilder {
        self.typed(method, tail, "application/json", text.to_owned())
    }

    pub(crate) fn typed(
        &self,
        method: Method,
        tail: &str,
        media_type: &str,
        body: impl Into<Body>,
    ) -> RequestBuilder {
        let body: Body = body.into();
        self.canaries.body(body.as_bytes().unwrap_or_default());
        self.to(method, tail).header("content-type", media_type).body(body)
    }

    pub(crate) async fn get(&self, tail: &str) -> Answer {
        ask(self.to(Method::GET, tail)).await
    }

    pub(crate) async fn delete(&self, tail: &str) -> Answer {
        ask(self.to(Method::DELETE, tail)).await
    }

    pub(crate) async fn post(&self, tail: &str, text: &str) -> Answer {
        ask(self.json(Method::POST, tail, text)).await
    }

    pub(crate) async fn put(&self, tail: &str, text: &str) -> Answer {
        ask(self.json(Method::PUT, tail, text)).await
    }

    /// RFC 7396.
    pub(crate) async fn merge(&self, tail: &str, text: &str) -> Answer {
        let media_type = "application/merge-patch+json";
        ask(self.typed(Method::PATCH, tail, media_type, text.to_owned())).await
    }

    /// PATCH with `application/json`: what the members mean is the route's affair.
    pub(crate) async fn patch(&self, tail: &str, text: &str) -> Answer {
        ask(self.json(Method::PATCH, tail, text)).await
    }

    /// A request with that JSON text, a merge patch where it patches, or without a body where there is no text.
    pub(crate) fn request(&self, method: Method, tail: &str, text: &str) -> RequestBuilder {
        match (&method, text) {
            (_, "") => self.to(method, tail),
            (&Method::PATCH, _) => {
                self.typed(method, tail, "application/merge-patch+json", text.to_owned())
            }
            _ => self.json(method, tail, text),
        }
    }

    /// The same, by an agent.
    pub(crate) fn by(&self, agent: &str, method: Method, tail: &str, text: &str) -> RequestBuilder {
        self.canaries.name(agent);
        self.request(method, tail, text).header("x-agent-id", encoded(agent))
    }

    /// The bare items of a log, a line each.
    pub(crate) async fn lines(&self, tail: &str) -> Vec<String> {
        let request = self.to(Method::GET, tail);
        let answer = ask(request.header("accept", "application/x-ndjson")).await;
        answer.is(200);
        answer.text().lines().map(str::to_owned).collect()
    }

    /// The whole board as its dictionary, to the byte.
    pub(crate) async fn dictionary(&self) -> String {
        self.get("blackboard").await.is(200).text().to_owned()
    }
}
