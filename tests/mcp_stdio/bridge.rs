//! Bridge `blackboard mcp` as a host starts it: lines in, lines out.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};

use crate::DEADLINE;

pub(crate) struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Option<JoinHandle<String>>,
}

/// How a bridge ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The output that no test has read yet.
    pub(crate) rest: Vec<String>,
    pub(crate) log: String,
}

/// The command, with none of the caller's settings.
pub(crate) fn command(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blackboard"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BLACKBOARD_") {
            command.env_remove(name);
        }
    }
    command.args(["mcp", "--url", url]).env("BLACKBOARD_LOG", "trace");
    command
}

impl Bridge {
    pub(crate) fn to(url: &str) -> Self {
        Self::start(command(url))
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let mut errors = child.stderr.take().expect("its log");
        let (line, lines) = channel();
        thread::spawn(move || {
            for read in BufReader::new(output).lines() {
                line.send(read.expect("text")).ok();
            }
        });
        let log = thread::spawn(move || {
            let mut log = String::new();
            errors.read_to_string(&mut log).expect("text");
            log
        });
        Self { child, input, lines, log: Some(log) }
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("an open input").write_all(bytes).expect("written");
    }

    /// The next line, which must come before the deadline.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }

    /// The message of the error that a request gets, whose id must be the request's.
    pub(crate) fn refusal(&mut self, line: &str) -> String {
        let answer: serde_json::Value = serde_json::from_str(&self.ask(line)).expect("JSON");
        let request: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(answer["id"], request["id"], "{answer}");
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        answer["error"]["message"].as_str().expect("a message").to_owned()
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> Ended {
        let mut rest = Vec::new();
        // The channel closes with the output.
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            rest.push(line);
        }
        let status = self.child.wait().expect("it ends");
        let log = self.log.take().expect("a log").join().expect("a log");
        Ended { status, rest, log }
    }

    /// Closes the input, and expects that the bridge then ends well, without further output.
    pub(crate) fn end(mut self) -> Ended {
        self.close_input();
        let ended = self.wait();
        assert!(ended.status.success(), "{}", ended.log);
        assert!(ended.rest.is_empty(), "{:?}", ended.rest);
        ended
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
