//! Packs and compresses the page's files for the binary.

#[path = "src/pack.rs"]
mod pack;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error, fs, io};

const PAGE: &str = "page";

/// Brotli's highest quality, and a window that holds the largest file.
const QUALITY: u32 = 11;
const WINDOW_BITS: u32 = 18;
const BUFFER_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo::rerun-if-changed={PAGE}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/pack.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("&[\n");
    for (number, (name, content)) in pack::pack(Path::new(PAGE))?.into_iter().enumerate() {
        let path = out.join(format!("page-{number}.br"));
        fs::write(&path, compressed(&content)?)?;
        writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())?;
    }
    table.push_str("]\n");
    fs::write(out.join("page.rs"), table)?;
    Ok(())
}

fn compressed(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = brotli::CompressorWriter::new(Vec::new(), BUFFER_BYTES, QUALITY, WINDOW_BITS);
    writer.write_all(content)?;
    Ok(writer.into_inner())
}
