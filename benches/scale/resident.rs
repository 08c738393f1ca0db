//! Memory of boards that are all resident, each rendered once.

use tempfile::TempDir;

use crate::Failure;
use crate::figures::{figure, mib};
use crate::fill::array;
use crate::server::Server;
use crate::texts::{Kind, Texts};

const SESSIONS: usize = 200;
const ITEMS: usize = 1_000;

/// How many items a write brings.
const AT_ONCE: usize = 100;

/// More than all of it.
const OPTIONS: [&str; 2] = ["--memory-budget", "4GiB"];

pub fn run() -> Result<(), Failure> {
    let dir = TempDir::new()?;
    let server = Server::start(dir.path(), &OPTIONS)?;
    let (before, _) = server.resident()?;
    let (mut client, mut texts) = (server.client()?, Texts::of(Kind::Step));
    let mut payload = 0;
    for number in 0..SESSIONS {
        for _ in 0..ITEMS / AT_ONCE {
            let (array, bytes) = array(&mut texts, AT_ONCE);
            client.post(&format!("/v1/sessions/s{number}/trajectories"), &array)?;
            payload += bytes;
        }
    }
    let (written, _) = server.resident()?;
    render_all(&server)?;
    let (rendered, peak) = server.resident()?;
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / payload as f64;
    println!("{SESSIONS} boards of {ITEMS} items, {:.0} MiB of JSON in all", mib(payload));
    println!("resident a byte of it: {:.2} written, {:.2} rendered", each(written), each(rendered));
    println!("resident: {:.0} MiB before, {:.0} MiB at the peak", mib(before), mib(peak));
    figure("resident_ratio", each(rendered), "x");
    server.stop()?;

    let server = Server::start(dir.path(), &OPTIONS)?;
    render_all(&server)?;
    let (rendered, peak) = server.resident()?;
    println!("after a restart: {:.2} rendered, {:.2} at the peak", each(rendered), each(peak),);
    server.stop().map(drop)
}

fn render_all(server: &Server) -> Result<(), Failure> {
    let mut client = server.client()?;
    for number in 0..SESSIONS {
        client.get(&format!("/v1/sessions/s{number}/prompt"))?;
    }
    Ok(())
}
