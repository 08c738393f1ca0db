//! Wait for an idle server: its maintenance is done once its files stop changing.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use crate::Failure;

/// Files that do not change for so long hold what they will hold.
const STILL: Duration = Duration::from_secs(2);

const LOOK: Duration = Duration::from_millis(50);

const STILL_MAX: Duration = Duration::from_secs(300);

/// Waits until nothing changes any more in a data directory, and gives the time until then.
pub fn wait_still(dir: &Path) -> Result<Duration, Failure> {
    let begin = Instant::now();
    let (mut seen, mut since) = (files(dir)?, begin);
    while since.elapsed() < STILL {
        if begin.elapsed() > STILL_MAX {
            return Err("the files of the store change for ever".into());
        }
        sleep(LOOK);
        let now = files(dir)?;
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    Ok(since - begin)
}

/// How long each file is, and when it was last written to: settling fills the room that it makes.
fn files(dir: &Path) -> Result<Vec<(u64, SystemTime)>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let metadata = entry?.metadata()?;
        if metadata.is_file() {
            files.push((metadata.len(), metadata.modified()?));
        }
    }
    Ok(files)
}
