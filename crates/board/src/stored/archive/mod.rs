//! Archives: a session and its history as lines of JSON.
//!
//! Another server can import an archive.
//!
//! ```text
//! {"blackboard_archive":1,"oldest_revision":B,"revision":R,"is_partial":false}
//! {"image":{"sha256":"…","bytes":n,"base64":"…"}}     ordered by digest, all images that the history names
//! {"part":…,"crc":"…"}                                the base at B; absent if the history begins empty
//! {"commit":…,"crc":"…"}                              commits after B up to R, exactly as stored
//! {"end":{"images":n,"parts":n,"commits":n}}          if absent, the archive is truncated
//! ```
//! The archive of a damaged session holds what could be read. It is partial, and `head` in its last line is the session's
//! last revision.
//!
//! A checksum is the CRC-32 (IEEE) of the revision, as eight bytes little-endian, and the member's bytes.

mod line;
mod read;

pub use line::{
    Counts, Header, LINE_BYTES_MAX, commit_line, cut_end_line, cut_header_line, end_line,
    header_line, image_line, part_line,
};
pub use read::{ArchiveReader, Fault, Taken};

#[cfg(test)]
mod tests;
