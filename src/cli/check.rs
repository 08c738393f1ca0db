//! `blackboard check`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::directory::{Directory, Unanswered};
use crate::control::{AskError, Checked, Fault, Line, Request};
use crate::service::check;
use crate::store::StoreError;

/// Read all of a data directory, and tell whether it is sound; exit 0 if it is, else 1
///
/// Every checksum is computed, every commit is replayed, and every image is read. A running server does so with a
/// copy that it makes in the data directory and removes afterwards: that takes the room of the database once more
/// and one processor for as long, and what is damaged in the database's indexes only is not in it.
#[derive(Args, Debug)]
pub(super) struct Check {
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
        let Checked { commits, sessions, images } = match self.directory.open()? {
            Some(store) => {
                let soundness = check(&store)?;
                soundness.faults().try_for_each(|fault| tell(&fault))?;
                let (commits, sessions) = (soundness.commits, soundness.sessions);
                Checked { commits, sessions, images: soundness.images }
            }
            None => self.ask(&mut tell)?,
        };
        let verdict = if places == 0 { "sound" } else { "not sound" };
        writeln!(out, "{verdict}: {commits} commits, {sessions} sessions, {images} images")?;
        if places == 0 {
            Ok(())
        } else {
            Err(Unsound::Damaged { data: self.directory.data, places })
        }
    }

    fn ask(&self, tell: &mut impl FnMut(&str) -> io::Result<()>) -> Result<Checked, Unsound> {
        let mut asking = self.directory.ask_server(&Request::Check {})?;
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
