//! `blackboard salvage`

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Failure;
use super::directory::{Directory, Unanswered};
use crate::service::{Soundness, check};
use crate::store::{IsOver, SqliteStore, Store as _, StoreError};

/// Copy what can be read of a data directory whose write-ahead log is damaged
///
/// The copy is a data directory like any other, with its own tags. It has all commits up to the damaged one, or those
/// of the database alone where that has more. What is damaged besides is named, as 'check' names it, and is
/// copied as it is. The data directory is left as it is; no server may have it meanwhile.
#[derive(Args, Debug)]
pub(super) struct Salvage {
    /// Directory to make, outside of the data directory; it may be there if it is empty
    #[arg(long, env = "BLACKBOARD_SALVAGE_TO", value_name = "NEWDIR")]
    to: PathBuf,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum NotSalvaged {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(
        "the store can be read neither with its write-ahead log nor without; a backup is what is left"
    )]
    Unreadable(#[source] StoreError),
    #[error("cannot make the copy")]
    Store(#[from] StoreError),
    #[error("cannot tell what was found")]
    Output(#[from] io::Error),
}

impl Salvage {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.salvage().map_err(Failure::failed)
    }

    fn salvage(&self) -> Result<(), NotSalvaged> {
        let data = self.directory.present()?;
        let (with_log, soundness) = best(data).map_err(NotSalvaged::Unreadable)?;
        let never: IsOver = Arc::new(|| false);
        SqliteStore::look_past_damage(data, with_log)?.back_up(&self.to, &never)?;
        let mut out = io::stdout().lock();
        for fault in soundness.faults() {
            writeln!(out, "damaged: {fault}")?;
        }
        let Soundness { commits, sessions, images, .. } = soundness;
        let to = self.to.display();
        eprintln!("salvaged to {to}: {commits} commits, {sessions} sessions, {images} images");
        Ok(())
    }
}

/// Whether more can be read with the log or without, and what that is.
fn best(data: &Path) -> Result<(bool, Soundness), StoreError> {
    let look = |with_log| {
        let soundness = check(&SqliteStore::look_past_damage(data, with_log)?)?;
        Ok::<_, StoreError>((with_log, soundness))
    };
    let worth = |found: &Soundness| (found.is_sound(), found.commits);
    match (look(true), look(false)) {
        (Ok(with), Ok(without)) if worth(&with.1) < worth(&without.1) => Ok(without),
        (Ok(found), _) | (Err(_), Ok(found)) => Ok(found),
        (Err(error), Err(_)) => Err(error),
    }
}
