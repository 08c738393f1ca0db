//! MCP client of one tool server over its standard streams.
//!
//! It writes JSON-RPC itself, a message per line: cargo would unify the features of `rmcp`'s client into the server
//! that the workspace's tests run.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a server may take to start and to list its tools.
const START: Duration = Duration::from_secs(10);

/// A tool server: a child process that is asked one thing at a time and ends with this value.
#[derive(Clone)]
pub struct ToolServer {
    pub name: String,
    /// The schema of each tool's parameters, by name.
    pub schemas: BTreeMap<String, Value>,
    streams: Arc<Mutex<Streams>>,
}

struct Streams {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    last_id: u64,
}

impl ToolServer {
    /// Starts a tool server from its command line, and reads which tools it has.
    pub fn start(command: &str) -> io::Result<Self> {
        let mut words = command.split_whitespace();
        let mut process = Command::new(words.next().unwrap_or_default());
        let mut child = process.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (sender, receiver) = sync_channel(64);
        // Ends with the child's output, or with who reads it.
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let mut messages = lines.filter_map(|line| serde_json::from_str(&line).ok());
            messages.all(|message| sender.send(message).is_ok());
        });
        let mut streams = Streams { child, input, output: receiver, last_id: 0 };
        let info = json!({"name": "device-agent", "version": env!("CARGO_PKG_VERSION")});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let welcome = streams.ask("initialize", &hello, START)?;
        streams.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let listed = streams.ask("tools/list", &json!({}), START)?;
        let tools = listed["tools"].as_array().cloned().unwrap_or_default();
        let named =
            |tool: &Value| Some((tool["name"].as_str()?.to_owned(), tool["inputSchema"].clone()));
        let name = welcome["serverInfo"]["name"].as_str().unwrap_or_default().to_owned();
        let schemas = tools.iter().filter_map(named).collect();
        Ok(Self { name, streams: Arc::new(Mutex::new(streams)), schemas })
    }

    /// Calls a tool; a tool's own failure is a result with `isError`.
    pub async fn call(&self, tool: &str, arguments: &Value, within: Duration) -> io::Result<Value> {
        let call = json!({"name": tool, "arguments": arguments});
        let streams = Arc::clone(&self.streams);
        let asked = tokio::task::spawn_blocking(move || {
            streams.lock().unwrap_or_else(PoisonError::into_inner).ask("tools/call", &call, within)
        });
        asked.await.map_err(io::Error::other)?
    }
}

impl Streams {
    fn send(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.input, "{message}")?;
        self.input.flush()
    }

    fn ask(&mut self, method: &str, params: &Value, within: Duration) -> io::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message: Value = self.output.recv_timeout(left).map_err(io::Error::other)?;
            if message["id"] != json!(id) {
                continue; // A notification, or the answer to a call that was given up.
            }
            if let Some(refused) = message["error"]["message"].as_str() {
                return Err(io::Error::other(refused.to_owned()));
            }
            return Ok(message["result"].clone());
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}
