//! Server in a new directory, and commands against it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::DEADLINE;

/// The binary, with none of the caller's settings and a home without a configuration.
pub(crate) fn blackboard(home: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blackboard"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BLACKBOARD_") {
            command.env_remove(name);
        }
    }
    command.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME").env_remove("NO_COLOR");
    command.stdin(Stdio::null());
    command
}

/// How a command ended.
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) error: String,
}

impl Done {
    /// The output of a command that succeeded.
    pub(crate) fn text(self) -> String {
        assert!(self.status.success(), "{}", self.error);
        self.output
    }

    pub(crate) fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The one line of a command that failed with this exit code and printed nothing.
    pub(crate) fn refusal(self, code: i32) -> String {
        assert_eq!(self.status.code(), Some(code), "{}{}", self.output, self.error);
        assert_eq!(self.error.lines().count(), 1, "{}", self.error);
        assert!(self.output.is_empty(), "{}", self.output);
        self.error.strip_prefix("error: ").unwrap_or_else(|| panic!("{}", self.error)).to_owned()
    }
}

/// Runs a command to its end, with this text as its standard input.
pub(crate) fn finished(mut command: Command, input: &str) -> Done {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("its input");
    // A command that reads nothing may have ended already.
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Done { status: output.status, output: text(output.stdout), error: text(output.stderr) }
}

/// A command that runs on, whose lines are read as they come. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let (line, lines) = channel();
        let (error, errors) = channel();
        let (output, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        thread::spawn(move || {
            for read in BufReader::new(output).lines() {
                line.send(read.expect("text")).ok();
            }
        });
        thread::spawn(move || {
            for read in BufReader::new(stderr).lines() {
                error.send(read.expect("text")).ok();
            }
        });
        Self { child, lines, errors }
    }

    /// The next line of its output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    /// The next line of its standard error.
    pub(crate) fn error(&self) -> String {
        self.errors.recv_timeout(DEADLINE).expect("a line")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    /// Waits until it ends by itself; returns the lines that nobody has read, of its output and its standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, Vec<String>, Vec<String>) {
        let rest = |lines: &Receiver<String>| {
            let mut rest = Vec::new();
            // The channel closes with the stream.
            while let Ok(line) = lines.recv_timeout(DEADLINE) {
                rest.push(line);
            }
            rest
        };
        let (output, errors) = (rest(&self.lines), rest(&self.errors));
        (self.child.wait().expect("it ends"), output, errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A running server. Dropped, it is killed and its directory goes.
pub(crate) struct Server {
    process: Running,
    pub(crate) home: TempDir,
    flags: Vec<String>,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (process, url) = launch(&home, "127.0.0.1:0", &flags);
        Self { process, home, flags, url }
    }

    /// SIGKILL, as a power cut is to the process.
    pub(crate) fn kill(&mut self) {
        self.process.child.kill().expect("kill");
        self.process.child.wait().expect("wait");
    }

    /// SIGTERM, until it has ended.
    pub(crate) fn stop(&mut self) {
        self.process.signal(Signal::TERM);
        self.process.child.wait().expect("wait");
    }

    /// Starts again on the same directory and address.
    pub(crate) fn start_again(&mut self) {
        let address = self.url.trim_start_matches("http://").to_owned();
        (self.process, self.url) = launch(&self.home, &address, &self.flags);
    }

    /// A command on this server.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = blackboard(&self.home);
        command.args(arguments).env("BLACKBOARD_URL", &self.url);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        finished(self.command(arguments), "")
    }

    /// The command's table.
    pub(crate) fn table(&self, arguments: &[&str]) -> String {
        self.run(&[arguments, &["--format", "table"]].concat()).text()
    }

    /// The command's JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments).json()
    }

    /// A token made by the owner of the data directory, in a file.
    pub(crate) fn token(&self, name: &str, flags: &[&str]) -> String {
        let data = self.home.path().join("data");
        let mut command = blackboard(&self.home);
        command.args(["token", "create", "--name", name, "--data"]).arg(&data).args(flags);
        let token = finished(command, "").text().trim().to_owned();
        let path = self.home.path().join(format!("{name}.token"));
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn launch(home: &TempDir, address: &str, flags: &[String]) -> (Running, String) {
    let mut command = blackboard(home);
    command.args(["serve", "--listen", address, "--data"]).arg(home.path().join("data"));
    let process = Running::start({
        command.args(flags);
        command
    });
    loop {
        let said = process.line();
        if let Some(at) = said.find("http://").filter(|_| said.contains("listening")) {
            let is_url = |c: &char| c.is_alphanumeric() || ":/.[]-".contains(*c);
            let url: String = said[at..].chars().take_while(is_url).collect();
            return (process, url.trim_end_matches('/').to_owned());
        }
    }
}
