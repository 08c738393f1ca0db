//! The last durable commit, noted in a file of its own, so that a start finds the loss of the latest ones.
//!
//! SQLite takes a log that was cut at its end for all there was, and cannot tell an older copy of a database. The note
//! is written after each sync and is not synced itself: it never names a commit that is not durable, and a power cut
//! may leave an earlier one.
//!
//! ```text
//! offset  size  field
//!      0    16  epoch of the store, big-endian
//!     16     8  id in the journal, u64, little-endian
//!     24     4  CRC-32 of the fields before, little-endian
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::inventory::Inventory;
use super::{DATABASE, epoch};
use crate::board::Epoch;
use crate::store::files::disk::FILE_MODE;
use crate::store::{JournalId, StoreError};

const NAME: &str = "last-commit";

const EPOCH_BYTES: usize = 16;
const FIELDS_BYTES: usize = EPOCH_BYTES + 8;
const BYTES: usize = FIELDS_BYTES + 4;

/// The note of a running store.
#[derive(Debug)]
pub(crate) struct LastCommit {
    path: PathBuf,
    /// `None` once it could not be written: what it names stays true.
    file: Option<File>,
    epoch: Epoch,
}

impl LastCommit {
    /// Opens or creates the note of a store that syncs each commit. A store without it works as well.
    pub(crate) fn open(dir: &Path, epoch: Epoch) -> Self {
        let path = dir.join(NAME);
        let mut options = OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).mode(FILE_MODE).open(&path);
        let mut note = Self { path, file: None, epoch };
        match opened {
            Ok(file) => note.file = Some(file),
            Err(error) => note.tell(&error),
        }
        note
    }

    /// Notes the last commit, which is durable.
    pub(crate) fn set(&mut self, last: JournalId) {
        let Some(file) = &self.file else { return };
        if let Err(error) = file.write_all_at(&encoded(self.epoch, last), 0) {
            self.tell(&error);
            self.file = None;
        }
    }

    fn tell(&self, error: &io::Error) {
        let path = self.path.display();
        tracing::warn!(%path, %error, "the last commit is not noted: a start will not find a log that was cut");
    }
}

/// Refuses a database that ends before the noted commit.
pub(crate) fn refuse_less(
    connection: &Connection,
    dir: &Path,
    found: &Inventory,
) -> Result<(), StoreError> {
    let Some(noted) = noted(dir, epoch::stored(connection)?) else { return Ok(()) };
    let (last, path) = (found.last, dir.join(DATABASE));
    if last < noted { Err(StoreError::CommitsMissing { path, last, noted }) } else { Ok(()) }
}

/// Returns the last durable commit of a store, as far as it is noted. A copy, and a store that has lost commits before,
/// have another epoch.
pub(crate) fn noted(dir: &Path, epoch: Epoch) -> Option<JournalId> {
    read(&dir.join(NAME)).and_then(|(of, noted)| (of == epoch).then_some(noted))
}

/// Reads the note; `None` if there is none. A damaged one proves nothing.
fn read(path: &Path) -> Option<(Epoch, JournalId)> {
    let damaged = |error: &dyn std::fmt::Display| {
        let path = path.display();
        tracing::warn!(%path, %error, "the note of the last commit is unreadable");
    };
    let bytes = match fs::read(path) {
        Ok(bytes) if bytes.is_empty() => return None,
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            damaged(&error);
            return None;
        }
    };
    let decoded = decoded(&bytes);
    if decoded.is_none() {
        damaged(&"its checksum does not fit");
    }
    decoded
}

fn encoded(epoch: Epoch, last: JournalId) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let fields = epoch.0.to_be_bytes().into_iter().chain(last.0.to_le_bytes());
    bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
    if let Some((fields, sum)) = bytes.split_first_chunk_mut::<FIELDS_BYTES>() {
        sum.copy_from_slice(&crc32fast::hash(fields).to_le_bytes());
    }
    bytes
}

fn decoded(bytes: &[u8]) -> Option<(Epoch, JournalId)> {
    let (fields, sum) = bytes.split_first_chunk::<FIELDS_BYTES>()?;
    if *sum != crc32fast::hash(fields).to_le_bytes() {
        return None;
    }
    let (epoch, last) = fields.split_first_chunk::<EPOCH_BYTES>()?;
    let last = u64::from_le_bytes(last.try_into().ok()?);
    Some((Epoch(u128::from_be_bytes(*epoch)), JournalId(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_written_and_any_changed_bit_is_found() {
        let (epoch, last) = (Epoch(7), JournalId(u64::MAX - 3));
        let note = encoded(epoch, last);
        assert_eq!(decoded(&note), Some((epoch, last)));
        for bit in 0..BYTES * 8 {
            let mut changed = note;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decoded(&changed), None, "bit {bit}");
        }
        assert_eq!(decoded(&note[..BYTES - 1]), None);
        assert_eq!(decoded(&[]), None);
    }
}
