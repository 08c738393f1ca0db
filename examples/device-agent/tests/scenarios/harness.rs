//! Real server, and the example's processes: started, sent signals, and ended with their test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use device_agent::board::{Answer, Board};
use reqwest::{Method, Url};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

const AGENT: &str = env!("CARGO_BIN_EXE_device-agent");

/// The server's binary: `BLACKBOARD_BIN`, else that of the same build.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("BLACKBOARD_BIN")
        .map_or_else(|| Path::new(AGENT).with_file_name("blackboard"), PathBuf::from)
}

/// A process, killed when it is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as a supervisor does, and expects it to end well.
    pub(crate) fn stopped(mut self) {
        self.signal(Signal::TERM);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The token that writes in the name of one agent only; made when it is first needed.
fn token(home: &Path, agent: &str, scopes: &str) -> String {
    let (kept, data) = (home.join(format!("{agent}.token")), home.join("data"));
    if let Ok(token) = std::fs::read_to_string(&kept) {
        return token;
    }
    let mut command = Command::new(binary());
    command.args(["token", "create", "--create", "--data"]).arg(&data);
    let made = command.args(["--name", agent, "--agent", agent, "--scopes", scopes]).output();
    let made = made.unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    std::fs::write(&kept, &token).unwrap();
    token
}

/// A server with one session, and a directory for scripts and sandboxes.
pub(crate) struct World {
    _server: Process,
    pub(crate) url: Url,
    pub(crate) home: TempDir,
    /// The token of the person, which is in `person.token` too.
    pub(crate) token: String,
    /// The session, as the person who looks on.
    pub(crate) board: Board,
}

impl World {
    pub(crate) async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let person = token(home.path(), "person", "admin");
        let mut server = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "info", "--data"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
        let server = Process(server);
        let url = lines.by_ref().find_map(|line| {
            let said: Value = serde_json::from_str(&line).ok()?;
            let fields = if said["fields"].is_object() { &said["fields"] } else { &said };
            (fields["message"] == "listening")
                .then(|| fields["url"].as_str().unwrap().parse().unwrap())
        });
        // The server's log is read for as long as it writes one.
        std::thread::spawn(move || lines.for_each(drop));
        let url: Url = url.expect("the server listens");
        let board = Board::new(url.clone(), Some(person.clone()), "demo", "person").unwrap();
        board.write(Method::PUT, "", &json!({})).await.unwrap();
        Self { _server: server, url, home, token: person, board }
    }

    fn start(&self, arguments: &[&str]) -> Process {
        let own = token(self.home.path(), arguments[1], "read,write");
        let mut command = Command::new(AGENT);
        command
            .args(arguments)
            .env("BLACKBOARD_URL", self.url.as_str())
            .env("BLACKBOARD_SESSION", "demo");
        Process(command.env("BLACKBOARD_TOKEN", own).stdin(Stdio::null()).spawn().unwrap())
    }

    /// The directory of a device.
    pub(crate) fn root(&self, device: &str) -> PathBuf {
        let root = self.home.path().join(device);
        std::fs::create_dir_all(&root).unwrap();
        root
    }

    /// The command line of a tool server for a device's directory, with programs for its shell.
    pub(crate) fn sandbox(&self, device: &str, programs: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/sandbox.py");
        format!("python3 {script} {} {}", self.root(device).display(), programs.replace(',', " "))
    }

    /// Starts the client of a device with these tools, and programs for its shell.
    pub(crate) fn device(&self, name: &str, tools: &str, programs: &str) -> Process {
        let server = self.sandbox(name, programs);
        self.start(&["device", name, "--server", &server, "--tools", tools, "--ttl", "5"])
    }

    /// Starts an agent with a script: for each request its decisions.
    pub(crate) fn agent(&self, name: &str, kind: &str, script: &Value, more: &[&str]) -> Process {
        let path = self.home.path().join(format!("{name}.json"));
        std::fs::write(&path, script.to_string()).unwrap();
        let flags =
            ["agent", name, "--kind", kind, "--script", path.to_str().unwrap(), "--ttl", "3"];
        self.start(&[&flags, more].concat())
    }

    pub(crate) async fn post(&self, item: &Value) -> u64 {
        self.request(json!({"append": "requests", "item": item})).await
    }

    /// Appends a request with `after` or `attempts`; its place.
    pub(crate) async fn request(&self, operation: Value) -> u64 {
        let made = self.board.commit(json!([]), json!([operation])).await.unwrap();
        made["results"][0]["seq"].as_u64().unwrap()
    }

    /// Reads a resource as soon as it is as wanted.
    pub(crate) async fn when(
        &self,
        path: &str,
        wanted: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Value {
        let found = |answer: &Answer| wanted(&answer.body).then(|| answer.body.clone());
        let body = self.board.until(path, DEADLINE, found).await.unwrap();
        body.unwrap_or_else(|| panic!("{path} is not as wanted"))
    }

    /// The result of a request, once it is done.
    pub(crate) async fn done(&self, seq: u64) -> Value {
        let is_end = |entry: &Value| entry.get("done").or(entry.get("failed")).is_some();
        let entry = self.when(&format!("requests/{seq}"), is_end).await;
        assert!(entry.get("failed").is_none(), "{entry}");
        entry["done"]["result"].clone()
    }

    pub(crate) async fn items(&self, log: &str) -> Vec<Value> {
        let page = self.board.get(log, &[("limit", "1000")]).await.unwrap().body;
        page["entries"].as_array().unwrap().iter().map(|entry| entry["item"].clone()).collect()
    }

    /// The final prompt, without the fences, which depend on the order of registration.
    pub(crate) async fn prompt(&self) -> String {
        let url = self.url.join("v1/sessions/demo/prompt?format=markdown").unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let text =
            client.get(url).bearer_auth(&self.token).send().await.unwrap().text().await.unwrap();
        let mut parts = text.split("-f");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| {
            text + "-f" + part.trim_start_matches(|c: char| c.is_ascii_digit())
        })
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) {
        self.board.write(Method::PUT, path, body).await.unwrap();
    }
}

/// A command of a script.
pub(crate) fn tool(name: &str, parameters: &Value) -> Value {
    json!({"tool_name": name, "parameters": parameters})
}
