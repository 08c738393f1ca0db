//! Figures of a measurement and their output.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::Failure;

/// One of the figures that are promised, for whoever gathers them.
pub fn figure(key: &str, value: f64, unit: &str) {
    println!("FIGURE {key} {value:.3} {unit}");
}

/// The middle one, or 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The bytes that the files of a directory take on the disk.
pub fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
    use std::os::unix::fs::MetadataExt as _;
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += metadata.blocks() * BLOCK_BYTES;
        if metadata.is_dir() {
            bytes += disk_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}
