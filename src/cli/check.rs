//! `blackboard check`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Failure;
use super::directory::{Directory, Unanswered};
use crate::control::{AskError, Checked, Fault, Line, Request};
use crate::service::{Soundness, check};
use crate::store::{IsOver, SqliteStore, Store as _, StoreError};

/// Read all of a data directory, and tell whether it is sound; exit 0 if it is, else 1
///
/// Every checksum is computed, every commit is replayed, and every image is read, where they are: nothing in the
/// data directory is changed or made. A running server does so itself, by one processor, and its write-ahead log
/// is not emptied meanwhile.
#[derive(Args, Debug)]
pub(super) struct Check {
    /// Check a copy of the database in this directory instead; it is removed afterwards
    ///
    /// It takes the room of the database, and links images. A running server makes it itself, as its user and
    /// where it sees that path. What a broken check leaves is named blackboard-check-… and can be removed.
    #[arg(long, env = "BLACKBOARD_SCRATCH", value_name = "DIR")]
    scratch: Option<PathBuf>,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum Unsound {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("cannot tell what was found")]
    Output(#[from] io::Error),
    #[error("cannot tell where {} is", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("the answer cannot be read: is the server of another version?")]
    Unreadable(#[source] serde_json::Error),
    /// What is wrong was told line by line.
    #[error("{} is damaged in {places} places", data.display())]
    Damaged { data: PathBuf, places: usize },
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.check().map_err(Failure::failed)
    }

    fn check(self) -> Result<(), Unsound> {
        self.directory.present()?;
        let mut out = io::stdout().lock();
        let mut places = 0;
        let mut tell = |fault: &str| {
            places += 1;
            writeln!(out, "damaged: {fault}")
        };
        let scratch = self.scratch.as_deref().map(absolute).transpose()?;
        let Checked { commits, sessions, images } = match self.directory.look()? {
            Some(store) => {
                if let Some(frame) = SqliteStore::log_breaks_at(&self.directory.data)? {
                    eprintln!(
                        "note: the write-ahead log breaks off at frame {frame}, as a power cut leaves it, or \
                         damage of the last commit; a start goes on without that and draws new tags"
                    );
                }
                let soundness = here(&store, scratch.as_deref())?;
                soundness.faults().try_for_each(|fault| tell(&fault))?;
                let (commits, sessions) = (soundness.commits, soundness.sessions);
                Checked { commits, sessions, images: soundness.images }
            }
            None => self.ask(scratch, &mut tell)?,
        };
        let verdict = if places == 0 { "sound" } else { "not sound" };
        writeln!(out, "{verdict}: {commits} commits, {sessions} sessions, {images} images")?;
        if places == 0 {
            Ok(())
        } else {
            Err(Unsound::Damaged { data: self.directory.data, places })
        }
    }

    fn ask(
        &self,
        scratch: Option<PathBuf>,
        tell: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> Result<Checked, Unsound> {
        let mut asking = self.directory.ask_server(&Request::Check { scratch })?;
        loop {
            match asking.line()? {
                Line::Part(line) => {
                    let fault: Fault =
                        serde_json::from_slice(&line).map_err(Unsound::Unreadable)?;
                    tell(&fault.damaged)?;
                }
                Line::Done(told) => {
                    return serde_json::from_str(&told).map_err(Unsound::Unreadable);
                }
            }
        }
    }
}

/// The server has a working directory of its own.
fn absolute(path: &Path) -> Result<PathBuf, Unsound> {
    let unknown = |source| Unsound::Path { path: path.to_owned(), source };
    std::path::absolute(path).map_err(unknown)
}

/// Checks a store that nobody else has.
fn here(store: &SqliteStore, scratch: Option<&Path>) -> Result<Soundness, StoreError> {
    let (mut found, never): (_, IsOver) = (None, Arc::new(|| false));
    store.look_at(scratch, &never, &mut |store| found = Some(check(store)))?;
    found.unwrap_or(Err(StoreError::Closed))
}
