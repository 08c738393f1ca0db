//! `blackboard check`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::directory::{Directory, Unanswered};
use super::progress::{Bar, show_while};
use super::salvage::{Draft, Unsalvaged, make};
use crate::cli::{Failure, note};
use crate::control::{AskError, Checked, Fault, Finding, Line, Request, Step};
use crate::error_chain::Chain;
use crate::printable::line;
use crate::service::Soundness;
use crate::service::check_counted;
use crate::store::{EmbeddedStore as _, IsOver, Progress, SqliteStore, StoreError};

/// Verify a whole data directory; exit 0 if it is intact, else 1
///
/// Computes every checksum, replays every commit and reads every image, all in place: nothing in the data directory
/// is changed or created. If damage prevents that, the readable part is copied into --scratch, or else the system's
/// temporary directory, and checked there; incomplete sessions are listed. A running server does the check itself, on
/// one processor, and cannot empty its write-ahead log until the check ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard check --data /var/lib/blackboard")]
pub(in crate::commands) struct Check {
    /// Check a copy of the database in this directory instead; the copy is removed afterwards
    ///
    /// Needs as much space as the database; images are hard-linked. A running server makes the copy itself, as its
    /// own user, at the path as it sees it. A failed check leaves a directory named blackboard-check-…, which can be
    /// removed.
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
    #[error("cannot check beyond the damage")]
    Salvage(#[from] Unsalvaged),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("cannot print the results")]
    Output(#[from] io::Error),
    #[error("cannot resolve {}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[source] serde_json::Error),
    /// The damage was listed line by line.
    #[error(
        "{} is damaged in {places} places; run 'blackboard salvage --to DIR' to copy what is intact to a new store",
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
                        "note: the write-ahead log ends early, at frame {frame}, after a power cut or damage to the \
                         last commit; the next start ignores the rest and issues new ETags"
                    ));
                }
                soundness.faults().try_for_each(|fault| tell(&fault))?;
                counted(&soundness)
            }
            Ok(None) => self.ask(scratch, &mut tell)?,
            Err(error) if error.is_damage() => {
                // A faulty index may be sound in the copy, which rebuilds it.
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

    /// Checks a copy of the part that is readable beyond the damage.
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
        let mut bar = Bar::of_stages();
        let request = Request::Check { scratch, progress: !bar.is_hidden() };
        let mut asking = self.directory.ask_server(&request)?;
        loop {
            match asking.line()? {
                Line::Part(line) => match serde_json::from_slice(&line) {
                    Ok(Finding::Step(Step { progress })) => bar.show(progress),
                    Ok(Finding::Fault(Fault { damaged })) => {
                        // The work is done, and the line is for standard output.
                        bar = Bar::hidden();
                        tell(&damaged)?;
                    }
                    Err(error) => return Err(Unsound::Unreadable(error)),
                },
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
    /// Returns true if damage prevents reading the store in place.
    fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) | Self::Unanswered(Unanswered::Store { source: error, .. }) => {
                error.is_damage()
            }
            Self::Unanswered(
                Unanswered::Absent(_)
                | Unanswered::NotCreated(_)
                | Unanswered::Unreadable { .. }
                | Unanswered::Unreachable { .. }
                | Unanswered::NotEmbedded(_)
                | Unanswered::Service { .. }
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

/// Makes a path absolute, since the server's working directory differs.
fn absolute(path: &Path) -> Result<PathBuf, Unsound> {
    let unknown = |source| Unsound::Path { path: path.to_owned(), source };
    std::path::absolute(path).map_err(unknown)
}

/// Checks a store that no server has open.
fn here(store: &SqliteStore, scratch: Option<&Path>) -> Result<Soundness, StoreError> {
    let (mut found, never): (_, IsOver) = (None, Arc::new(|| false));
    let progress = Progress::default();
    show_while(&progress, || {
        store.look_at(scratch, &never, &mut |store| found = Some(check_counted(store, &progress)))
    })?;
    found.unwrap_or(Err(StoreError::Closed))
}
