//! `blackboard check`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::directory::{Directory, Unanswered};
use super::salvage::{Draft, Unsalvaged, make};
use super::{Failure, note};
use crate::control::{AskError, Checked, Fault, Line, Request};
use crate::error_chain::Chain;
use crate::printable::line;
use crate::service::Soundness;
use crate::service::check;
use crate::store::{IsOver, SqliteStore, Store as _, StoreError};

/// Read all of a data directory, and tell whether it is sound; exit 0 if it is, else 1
///
/// Every checksum is computed, every commit is replayed, and every image is read, where they are: nothing in the
/// data directory is changed or made. Where damage ends that, what can be read is copied into --scratch, else into the
/// system's temporary directory, and read there, and sessions are named that are not whole. A running server does so itself, by one processor, and its write-ahead log
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
    #[error("cannot go on beyond the damage")]
    Salvage(#[from] Unsalvaged),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("cannot tell what was found")]
    Output(#[from] io::Error),
    #[error("cannot tell where {} is", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("the answer cannot be read: is the server of another version?")]
    Unreadable(#[source] serde_json::Error),
    /// What is wrong was told line by line.
    #[error(
        "{} is damaged in {places} places; 'blackboard salvage --to DIR' makes a store of what is sound",
        data.display()
    )]
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
            writeln!(out, "damaged: {}", line(fault))
        };
        let scratch = self.scratch.as_deref().map(absolute).transpose()?;
        let looked = self.directory.look().map_err(Unsound::from);
        let looked = looked.and_then(|store| {
            store.map(|store| here(&store, scratch.as_deref()).map_err(Unsound::from)).transpose()
        });
        let Checked { commits, sessions, images } = match looked {
            Ok(Some(soundness)) => {
                if let Some(frame) = SqliteStore::log_breaks_at(&self.directory.data)? {
                    note(format_args!(
                        "note: the write-ahead log breaks off at frame {frame}, as a power cut leaves it, or \
                         damage of the last commit; a start goes on without that and draws new tags"
                    ));
                }
                soundness.faults().try_for_each(|fault| tell(&fault))?;
                counted(&soundness)
            }
            Ok(None) => self.ask(scratch, &mut tell)?,
            Err(error) if error.is_damage() => {
                // What the copy lacks may not show this any more: an index is made anew there.
                tell(&Chain(&error).to_string())?;
                self.go_on(scratch, &mut tell)?
            }
            Err(error) => return Err(error),
        };
        let verdict = if places == 0 { "sound" } else { "not sound" };
        writeln!(out, "{verdict}: {commits} commits, {sessions} sessions, {images} images")?;
        if places == 0 {
            Ok(())
        } else {
            Err(Unsound::Damaged { data: self.directory.data, places })
        }
    }

    /// Reads what can be read beyond the damage, in a copy.
    fn go_on(
        &self,
        scratch: Option<PathBuf>,
        tell: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> Result<Checked, Unsound> {
        let draft = Draft::beside(&scratch.unwrap_or_else(std::env::temp_dir).join("check"))?;
        let made = make(&self.directory.data, &draft.dir)?;
        made.lines().iter().try_for_each(|line| tell(line))?;
        Ok(counted(&made.soundness))
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

fn counted(soundness: &Soundness) -> Checked {
    let Soundness { commits, sessions, images, .. } = *soundness;
    Checked { commits, sessions, images }
}

impl Unsound {
    /// Whether the store cannot be read in one go because it is damaged.
    fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) | Self::Unanswered(Unanswered::Store { source: error, .. }) => {
                error.is_damage()
            }
            Self::Unanswered(
                Unanswered::Absent(_)
                | Unanswered::Unreachable { .. }
                | Unanswered::Load(_)
                | Unanswered::Io(_)
                | Unanswered::Ask(_),
            )
            | Self::Ask(_)
            | Self::Salvage(_)
            | Self::Output(_)
            | Self::Unreadable(_)
            | Self::Path { .. }
            | Self::Damaged { .. } => false,
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
