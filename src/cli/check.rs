//! `blackboard check`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::directory::Directory;
use crate::service::{Soundness, check};
use crate::store::{SqliteOptions, SqliteStore};

/// Read all of a data directory, and tell whether it is sound; exit 0 if it is, else 1
///
/// Every checksum is computed, every commit is replayed, and every image is read. The server must not
/// be running.
#[derive(Args, Debug)]
pub(super) struct Check {
    #[command(flatten)]
    directory: Directory,
}

/// What is wrong was told line by line.
#[derive(Debug, thiserror::Error)]
#[error("{} is damaged in {places} places", data.display())]
struct Damaged {
    data: PathBuf,
    places: usize,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let data = self.directory.present().map_err(Failure::failed)?;
        let store = SqliteStore::open(data, SqliteOptions::default());
        let soundness = check(&store.map_err(Failure::failed)?).map_err(Failure::failed)?;
        report(&soundness, &mut io::stdout().lock()).map_err(Failure::failed)?;
        if soundness.is_sound() {
            return Ok(());
        }
        let places = soundness.damage.len() + soundness.images_damaged.len();
        Err(Failure::failed(Damaged { data: data.to_owned(), places }))
    }
}

fn report(soundness: &Soundness, out: &mut impl Write) -> io::Result<()> {
    for damage in &soundness.damage {
        let name = damage.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        writeln!(out, "damaged: {damage}{name}")?;
    }
    for (session, digest, error) in &soundness.images_damaged {
        writeln!(out, "damaged: image {digest} of session {session}: {error}")?;
    }
    let Soundness { commits, sessions, images, .. } = soundness;
    let verdict = if soundness.is_sound() { "sound" } else { "not sound" };
    writeln!(out, "{verdict}: {commits} commits, {sessions} sessions, {images} images")
}
