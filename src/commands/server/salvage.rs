//! `blackboard salvage`

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tokio::runtime::Builder;
use uuid::Uuid;

use super::directory::{Directory, Unanswered, owners_policy};
use crate::board::SessionName;
use crate::cli::Failure;
use crate::clock::Clock;
use crate::config::StoreUrlParser;
use crate::owner_files::{DIR_MODE, sync_parent};
use crate::printable::line;
use crate::service::check;
use crate::service::{
    Damage, DamagedImage, LoadError, Lost, Options, Service, ServiceError, Soundness,
};
use crate::store::{PostgresUrl, SqliteStore, StoreError, Wreckage, take_out, vacant_dir};

/// Copy what is intact in a damaged data directory to a new one
///
/// Exits with 0 if nothing was lost, else with 1. The damaged directory is only read; no server may be using it.
/// Intact sessions are copied whole, with their images, and so are tokens. A damaged session keeps its name and its
/// history up to the damage, and its losses are listed. Needs as much space as the store, and temporarily once more
/// that of its database.
#[derive(Args, Debug)]
pub(in crate::commands) struct Salvage {
    /// Directory to create; an existing path is rejected, unless it is an empty directory
    #[arg(long, env = "BLACKBOARD_SALVAGE_TO", value_name = "NEWDIR")]
    to: PathBuf,

    /// The damaged data directory
    #[arg(long, env = "BLACKBOARD_DATA", value_name = "DIR", default_value = "./data")]
    data: PathBuf,

    /// Address of a PostgreSQL service, which has tools of its own: salvage refuses it
    #[arg(long, env = "BLACKBOARD_STORE", value_name = "URL", value_parser = StoreUrlParser, hide = true)]
    store: Option<PostgresUrl>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unsalvaged {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Occupied(StoreError),
    #[error("cannot create {}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("nothing in {} is readable; restore a backup", data.display())]
    Unreadable { data: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("cannot read the recovered store")]
    Store(#[from] StoreError),
    #[error("cannot load the recovered store")]
    Load(#[from] LoadError),
    #[error("cannot write the recovered store")]
    Service(#[from] ServiceError),
    #[error("cannot print the results")]
    Output(#[from] io::Error),
    /// The losses were listed line by line.
    #[error("{} was damaged in {places} places; {} has the intact rest", data.display(), to.display())]
    Lost { data: PathBuf, to: PathBuf, places: usize },
}

/// The new store, with the losses to report.
pub(super) struct Made {
    wreckage: Wreckage,
    pub(super) soundness: Soundness,
    lost: Vec<Lost>,
    /// Sessions whose names could not be read.
    nameless: Vec<String>,
    sessions: usize,
}

impl Salvage {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.salvage().map_err(Failure::failed)
    }

    fn salvage(self) -> Result<(), Unsalvaged> {
        let Self { to, data, store } = self;
        let directory = Directory { data, store };
        directory.present()?;
        let data = directory.data;
        vacant_dir(&to).map_err(Unsalvaged::Occupied)?;
        let draft = Draft::beside(&to)?;
        let made = make(&data, &draft.dir)?;
        draft.finish(&to)?;
        let places = made.tell(&mut io::stdout().lock())?;
        if places == 0 { Ok(()) } else { Err(Unsalvaged::Lost { data, to, places }) }
    }
}

/// Recovers what is intact in a damaged store.
pub(super) fn make(data: &Path, to: &Path) -> Result<Made, Unsalvaged> {
    let unreadable = |error| {
        // The hint of a damaged file would recommend this very command.
        let source =
            if let StoreError::DamagedFile(found) = error { found.into() } else { error.into() };
        Unsalvaged::Unreadable { data: data.to_owned(), source }
    };
    let wreckage = take_out(data, to).map_err(unreadable)?;
    let store = Arc::new(SqliteStore::open_unserved(to)?);
    let soundness = check(&*store)?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let options = Options { salvages: true, ..Options::default() };
    let service = Service::start_with(store, owners_policy(), Clock::system(), options)?;
    let nameless = service.damage().iter().filter(|damage| damage.name.is_none());
    let nameless = nameless.map(Damage::to_string).collect();
    let lost = runtime.block_on(service.maintenance().salvage(&soundness.damage));
    let sessions = service.status().sessions;
    service.stop();
    Ok(Made { wreckage, lost: lost?, soundness, nameless, sessions })
}

impl Made {
    /// Lists the losses, a line each, and returns their number.
    fn tell(&self, out: &mut impl Write) -> io::Result<usize> {
        let Self { lost, nameless, sessions, .. } = self;
        let lines = self.lines();
        lines.iter().try_for_each(|told| writeln!(out, "damaged: {}", line(told)))?;
        let cut: BTreeSet<String> = lost
            .iter()
            .filter(|lost| lost.kept.is_some())
            .map(|lost| lost.name.to_string())
            .chain(self.images_lost().map(DamagedImage::whose))
            .collect();
        let (whole, cut) = (sessions.saturating_sub(cut.len()), cut.len());
        let gone = lost.iter().filter(|lost| lost.kept.is_none()).count() + nameless.len();
        if self.images_lost().next().is_some() || lost.iter().any(|lost| !lost.images.is_empty()) {
            writeln!(
                out,
                "note: some entries name lost images; 'blackboard check' of the new store reports these images until \
                 the entries are removed"
            )?;
        }
        writeln!(out, "salvaged: {whole} sessions whole, {cut} in part, {gone} not at all")?;
        Ok(lines.len())
    }

    /// Returns the lost images of sessions whose history is whole.
    fn images_lost(&self) -> impl Iterator<Item = &DamagedImage> {
        let tells = |lost: &Lost, image: &DamagedImage| {
            image.name.as_ref().is_none_or(|name| *name == lost.name)
                && lost.images.contains(&image.digest)
        };
        let images = self.soundness.images_damaged.iter();
        images.filter(move |image| !self.lost.iter().any(|lost| tells(lost, image)))
    }

    /// Returns the names of which something was damaged, though no session lost a part.
    fn ends_lost(&self) -> impl Iterator<Item = &SessionName> {
        let damage = self.soundness.damage.iter().filter(|damage| damage.is_of_history());
        let names: BTreeSet<_> = damage.filter_map(|damage| damage.name.as_ref()).collect();
        names.into_iter().filter(|name| !self.lost.iter().any(|lost| lost.name == **name))
    }

    /// Returns the losses, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { wreckage, soundness, lost, nameless, .. } = self;
        let mut lines: Vec<String> = lost.iter().flat_map(told).collect();
        lines.extend(nameless.iter().map(|damage| format!("a session without a name: {damage}")));
        lines.extend(self.ends_lost().map(|name| {
            format!("session {name}: the end of an earlier session of that name is lost")
        }));
        lines.extend(wreckage.places.iter().cloned());
        lines.extend(
            self.images_lost()
                .map(|image| format!("session {}: image {} is lost", image.whose(), image.digest)),
        );
        let tokens = soundness.tokens_damaged;
        lines.extend((tokens > 0).then(|| format!("damaged tokens: {tokens}")));
        lines
    }
}

fn told(lost: &Lost) -> Vec<String> {
    let Lost { name, kept, head, images } = lost;
    let history = match kept {
        Some(kept) => {
            format!(
                "session {name}: kept up to revision {kept}, lost from {} to {head}",
                kept.next()
            )
        }
        None => format!("session {name}: nothing can be read, up to revision {head}"),
    };
    let images = images.iter().map(|image| format!("session {name}: image {image} is lost"));
    [history].into_iter().chain(images).collect()
}

/// A directory that is filled under a temporary name, and removed if dropped before it is finished.
pub(super) struct Draft {
    pub(super) dir: PathBuf,
}

impl Draft {
    pub(super) fn beside(to: &Path) -> Result<Self, Unsalvaged> {
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let dir = to.with_file_name(format!(".{name}.{}.partial", Uuid::new_v4().simple()));
        let made = DirBuilder::new().mode(DIR_MODE).create(&dir);
        made.map_err(|source| Unsalvaged::Make { path: dir.clone(), source })?;
        Ok(Self { dir })
    }

    fn finish(self, to: &Path) -> Result<(), Unsalvaged> {
        let named = fs::rename(&self.dir, to).and_then(|()| sync_parent(to));
        named.map_err(|source| Unsalvaged::Make { path: to.to_owned(), source })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Finished, it is there no more.
        fs::remove_dir_all(&self.dir).ok();
    }
}
