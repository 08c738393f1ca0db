//! Backup of the whole store while others write: sessions one by one, blobs as links.
//!
//! A blob is durable before the commit that names it, so all blobs of the copied database exist once it is complete.
//! Blobs removed meanwhile are quarantined until the copy has them. The copy gets its final name when it is complete
//! and synced; until then its database has another name.

mod database;
mod raw_rows;
pub(crate) mod salvage;
pub(crate) mod stray_blobs;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::DATABASE;
use crate::files::destination::vacant_dir;
use crate::files::disk::{DIR_MODE, Room, create_dir, sync_dir};
use crate::{Copied, EmbeddedStore, FileBytes, IsOver, Progress, SqliteStore, Stage, StoreError};
use database::Copying;

/// The name of a copy's database until the copy is complete.
const UNFINISHED: &str = "blackboard.db.partial";

/// Returns true if a directory has an unfinished copy.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(UNFINISHED).exists()
}

impl SqliteStore {
    pub(crate) fn back_up_to(
        &self,
        to: &Path,
        is_over: &IsOver,
        progress: &Progress,
    ) -> Result<Copied, StoreError> {
        let to = self.target(to)?;
        let _one = self.copying.try_lock().ok_or(StoreError::Copying)?;
        self.copy_whole(&to, is_over, progress)
    }

    /// Calls `look` with the store, or with a copy of it.
    pub(crate) fn look_at_it(
        &self,
        scratch: Option<&Path>,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn EmbeddedStore),
    ) -> Result<(), StoreError> {
        let _one = self.copying.try_lock().ok_or(StoreError::Copying)?;
        match scratch {
            Some(scratch) => self.look_at_copy(scratch, is_over, look),
            None => {
                look(self);
                Ok(())
            }
        }
    }

    /// Calls `look` with a temporary copy, which is a store of its own.
    fn look_at_copy(
        &self,
        scratch: &Path,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn EmbeddedStore),
    ) -> Result<(), StoreError> {
        let name = format!("blackboard-check-{}", Uuid::new_v4().simple());
        let place = self.target(&scratch.join(name))?;
        let copied = match self.source.is_in_place() {
            true => self.copy_files(&place, is_over),
            false => self.copy_whole(&place, is_over, &Progress::default()).map(drop),
        };
        let looked = copied.and_then(|()| {
            look(&Self::open_unserved(&place)?);
            Ok(())
        });
        remove_all(&place).and(looked)
    }

    /// Copies the files as they are, damage included: nobody writes.
    fn copy_files(&self, to: &Path, is_over: &IsOver) -> Result<(), StoreError> {
        create_dir(to)?;
        let room = self.room.for_copy_in(to);
        for from in [self.path.clone(), self.path.with_extension("db-wal")] {
            let Some(name) = from.file_name().filter(|_| from.exists()) else { continue };
            if !room.is_for(fs::metadata(&from).map_or(0, |file| file.len())) {
                return Err(StoreError::Full);
            }
            fs::copy(&from, to.join(name)).map_err(StoreError::io(&from))?;
        }
        let aside = self.blobs.as_they_are();
        let progress = Progress::default();
        aside.copy_to(&to.join("blobs"), &room, (is_over, &progress), &mut Copied::default())
    }

    fn data(&self) -> &Path {
        &self.room.dir
    }

    /// Returns the absolute path of the copy, if it is allowed there.
    fn target(&self, to: &Path) -> Result<PathBuf, StoreError> {
        let name = to.file_name().ok_or_else(|| StoreError::Occupied { path: to.to_owned() })?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).map_err(StoreError::io(parent))?;
        let data = fs::canonicalize(self.data()).map_err(StoreError::io(self.data()))?;
        let to = parent.join(name);
        if to.starts_with(&data) {
            return Err(StoreError::Within { path: to, dir: data });
        }
        vacant_dir(&to)?;
        Ok(to)
    }

    fn copy_whole(
        &self,
        to: &Path,
        is_over: &IsOver,
        progress: &Progress,
    ) -> Result<Copied, StoreError> {
        let draft = Draft::beside(to)?;
        let room = self.room.for_copy_in(&draft.dir);
        // The quarantine begins before the database is read.
        let aside = match self.source.is_in_place() {
            true => self.blobs.as_they_are(),
            false => self.blobs.put_removed_aside()?,
        };
        let bytes = self.copy_database(&draft.dir.join(UNFINISHED), &room, (is_over, progress))?;
        let mut copied = Copied { bytes, ..Copied::default() };
        aside.copy_to(&draft.dir.join("blobs"), &room, (is_over, progress), &mut copied)?;
        drop(aside);
        draft.finish(to)?;
        Ok(copied)
    }

    /// Copies the database. Returns the length of the copy.
    fn copy_database(
        &self,
        to: &Path,
        room: &Room,
        (is_over, progress): (&IsOver, &Progress),
    ) -> Result<u64, StoreError> {
        let FileBytes { database, log } = FileBytes::of(&self.path);
        if !room.is_for(database) {
            return Err(StoreError::Full);
        }
        // What is in the log is mostly not in the database yet.
        progress.begin(Stage::Database, database.max(log));
        Copying::begin(self, to, room, (is_over, progress))?.run()
    }
}

/// A directory that is filled beside its final place; removed on drop unless finished.
struct Draft {
    dir: PathBuf,
}

impl Draft {
    fn beside(to: &Path) -> Result<Self, StoreError> {
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let dir = to.with_file_name(format!(".{name}.{}.partial", Uuid::new_v4().simple()));
        DirBuilder::new().mode(DIR_MODE).create(&dir).map_err(StoreError::io(&dir))?;
        Ok(Self { dir })
    }

    /// Renames the directory to its final name, replacing an empty one.
    fn finish(self, to: &Path) -> Result<(), StoreError> {
        let database = self.dir.join(DATABASE);
        fs::rename(self.dir.join(UNFINISHED), &database).map_err(StoreError::io(&database))?;
        sync_dir(&self.dir)?;
        fs::rename(&self.dir, to).map_err(StoreError::io(to))?;
        to.parent().map_or(Ok(()), sync_dir)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Err(error) = remove_all(&self.dir) {
            tracing::warn!(%error, "an unfinished copy could not be deleted; delete it by hand");
        }
    }
}

fn remove_all(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(dir)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
