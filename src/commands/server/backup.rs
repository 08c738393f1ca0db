//! `blackboard backup`

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::directory::{Directory, Unanswered};
use super::progress::{Bar, show_while};
use crate::cli::{Failure, note};
use crate::control::{AskError, BackedUp, Line, Request, Step};
use crate::store::{EmbeddedStore as _, IsOver, Progress, StoreError};

/// Copy a data directory, even while a server runs
///
/// The copy is an ordinary data directory: 'check --data NEWDIR' verifies it, and 'serve --data NEWDIR' serves it. It
/// holds every write acknowledged before the backup began, and appears only once complete. It needs as much space as
/// the database; images are hard-linked, and copied only to another file system. Entity tags and signed URLs of the
/// original are not valid for the copy. A running server writes the copy itself, as its own user, at the path as it
/// sees it: for a server in a container, a path inside the container. A failed backup leaves a directory that ends in
/// .partial and can be removed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard backup --data /var/lib/blackboard --to /backups/today\n\
\x20 blackboard check --data /backups/today")]
pub(in crate::commands) struct Backup {
    /// Directory to create, outside the data directory; an existing path is rejected, unless it is an empty directory
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
                let (never, progress): (IsOver, _) = (Arc::new(|| false), Progress::default());
                let copied = show_while(&progress, || store.back_up(&to, &never, &progress))?;
                Ok(BackedUp { bytes: copied.bytes, images: copied.blobs })
            }
            None => self.ask(&to),
        }
    }

    fn ask(&self, to: &Path) -> Result<BackedUp, NotBackedUp> {
        let mut bar = Bar::of_stages();
        let request = Request::Backup { to: to.to_owned(), progress: !bar.is_hidden() };
        let mut asking = self.directory.ask_server(&request)?;
        loop {
            match asking.line()? {
                Line::Part(line) => {
                    let Step { progress } =
                        serde_json::from_slice(&line).map_err(NotBackedUp::Unreadable)?;
                    bar.show(progress);
                }
                Line::Done(told) => {
                    return serde_json::from_str(&told).map_err(NotBackedUp::Unreadable);
                }
            }
        }
    }
}
