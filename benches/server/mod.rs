//! Server that a benchmark measures: started on a free port, ended with the benchmark.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running server, with a directory of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    _home: TempDir,
}

/// The binary to measure: the first argument that is no flag and no number, or else the one built with the benchmark.
pub(crate) fn binary() -> String {
    let mut arguments = std::env::args().skip(1);
    let given = arguments.find(|word| !word.starts_with('-') && word.parse::<usize>().is_err());
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_blackboard").to_owned())
}

impl Server {
    /// Starts it with these flags and its data in `data` of this directory.
    pub(crate) fn start(binary: &str, home: TempDir, flags: &[&str]) -> Self {
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .args(flags)
            .arg("--data")
            .arg(home.path().join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let log = BufReader::new(child.stdout.take().expect("its log"));
        let mut lines = log.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).expect("an address");
        let address = &line[line.find("http://").expect("an address") + 7..];
        let end = address.find(|c: char| !(c.is_ascii_digit() || ".:".contains(c)));
        let address = address[..end.unwrap_or(address.len())].parse().expect("an address");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, _home: home }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
