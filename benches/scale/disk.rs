//! Disk space of items, after compaction and a clean stop.

use tempfile::TempDir;

use crate::Failure;
use crate::figures::{disk_bytes, figure, mib};
use crate::fill::{Plan, fill, open};
use crate::server::Server;
use crate::still::wait_still;
use crate::texts::Kind;

pub fn run() -> Result<(), Failure> {
    let of = |kind, commits| Plan { sessions: 100, commits, at_once: 100, kind };
    let text = measure("text", of(Kind::Step, 1_000))?;
    let noise = measure("noise", of(Kind::Noise, 1_000))?;
    let little = measure("little text", of(Kind::Step, 10))?;
    figure("disk_ratio", text, "x");
    figure("disk_ratio_noise", noise, "x");
    figure("disk_ratio_little", little, "x");
    Ok(())
}

fn measure(what: &str, plan: Plan) -> Result<f64, Failure> {
    let dir = TempDir::new()?;
    let payload = fill(&open(dir.path())?, plan)?;
    let before = disk_bytes(dir.path())?;
    let server = Server::start(dir.path(), &[])?;
    let took = wait_still(dir.path())?;
    let running = disk_bytes(dir.path())?;
    let stopped = server.stop()?;
    let after = disk_bytes(dir.path())?;
    let ratio = after as f64 / payload as f64;
    println!(
        "{what}: {:.1} MiB of items took {:.1} MiB as a journal, {:.1} MiB after {:.1} s, {:.1} MiB after the stop of {} ms: {ratio:.2}",
        mib(payload),
        mib(before),
        mib(running),
        took.as_secs_f64(),
        mib(after),
        stopped.as_millis(),
    );
    Ok(ratio)
}
