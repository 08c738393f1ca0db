//! Reading a store from its beginning: every frame decoded, every commit admitted, then applied.
//!
//! The server's start and `blackboard check` share it. A session whose history does not read is set
//! aside whole; it is never guessed at.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::deadlines::Deadlines;
use super::directory::Directory;
use super::session::{Published, Session};
use crate::board::stored::BaseReader;
use crate::board::{
    Board, Change, Commit, Digest, Frame, FrameError, Misfit, Revision, SessionId, SessionName,
    Timestamp, admit, apply, stored,
};
use crate::store::{JournalId, Record, Store, StoreError, Stored};

/// How long the last revision of a deleted session's name is remembered.
const TOMBSTONE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A row of the store that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}, session {session}, revision {revision}: {cause}", place(*journal_id))]
pub struct Damage {
    /// Which row of the journal; a part of a base is in none.
    pub journal_id: Option<JournalId>,
    /// Whose it is.
    pub session: SessionId,
    /// The session's name, where an earlier row told it.
    pub name: Option<SessionName>,
    /// The revision that it should make.
    pub revision: Revision,
    /// What is wrong with it.
    pub cause: DamageCause,
}

fn place(journal_id: Option<JournalId>) -> String {
    journal_id.map_or_else(|| "a base".to_owned(), |id| format!("journal row {}", id.0))
}

/// What is wrong with a row.
#[derive(Debug, thiserror::Error)]
pub enum DamageCause {
    /// Its frame does not hold.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Its body is not in the stored format.
    #[error(transparent)]
    Body(#[from] stored::Unreadable),
    /// It does not follow the commit before it.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// Why the sessions cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store does not answer.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// A damaged row belongs to a session whose name is not known.
    #[error("the store is damaged, and the damage hides which session it belongs to")]
    Nameless(#[source] Damage),
    /// The writer's thread could not be made.
    #[error("the writer's thread could not be started")]
    Thread(#[from] io::Error),
}

/// A session while it is being read.
struct Loading {
    board: Board,
    /// Its base, until the last part was read.
    base: Option<BaseReader>,
    name: Option<SessionName>,
    history_bytes: u64,
    damaged: bool,
}

/// All sessions as the store has them.
#[derive(Default)]
struct Loaded {
    /// By identity, in the order of their first commits.
    sessions: Vec<Loading>,
    by_id: HashMap<SessionId, usize>,
    damage: Vec<Damage>,
    commits: u64,
}

impl Loaded {
    fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut loaded = Self::default();
        store.replay(&mut |stored| {
            loaded.take(&stored);
            ControlFlow::Continue(())
        })?;
        loaded.end_bases();
        Ok(loaded)
    }

    fn take(&mut self, stored: &Stored<'_>) {
        let (session, revision, begins) = match stored {
            Stored::Base { session, revision, .. } => (*session, *revision, true),
            Stored::Commit(Record { session, revision, .. }) => (*session, *revision, false),
        };
        let index = *self.by_id.entry(session).or_insert_with(|| {
            let before = Revision(revision.0.saturating_sub(1));
            self.sessions.push(Loading {
                board: Board::absent(session, before),
                base: begins.then(|| BaseReader::new(session)),
                name: None,
                history_bytes: 0,
                damaged: false,
            });
            self.sessions.len() - 1
        });
        self.commits += u64::from(!begins);
        let Some(loading) = self.sessions.get_mut(index).filter(|loading| !loading.damaged) else {
            return;
        };
        let (journal_id, taken) = match stored {
            Stored::Base { frame, .. } => (None, loading.take_part(session, revision, frame)),
            Stored::Commit(record) => (record.journal_id, loading.follow(record)),
        };
        if let Err(cause) = taken {
            let damage = loading.damage(journal_id, revision, cause);
            self.damage.push(damage);
        }
    }

    /// Bases without a commit after them end with what was read.
    fn end_bases(&mut self) {
        for loading in self.sessions.iter_mut().filter(|loading| !loading.damaged) {
            if let Err(cause) = loading.end_base() {
                let damage = loading.damage(None, loading.board.revision(), cause);
                self.damage.push(damage);
            }
        }
    }
}

impl Loading {
    fn damage(
        &mut self,
        journal_id: Option<JournalId>,
        revision: Revision,
        cause: DamageCause,
    ) -> Damage {
        self.damaged = true;
        Damage { journal_id, session: self.board.id(), name: self.name.clone(), revision, cause }
    }

    fn take_part(
        &mut self,
        session: SessionId,
        revision: Revision,
        frame: &[u8],
    ) -> Result<(), DamageCause> {
        let part = Frame::decode(session, revision, frame)?;
        if let Some(base) = &mut self.base {
            base.take(part)?;
        }
        Ok(())
    }

    fn end_base(&mut self) -> Result<(), DamageCause> {
        let Some(base) = self.base.take() else { return Ok(()) };
        self.board = base.finish()?;
        self.name = self.board.life().map(|life| life.name.clone());
        Ok(())
    }

    fn follow(&mut self, record: &Record<'_>) -> Result<(), DamageCause> {
        self.end_base()?;
        let body = Frame::decode(record.session, record.revision, record.frame)?;
        let commit = stored::decode_commit(body)?;
        admit(&self.board, &commit)?;
        self.learn_name(&commit);
        apply(&mut self.board, &commit);
        self.history_bytes += record.frame.len() as u64;
        Ok(())
    }

    fn learn_name(&mut self, commit: &Commit) {
        let named = commit.changes.iter().find_map(Change::session_name);
        if let Some(name) = named {
            self.name = Some(name.clone());
        }
    }

    /// Whether it exists; a damaged one may.
    fn is_live(&self) -> bool {
        self.board.life().is_some() || self.damaged
    }

    /// Whether the name's last revision may be forgotten.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        let gone = self.board.life().is_none() && !self.damaged;
        gone && self.board.updated_at().0 < now.0 - TOMBSTONE_MS
    }
}

/// What is known of the sessions besides their boards.
#[derive(Default)]
pub(super) struct Found {
    /// The sessions that could not be read.
    pub(super) damage: Vec<Damage>,
    /// When something in which session comes to its end by time.
    pub(super) deadlines: Deadlines,
    /// The sessions that keep only a part of their history.
    pub(super) limited: HashSet<SessionName>,
}

/// Puts every session into the directory, and tells what else there is to know.
pub(super) fn load(
    store: &dyn Store,
    directory: &Directory,
    now: Timestamp,
) -> Result<Found, LoadError> {
    let mut deadlines = Deadlines::default();
    let mut loaded = Loaded::read(store)?;
    if let Some(index) = loaded.damage.iter().position(|damage| damage.name.is_none()) {
        return Err(LoadError::Nameless(loaded.damage.swap_remove(index)));
    }
    let (mut live, mut limited) = (HashSet::new(), HashSet::new());
    // Of two sessions of one name the one that exists stands, else the last one.
    loaded.sessions.sort_by_key(|loading| (loading.is_live(), loading.board.revision()));
    for loading in loaded.sessions {
        if loading.is_live() {
            live.insert(loading.board.id());
        }
        if loading.is_forgotten(now) {
            continue;
        }
        let Some(name) = loading.name else { continue };
        let life = loading.board.life();
        if life.is_some_and(|life| life.settings.history.is_some()) {
            limited.insert(name.clone());
        }
        let exists = life.is_some();
        deadlines.set(&name, loading.board.next_due().filter(|_| !loading.damaged));
        let published =
            Published { board: Arc::new(loading.board), history_bytes: loading.history_bytes };
        let session =
            if loading.damaged { Session::damaged(published) } else { Session::new(published) };
        directory.insert(name, Arc::new(session), exists);
    }
    store.keep_blobs_of(&live)?;
    Ok(Found { damage: loaded.damage, deadlines, limited })
}

/// What a check of a store found.
#[derive(Debug)]
pub struct Soundness {
    /// How many commits there are.
    pub commits: u64,
    /// How many sessions exist.
    pub sessions: usize,
    /// How many images they have.
    pub images: usize,
    /// The rows that cannot be used.
    pub damage: Vec<Damage>,
    /// The images that are missing or damaged.
    pub images_damaged: Vec<(SessionId, Digest, StoreError)>,
}

impl Soundness {
    /// Whether all of it is sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.images_damaged.is_empty()
    }
}

/// Reads all of a store: every checksum, every commit, every image.
///
/// # Errors
///
/// [`StoreError`] where it cannot be read at all.
pub fn check(store: &dyn Store) -> Result<Soundness, StoreError> {
    let loaded = Loaded::read(store)?;
    let mut soundness = Soundness {
        commits: loaded.commits,
        sessions: 0,
        images: 0,
        damage: loaded.damage,
        images_damaged: Vec::new(),
    };
    for loading in loaded.sessions.iter().filter(|loading| loading.board.life().is_some()) {
        soundness.sessions += 1;
        let session = loading.board.id();
        for (digest, _) in loading.board.images() {
            soundness.images += 1;
            if let Err(error) = store.blob(session, *digest) {
                soundness.images_damaged.push((session, *digest, error));
            }
        }
    }
    Ok(soundness)
}
