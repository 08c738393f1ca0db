//! `blackboard backup`

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::directory::{Directory, Unanswered};
use super::{Failure, note};
use crate::control::{AskError, BackedUp, Line, Request};
use crate::store::{IsOver, Store as _, StoreError};

/// Copy a data directory, even while a server runs
///
/// The copy is an ordinary data directory: 'check --data NEWDIR' verifies it, and 'serve --data NEWDIR' serves it. It
/// holds every write acknowledged before the backup began, and appears only once complete. It needs as much space as
/// the database; images are hard-linked, and copied only to another file system. Tags and signed addresses of the
/// original are not valid for the copy. A running server writes the copy itself, as its own user and in its own
/// file-system view. A failed backup leaves a directory that ends in .partial and can be removed.
#[derive(Args, Debug)]
pub(super) struct Backup {
    /// Directory to create, outside the data directory; an existing path is refused, an empty directory accepted
    #[arg(long, env = "BLACKBOARD_BACKUP_TO", value_name = "NEWDIR")]
    to: PathBuf,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum NotBackedUp {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot resolve {}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[source] serde_json::Error),
}

impl Backup {
    pub(super) fn run(self) -> Result<(), Failure> {
        let BackedUp { bytes, images } = self.back_up().map_err(Failure::failed)?;
        note(format_args!("backed up to {}: {bytes} bytes, {images} images", self.to.display()));
        Ok(())
    }

    fn back_up(&self) -> Result<BackedUp, NotBackedUp> {
        self.directory.present()?;
        // The server has a working directory of its own.
        let to = std::path::absolute(&self.to)
            .map_err(|source| NotBackedUp::Path { path: self.to.clone(), source })?;
        match self.directory.look()? {
            Some(store) => {
                let never: IsOver = Arc::new(|| false);
                let copied = store.back_up(&to, &never)?;
                Ok(BackedUp { bytes: copied.bytes, images: copied.blobs })
            }
            None => self.ask(&to),
        }
    }

    fn ask(&self, to: &Path) -> Result<BackedUp, NotBackedUp> {
        let mut asking = self.directory.ask_server(&Request::Backup { to: to.to_owned() })?;
        loop {
            if let Line::Done(told) = asking.line()? {
                return serde_json::from_str(&told).map_err(NotBackedUp::Unreadable);
            }
        }
    }
}
