//! Costs of many sessions, long sessions and long histories, as figures, some of which are promised.
//!
//! `cargo bench --bench scale` measures all of it and takes some minutes, 3 GiB of memory and 8 GiB in a temporary
//! directory; `-- settled disk` measures only these parts. A line `FIGURE name value unit` is a promised figure; other
//! lines are observations. Times depend on the machine, so compare ratios. Parts that need a separate process run the
//! release binary; the others run the service here.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it found")]
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a program of its own, of which the modules are the parts"
)]

mod append;
mod budget;
mod client;
mod disk;
mod figures;
mod fill;
mod resident;
mod restart;
mod server;
mod still;
mod texts;

use std::process::ExitCode;
use std::time::Instant;

use tikv_jemallocator::Jemalloc;

/// As in the server.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures, and tells what it found.
type Part = fn() -> Result<(), Failure>;

/// Each part of it by its name.
const PARTS: [(&str, Part); 6] = [
    ("append", append::run),
    ("resident", resident::run),
    ("disk", disk::run),
    ("settled", restart::settled),
    ("unsettled", restart::unsettled),
    ("budget", budget::run),
];

fn main() -> ExitCode {
    // As the server does.
    rustix::thread::disable_transparent_huge_pages(true).ok();
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let known = |name: &String| PARTS.iter().any(|(part, _)| part == name);
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        println!("there is no part '{unknown}', only {}", PARTS.map(|(part, _)| part).join(", "));
        return ExitCode::FAILURE;
    }
    let mut failed = false;
    for (name, run) in PARTS {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        println!("# {name}");
        let begin = Instant::now();
        if let Err(failure) = run() {
            println!("FAILED {name}: {failure}");
            failed = true;
        }
        println!("({name} took {:.1} s)", begin.elapsed().as_secs_f64());
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
