//! Sessions beyond the memory budget: memory used, and the time of the first read of an evicted one.

use std::thread;

use tempfile::TempDir;

use crate::Failure;
use crate::figures::{figure, median, mib, ms};
use crate::fill::{array, session};
use crate::server::Server;
use crate::still::wait_still;
use crate::texts::{Kind, Texts};

const SESSIONS: usize = 100_000;
const ITEMS: usize = 20;
const CONNECTIONS: usize = 4;

/// How many sessions are read after the restart, each for the first time.
const READS: usize = 5_000;

/// The sync of each write is not what is measured here.
const OPTIONS: [&str; 4] = ["--memory-budget", "256MiB", "--sync", "normal"];

pub fn run() -> Result<(), Failure> {
    let dir = TempDir::new()?;
    let server = Server::start(dir.path(), &OPTIONS)?;
    let payload = fill(&server)?;
    let (filled, fill_peak) = server.resident()?;
    println!("{SESSIONS} sessions with {:.0} MiB of items", mib(payload));
    println!("filled: {:.0} MiB resident, {:.0} at the peak", mib(filled), mib(fill_peak));
    let settling = wait_still(dir.path())?.as_secs_f64();
    let (settled, settled_peak) = server.resident()?;
    println!(
        "settled in {settling:.1} s: {:.0} MiB resident, {:.0} at the peak; stopped in {} ms",
        mib(settled),
        mib(settled_peak),
        server.stop()?.as_millis()
    );

    let server = Server::start(dir.path(), &OPTIONS)?;
    let (started, start_peak) = server.resident()?;
    println!(
        "started: ready after {:.0} ms, {:.0} MiB resident, {:.0} at the peak",
        ms(server.ready),
        mib(started),
        mib(start_peak)
    );
    let times = read(&server)?;
    let (after, peak) = server.resident()?;
    println!("{READS} read: {:.0} MiB resident, {:.0} at the peak", mib(after), mib(peak));
    let slowest = times.iter().copied().fold(0.0, f64::max);
    println!("the slowest first read took {slowest:.1} ms");
    figure("budget_resident_mib", mib(filled.max(settled).max(started).max(after)), "MiB");
    figure("budget_resident_peak_mib", mib(settled_peak.max(peak)), "MiB");
    figure("cold_read_ms_median", median(times), "ms");
    server.stop().map(drop)
}

/// Each session by one write, since who fills it is not what is measured.
fn fill(server: &Server) -> Result<u64, Failure> {
    thread::scope(|scope| {
        let fillers: Vec<_> =
            (0..CONNECTIONS).map(|first| scope.spawn(move || some(server, first))).collect();
        let mut payload = 0;
        for filler in fillers {
            payload += filler.join().map_err(|_| "a panic while filling")??;
        }
        Ok(payload)
    })
}

fn some(server: &Server, first: usize) -> Result<u64, Failure> {
    let (mut client, mut texts) = (server.client()?, Texts::of(Kind::Step));
    let mut payload = 0;
    for number in (first..SESSIONS).step_by(CONNECTIONS) {
        let (array, bytes) = array(&mut texts, ITEMS);
        client.post(&format!("/v1/sessions/{}/trajectories", session(number)), &array)?;
        payload += bytes;
    }
    Ok(payload)
}

/// How many ms each first read takes, of sessions all over the store.
fn read(server: &Server) -> Result<Vec<f64>, Failure> {
    /// Coprime to their number, so that none is read twice.
    const STEP: usize = 61_803;
    let mut client = server.client()?;
    let mut times = Vec::new();
    for read in 0..READS {
        let name = session(read * STEP % SESSIONS);
        times.push(ms(client.get(&format!("/v1/sessions/{name}/prompt"))?.1));
    }
    Ok(times)
}
