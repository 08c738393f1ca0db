//! Release server in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;
use crate::client::Client;

/// Between two looks at something that is awaited.
pub const POLL: Duration = Duration::from_millis(1);

/// How long a start may take at most.
const START_MAX: Duration = Duration::from_secs(120);

/// A running server; one that is not stopped is killed.
pub struct Server {
    child: Child,
    /// Its host and port.
    pub address: String,
    /// From its start to its line in the log that says where it listens.
    pub listening: Duration,
    /// From its start to the first good answer of `/readyz`.
    pub ready: Duration,
    /// The processors' time that it took until then.
    pub ready_cpu: Duration,
}

impl Server {
    pub fn start(data: &Path, options: &[&str]) -> Result<Self, Failure> {
        let begin = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_blackboard"))
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"])
            .arg(data)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()?;
        let log = BufReader::new(child.stdout.take().ok_or("the server has no log")?);
        let mut lines = log.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).ok_or("the server did not start")?;
        let listening = begin.elapsed();
        // Else it could wait for somebody who reads its log.
        std::thread::spawn(move || lines.for_each(drop));
        let (_, rest) = line.split_once("http://").ok_or("no address")?;
        let end = rest.find(|c: char| !(c.is_ascii_digit() || ":.".contains(c)));
        let address = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_owned();
        let mut server = Self { child, address, listening, ready: listening, ready_cpu: listening };
        while !server.client().is_ok_and(|mut client| client.get("/readyz").is_ok()) {
            if begin.elapsed() > START_MAX {
                return Err("the server does not become ready".into());
            }
            sleep(POLL);
        }
        server.ready = begin.elapsed();
        server.ready_cpu = server.cpu()?;
        Ok(server)
    }

    pub fn client(&self) -> Result<Client, Failure> {
        Client::connect(&self.address)
    }

    /// The bytes that it holds in memory now, and the most that it held so far.
    pub fn resident(&self) -> Result<(u64, u64), Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| -> Result<u64, Failure> {
            let line =
                status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no status")?;
            Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
        };
        Ok((bytes("VmRSS:")?, bytes("VmHWM:")?))
    }

    /// The processors' time that all its threads took.
    fn cpu(&self) -> Result<Duration, Failure> {
        /// `USER_HZ`, which Linux has been telling times in for ever.
        const TICKS_A_SECOND: u64 = 100;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // What follows the name, which may have spaces: the 14th and the 15th field are user and system time.
        let (_, rest) = stat.rsplit_once(')').ok_or("no stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = fields.get(11..13).ok_or("no times")?.iter().map(|field| field.parse::<u64>());
        let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND))
    }

    /// Ends it as a service manager does, and gives the time that this took.
    pub fn stop(mut self) -> Result<Duration, Failure> {
        let begin = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no process")?;
        kill_process(pid, Signal::TERM)?;
        if !self.child.wait()?.success() {
            return Err("the server ended badly".into());
        }
        Ok(begin.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
