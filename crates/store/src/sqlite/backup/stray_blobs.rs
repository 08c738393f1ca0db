//! Stray blobs: images of sessions that the database does not know.
//!
//! If the write-ahead log was lost, those sessions may have been in it. The store then refuses to start if it has no
//! other session; otherwise the images are kept from garbage collection. A killed server leaves stray images too,
//! since an image is stored before its commit, but its log exists.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::blobs::{list, session_of};
use crate::files::disk::{create_dir, sync_dir};
use crate::sqlite::epoch;
use crate::sqlite::index::Histories;
use crate::sqlite::inventory::Inventory;
use crate::sqlite::open::{has_bytes, log_of};
use crate::sqlite::wal::End;
use crate::{JournalId, StoreError};

/// The directory for such images.
const KEPT: &str = "lost-images";

/// Returns true if a store was not stopped cleanly, and its log is missing or cut off.
pub(crate) fn is_log_lost(
    connection: &Connection,
    database: &Path,
    log: Option<End>,
) -> Result<bool, StoreError> {
    let is_cut = log.is_some_and(End::is_cut);
    Ok((is_cut || !has_bytes(&log_of(database))) && epoch::is_running(connection)?)
}

/// Refuses a database without any commit if its log is missing and images exist.
pub(crate) fn refuse(
    connection: &Connection,
    dir: &Path,
    database: &Path,
    found: &Inventory,
) -> Result<(), StoreError> {
    let had_commits = found.last != JournalId(0) || found.histories.is_any_known();
    let log = log_of(database);
    if had_commits || has_bytes(&log) || !epoch::is_running(connection)? {
        return Ok(());
    }
    let left = dir.join("blobs");
    for home in list(&left)? {
        if session_of(&home).is_some() && !list(&home)?.is_empty() {
            return Err(StoreError::LogMissing { path: log, left });
        }
    }
    Ok(())
}

/// Moves the images of unknown sessions out of the reach of garbage collection.
pub(crate) fn keep(dir: &Path, histories: &Histories) -> Result<(), StoreError> {
    let kept = dir.join(KEPT);
    let homes = list(&dir.join("blobs"))?.into_iter();
    let orphaned =
        |home: &PathBuf| session_of(home).is_some_and(|session| !histories.is_known(session));
    for home in homes.filter(orphaned) {
        let images = list(&home)?;
        let Some(name) = home.file_name().filter(|_| !images.is_empty()) else { continue };
        create_dir(&kept)?;
        let to = kept.join(name);
        fs::rename(&home, &to).map_err(StoreError::io(&home))?;
        sync_dir(&kept)?;
        let (path, images) = (to.display(), images.len());
        tracing::warn!(%path, images, "the write-ahead log was lost; images of an unknown session were moved here");
    }
    Ok(())
}
