//! The writer and the parser of an archive's lines.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::Fault;
use crate::json;
use crate::{BLOB_BYTES_MAX, COMMIT_BYTES_MAX, Digest, Revision};

/// The maximum size of a line without its end, in bytes: the largest commit with its wrapping.
pub const LINE_BYTES_MAX: usize = COMMIT_BYTES_MAX + 64;

/// The version of the format.
const VERSION: u32 = 1;

const PART: &str = "{\"part\":";
const COMMIT: &str = "{\"commit\":";
const CRC: &str = ",\"crc\":\"";
const CLOSE: &str = "\"}";

/// The number of digits of a checksum.
const CRC_DIGITS: usize = 8;

/// The first and the last revision of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The revision at which the archive begins.
    pub oldest: Revision,
    /// The last revision.
    pub revision: Revision,
}

/// The counts in the last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the lines")]
pub struct Counts {
    pub images: u64,
    pub parts: u64,
    pub commits: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHeader {
    /// The version: the first member, by which an archive is known.
    blackboard_archive: u32,
    oldest_revision: Revision,
    revision: Revision,
    /// True if the session was damaged, and its last commits are missing.
    is_partial: bool,
}

/// The first line of builds before the first release.
#[derive(Deserialize)]
struct EarlierHeader<'a> {
    format: &'a str,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredImage<'a> {
    sha256: Digest,
    bytes: u64,
    base64: &'a str,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEnd {
    images: u64,
    parts: u64,
    commits: u64,
    /// The session's last revision, in a partial archive only.
    head: Option<Revision>,
}

/// Lines without a checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Plain<'a> {
    #[serde(borrow)]
    Image(StoredImage<'a>),
    End(StoredEnd),
}

/// A parsed line, whose checksum is not checked yet.
pub(super) enum Line<'a> {
    Image(Digest, Vec<u8>),
    Part(Sealed<'a>),
    Commit(Sealed<'a>),
    /// The counts, and the session's last revision if the archive is partial.
    End(Counts, Option<Revision>),
}

/// A member with its checksum.
pub(super) struct Sealed<'a> {
    pub(super) bytes: &'a [u8],
    crc: u32,
}

impl Sealed<'_> {
    /// Checks that these bytes were written at this revision.
    pub(super) fn check(&self, revision: Revision) -> Result<(), Fault> {
        let found = checksum(revision, self.bytes);
        if found == self.crc { Ok(()) } else { Err(Fault::Checksum { written: self.crc, found }) }
    }
}

/// Returns the first line.
#[must_use]
pub fn header_line(header: Header) -> String {
    first_line(header, false)
}

/// Returns the first line of a partial archive.
#[must_use]
pub fn cut_header_line(header: Header) -> String {
    first_line(header, true)
}

fn first_line(Header { oldest, revision }: Header, is_partial: bool) -> String {
    format!(
        "{{\"blackboard_archive\":{VERSION},\"oldest_revision\":{oldest},\"revision\":{revision},\"is_partial\":{is_partial}}}\n"
    )
}

/// Returns the line of an image.
#[must_use]
pub fn image_line(sha256: Digest, bytes: &[u8]) -> String {
    let length = bytes.len();
    let mut line = String::with_capacity(length.div_ceil(3) * 4 + 128);
    push(
        &mut line,
        format_args!("{{\"image\":{{\"sha256\":\"{sha256}\",\"bytes\":{length},\"base64\":\""),
    );
    STANDARD.encode_string(bytes, &mut line);
    line.push_str("\"}}\n");
    line
}

/// Returns the line of a part of the base.
#[must_use]
pub fn part_line(base: Revision, part: &str) -> String {
    sealed_line(PART, base, part)
}

/// Returns the line of a commit.
#[must_use]
pub fn commit_line(revision: Revision, body: &str) -> String {
    sealed_line(COMMIT, revision, body)
}

/// Returns the last line.
#[must_use]
pub fn end_line(counts: Counts) -> String {
    let Counts { images, parts, commits } = counts;
    format!("{{\"end\":{{\"images\":{images},\"parts\":{parts},\"commits\":{commits}}}}}\n")
}

/// Returns the last line of a partial archive, whose session reached `head`.
#[must_use]
pub fn cut_end_line(counts: Counts, head: Revision) -> String {
    let Counts { images, parts, commits } = counts;
    format!(
        "{{\"end\":{{\"images\":{images},\"parts\":{parts},\"commits\":{commits},\"head\":{head}}}}}\n"
    )
}

fn sealed_line(open: &str, revision: Revision, member: &str) -> String {
    let crc = checksum(revision, member.as_bytes());
    let mut line = String::with_capacity(member.len() + 64);
    push(&mut line, format_args!("{open}{member}{CRC}{crc:08x}{CLOSE}\n"));
    line
}

fn push(line: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    line.write_fmt(text).unwrap_or_default();
}

fn checksum(revision: Revision, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&revision.0.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

/// Reads the first line. The flag is true for a partial archive.
pub(super) fn read_header(line: &[u8]) -> Result<(Header, bool), Fault> {
    let stored: StoredHeader = serde_json::from_slice(line).map_err(|_| other_archive(line))?;
    let StoredHeader { blackboard_archive: found, oldest_revision: oldest, revision, is_partial } =
        stored;
    if found != VERSION {
        return Err(Fault::Version { found, known: VERSION });
    }
    Ok((Header { oldest, revision }, is_partial))
}

/// Returns what a first line is that is not of this format.
fn other_archive(line: &[u8]) -> Fault {
    let is_earlier = serde_json::from_slice(line)
        .is_ok_and(|EarlierHeader { format }| format == "blackboard-archive");
    if is_earlier { Fault::BeforeRelease } else { no_line(line, Fault::NoArchive) }
}

/// Reads any other line.
pub(super) fn read_line(line: &[u8]) -> Result<Line<'_>, Fault> {
    if line.contains(&b'\r') {
        // The writer never writes one, and a stored part must stay on one line.
        return Err(no_line(line, Fault::NoLine));
    }
    if let Some(sealed) = unseal(line, PART) {
        return Ok(Line::Part(sealed));
    }
    if let Some(sealed) = unseal(line, COMMIT) {
        return Ok(Line::Commit(sealed));
    }
    match serde_json::from_slice(line).map_err(|_| no_line(line, Fault::NoLine))? {
        Plain::End(StoredEnd { images, parts, commits, head }) => {
            Ok(Line::End(Counts { images, parts, commits }, head))
        }
        Plain::Image(image) => read_image(&image),
    }
}

fn read_image(image: &StoredImage<'_>) -> Result<Line<'static>, Fault> {
    let StoredImage { sha256, bytes: declared, base64 } = *image;
    let fault = Fault::Image { sha256 };
    if declared > BLOB_BYTES_MAX as u64 || base64.len() > BLOB_BYTES_MAX.div_ceil(3) * 4 {
        return Err(fault);
    }
    let Ok(bytes) = STANDARD.decode(base64) else { return Err(fault) };
    if bytes.len() as u64 != declared || Digest::of(&bytes) != sha256 {
        return Err(fault);
    }
    Ok(Line::Image(sha256, bytes))
}

fn unseal<'a>(line: &'a [u8], open: &str) -> Option<Sealed<'a>> {
    let inner = line.strip_prefix(open.as_bytes())?.strip_suffix(CLOSE.as_bytes())?;
    let (rest, digits) = inner.split_at_checked(inner.len().checked_sub(CRC_DIGITS)?)?;
    let bytes = rest.strip_suffix(CRC.as_bytes())?;
    let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| is_digit(&b)))?;
    Some(Sealed { bytes, crc: u32::from_str_radix(digits, 16).ok()? })
}

/// Returns the fault of an unknown line: malformed JSON, or the given one.
fn no_line(line: &[u8], otherwise: Fault) -> Fault {
    json::syntax(line).err().map_or(otherwise, Fault::Malformed)
}
