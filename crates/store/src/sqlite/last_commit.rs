//! The last durable commit, noted in a file of its own, so that a start finds the loss of the latest ones.
//!
//! SQLite takes a log that was cut at its end for all there was, and cannot tell an older copy of a database. The note
//! is written after each sync, before the commit is acknowledged, and is not synced itself: it never names a commit that
//! is not durable, and a power cut may leave an earlier one. Until the host starts anew it names the last one that was
//! acknowledged.
//!
//! ```text
//! offset  size  field
//!      0    16  epoch of the store, big-endian
//!     16     8  id in the journal, u64, little-endian
//!     24    16  boot id of the host (Linux: /proc/sys/kernel/random/boot_id), big-endian; 0 if it has none
//!     40     4  CRC-32 of the fields before, little-endian
//! ```

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU128;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use uuid::Uuid;

use super::inventory::Inventory;
use super::{DATABASE, epoch};
use crate::{JournalId, StoreError};
use blackboard_board::Epoch;
use blackboard_owner_files as owner_files;

const NAME: &str = "last-commit";

const FIELDS_BYTES: usize = 16 + 8 + 16;
const BYTES: usize = FIELDS_BYTES + 4;

/// Another one each time that Linux starts; see `proc_sys_kernel(5)`.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A start of the host; `None` if it does not tell.
type Boot = Option<NonZeroU128>;

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    epoch: Epoch,
    last: JournalId,
    boot: Boot,
}

/// The note of a running store.
#[derive(Debug)]
pub(crate) struct LastCommit {
    path: PathBuf,
    /// `None` once it could not be written.
    file: Option<File>,
    epoch: Epoch,
    boot: Boot,
}

impl LastCommit {
    /// Opens or creates the note of a store that syncs each commit. A store without it works as well.
    pub(crate) fn open(dir: &Path, epoch: Epoch) -> Self {
        let path = dir.join(NAME);
        let opened = owner_files::open_file(&path);
        let mut note = Self { path, file: None, epoch, boot: boot() };
        match opened {
            Ok(file) => note.file = Some(file),
            Err(error) => note.tell(&error),
        }
        note
    }

    /// Notes the last commit, which is durable.
    pub(crate) fn set(&mut self, last: JournalId) {
        let Some(file) = &self.file else { return };
        let note = Note { epoch: self.epoch, last, boot: self.boot };
        if let Err(error) = file.write_all_at(&note.encoded(), 0) {
            self.tell(&error);
            self.file = None;
            // An earlier one would be taken for the last of this boot.
            if let Err(error) = fs::remove_file(&self.path) {
                self.tell(&error);
            }
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

/// Returns true if it is certain that no commit is missing that the last run acknowledged: it synced each, and the host
/// has not started anew since.
pub(crate) fn are_all_there(
    connection: &Connection,
    dir: &Path,
    found: &Inventory,
) -> Result<bool, StoreError> {
    if epoch::ran_unsynced(connection)? {
        return Ok(false);
    }
    let noted = note_of(dir, epoch::stored(connection)?);
    let of_this_boot = noted.filter(|note| note.boot.is_some() && note.boot == boot());
    Ok(of_this_boot.is_some_and(|note| found.last >= note.last))
}

fn boot() -> Boot {
    let text = fs::read_to_string(BOOT_ID).ok()?;
    let id = Uuid::try_parse(text.trim()).ok()?;
    NonZeroU128::new(id.as_u128())
}

/// Returns the last durable commit of a store, as far as it is noted. A copy, and a store that has lost commits before,
/// have another epoch.
pub(crate) fn noted(dir: &Path, epoch: Epoch) -> Option<JournalId> {
    note_of(dir, epoch).map(|note| note.last)
}

fn note_of(dir: &Path, epoch: Epoch) -> Option<Note> {
    read(&dir.join(NAME)).filter(|note| note.epoch == epoch)
}

/// Reads the note; `None` if there is none. A damaged one proves nothing.
fn read(path: &Path) -> Option<Note> {
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
    let decoded = Note::decoded(&bytes);
    if decoded.is_none() {
        damaged(&"its checksum does not fit");
    }
    decoded
}

impl Note {
    fn encoded(self) -> [u8; BYTES] {
        let Self { epoch, last, boot } = self;
        let boot = boot.map_or(0, NonZeroU128::get);
        let mut bytes = [0; BYTES];
        let fields =
            epoch.0.to_be_bytes().into_iter().chain(last.0.to_le_bytes()).chain(boot.to_be_bytes());
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        if let Some((fields, sum)) = bytes.split_first_chunk_mut::<FIELDS_BYTES>() {
            sum.copy_from_slice(&crc32fast::hash(fields).to_le_bytes());
        }
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<Self> {
        let (fields, sum) = bytes.split_last_chunk()?;
        if *sum != crc32fast::hash(fields).to_le_bytes() {
            return None;
        }
        let (epoch, rest) = fields.split_first_chunk()?;
        let (last, boot) = rest.split_first_chunk()?;
        let boot = NonZeroU128::new(u128::from_be_bytes(boot.try_into().ok()?));
        let (epoch, last) = (u128::from_be_bytes(*epoch), u64::from_le_bytes(*last));
        Some(Self { epoch: Epoch(epoch), last: JournalId(last), boot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_written_and_any_changed_bit_is_found() {
        for boot in [None, NonZeroU128::new(1 << 127)] {
            let note = Note { epoch: Epoch(7), last: JournalId(u64::MAX - 3), boot };
            let bytes = note.encoded();
            assert_eq!(Note::decoded(&bytes), Some(note));
            for bit in 0..BYTES * 8 {
                let mut changed = bytes;
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Note::decoded(&changed), None, "bit {bit}");
            }
            assert_eq!(Note::decoded(&bytes[..BYTES - 1]), None);
        }
        assert_eq!(Note::decoded(&[]), None);
    }

    #[test]
    fn a_note_that_cannot_be_written_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut note = LastCommit::open(dir.path(), Epoch(7));
        note.set(JournalId(3));
        assert_eq!(noted(dir.path(), Epoch(7)), Some(JournalId(3)));
        note.file = Some(File::open(&note.path).unwrap());
        note.set(JournalId(4));
        assert_eq!(noted(dir.path(), Epoch(7)), None);
        note.set(JournalId(5));
        assert!(!note.path.exists());
    }
}
