//! Packs the page's source for browsers: comments, empty lines and indentation are left out, and the styles are one file. So
//! are the libraries, whose files in the repository are as their packages have them.
//!
//! Compiled into the build script as well as into the server.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The file of all styles, in the order of their names.
const STYLES: &str = "style.css";

/// Reads the page's folder. Returns its files by their address.
pub(super) fn pack(folder: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let name = format!("{inside}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(format!("{name}/"));
            } else {
                files.insert(name, fs::read(entry.path())?);
            }
        }
    }
    let mut styles = Vec::new();
    files.retain(|name, content| {
        if name.ends_with(".css") || name.ends_with(".js") {
            *content = code_lines(content);
        }
        if name.ends_with(".css") {
            styles.append(content);
            return false;
        }
        true
    });
    files.insert(STYLES.to_owned(), styles);
    Ok(files)
}

/// Returns the source without indentation, empty lines and lines that hold nothing but a comment. White space at the beginning
/// of a line means nothing in it: HTML's templates pass over it.
fn code_lines(source: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(source.len());
    let mut inside = false;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        inside |= text.starts_with(b"/*");
        if inside {
            inside = !text.ends_with(b"*/");
        } else if text.starts_with(b"import {") {
            kept.extend_from_slice(short_import(line).as_bytes());
        } else if !text.is_empty() && !text.starts_with(b"//") {
            kept.extend_from_slice(line.trim_ascii_start());
        }
    }
    kept
}

/// Returns an import of names without the blanks that it can do without: each module has ten of them.
fn short_import(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    line.replace("import { ", "import{").replace(" } from ", "}from").replace(", ", ",")
}
