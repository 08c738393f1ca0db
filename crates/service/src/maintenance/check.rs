//! Check of a store: every checksum, commit, image and cache is read and compared.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::sessions::by_id::{Unusable, read_summary};
use crate::sessions::replay::Whole;
use crate::startup::damage::{Damage, DamageCause, Loading};
use crate::startup::scan::{is_of_history, name_of};
use blackboard_board::stored::BaseReader;
use blackboard_board::{Board, Digest, Revision, SessionId, SessionName, Summary};
use blackboard_store::{
    EmbeddedStore, IsOver, NameRow, Progress, Record, Stage, StoreError, Stored, StoredSession,
    SummaryRow,
};

/// Result of a check.
#[derive(Debug)]
pub struct Soundness {
    /// Number of commits.
    pub commits: u64,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of their images.
    pub images: usize,
    /// The rows that cannot be used.
    pub damage: Vec<Damage>,
    /// Inconsistent pages and indexes of the database, in SQLite's words.
    pub misfits: Vec<String>,
    /// The images that are missing or damaged.
    pub images_damaged: Vec<DamagedImage>,
    /// Number of damaged tokens, which grant nothing.
    pub tokens_damaged: usize,
}

/// An image that is missing or damaged.
#[derive(Debug)]
pub struct DamagedImage {
    /// Its session.
    pub session: SessionId,
    /// The session's name, if its history has it.
    pub name: Option<SessionName>,
    /// Its expected digest.
    pub digest: Digest,
    /// The fault.
    pub error: StoreError,
}

impl DamagedImage {
    /// Returns the session's name, or the id if the name is unknown.
    #[must_use]
    pub fn whose(&self) -> String {
        self.name.as_ref().map_or_else(|| self.session.to_string(), SessionName::to_string)
    }
}

impl Soundness {
    /// Returns true if no damage was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
            && self.misfits.is_empty()
            && self.images_damaged.is_empty()
            && self.tokens_damaged == 0
    }

    /// Returns the faults, a sentence each.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        let damage = self.damage.iter().map(damage_text);
        let images = self.images_damaged.iter().map(image_text);
        let tokens = (self.tokens_damaged > 0).then(|| self.tokens_text());
        let misfits = self.misfits.iter().map(misfit_text);
        damage.chain(misfits).chain(images).chain(tokens)
    }

    fn tokens_text(&self) -> String {
        format!("damaged tokens: {}", self.tokens_damaged)
    }

    /// Keeps the faults that an earlier check found too.
    fn retain_repeated(&mut self, before: &BTreeSet<String>) {
        self.damage.retain(|damage| before.contains(&damage_text(damage)));
        self.misfits.retain(|misfit| before.contains(&misfit_text(misfit)));
        self.images_damaged.retain(|image| before.contains(&image_text(image)));
        if !before.contains(&self.tokens_text()) {
            self.tokens_damaged = 0;
        }
    }
}

fn damage_text(damage: &Damage) -> String {
    match &damage.name {
        Some(name) => format!("{damage} ({name})"),
        None => damage.to_string(),
    }
}

fn misfit_text(misfit: &String) -> String {
    format!("the database: {misfit}")
}

fn image_text(image: &DamagedImage) -> String {
    format!("image {} of session {}: {}", image.digest, image.whose(), image.error)
}

/// Reads all of a store: every checksum, every commit, every image.
///
/// # Errors
///
/// [`StoreError`] if the store cannot be read at all.
pub fn check(store: &dyn EmbeddedStore) -> Result<Soundness, StoreError> {
    check_counted(store, &Progress::default())
}

/// Checks like [`check`], and counts what it has read.
///
/// # Errors
///
/// As for [`check`].
pub fn check_counted(
    store: &dyn EmbeddedStore,
    progress: &Progress,
) -> Result<Soundness, StoreError> {
    let never: IsOver = Arc::new(|| false);
    check_unless(store, &never, progress)
}

/// Checks a store under writes. A fault that a second check does not find was a change between two reads, such as a
/// deletion between the commit of a screenshot and its image.
pub(crate) fn check_changing(
    store: &dyn EmbeddedStore,
    is_over: &IsOver,
    progress: &Progress,
) -> Result<Soundness, StoreError> {
    let found = check_unless(store, is_over, progress)?;
    if found.is_sound() {
        return Ok(found);
    }
    let before = found.faults().collect();
    let mut again = check_unless(store, is_over, progress)?;
    again.retain_repeated(&before);
    Ok(again)
}

/// Checks like [`check`], and stops with [`StoreError::Closed`] once `is_over` says so.
pub(crate) fn check_unless(
    store: &dyn EmbeddedStore,
    is_over: &IsOver,
    progress: &Progress,
) -> Result<Soundness, StoreError> {
    let mut checked = Checked { caches: caches(store)?, ..Checked::default() };
    for stored in store.sessions().iter().filter(|stored| stored.is_damaged) {
        checked.set_aside(stored);
    }
    progress.begin(Stage::Commits, commits_expected(store));
    store.replay(&mut |stored| {
        checked.take(&stored);
        progress.advance(u64::from(matches!(stored, Stored::Commit(_))));
        if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    checked.end_bases();
    checked.find_lost_ends();
    checked.find_names(store)?;
    let Checked { sessions, damage, commits, .. } = checked;
    progress.begin(Stage::Pages, 0);
    let tokens_damaged = store.tokens()?.iter().filter(|token| token.body.is_none()).count();
    let mut soundness = Soundness {
        commits,
        sessions: 0,
        images: 0,
        damage,
        misfits: store.misfits(is_over)?,
        images_damaged: Vec::new(),
        tokens_damaged,
    };
    if is_over() {
        return Err(StoreError::Closed);
    }
    let mut present: Vec<_> = sessions.iter().collect();
    present.retain(|loading| loading.board.life().is_some());
    let images: usize = present.iter().map(|loading| loading.board.images().count()).sum();
    progress.begin(Stage::Images, u64::try_from(images).unwrap_or(u64::MAX));
    for loading in present {
        soundness.sessions += 1;
        let session = loading.board.id();
        for (digest, _) in loading.board.images() {
            soundness.images += 1;
            progress.advance(1);
            if is_over() {
                return Err(StoreError::Closed);
            }
            if let Err(error) = store.blob(session, *digest) {
                let name = loading.name.clone();
                let image = DamagedImage { session, name, digest: *digest, error };
                soundness.images_damaged.push(image);
            }
        }
    }
    Ok(soundness)
}

/// Returns the number of commits after the bases.
fn commits_expected(store: &dyn EmbeddedStore) -> u64 {
    let commits = |stored: &StoredSession| {
        let base = store.base(stored.session).ok().flatten().unwrap_or_default();
        stored.head.0.saturating_sub(base.0)
    };
    store.sessions().iter().map(commits).sum()
}

/// The snapshot and the summary of a session, to be compared with its history.
#[derive(Default)]
struct Caches {
    /// The snapshot, if it can be read.
    snapshot: Option<Board>,
    /// The summary, if it can be read.
    summary: Option<Summary>,
    /// The faults of those that cannot be read.
    unreadable: Vec<(Revision, DamageCause)>,
}

fn caches(store: &dyn EmbeddedStore) -> Result<HashMap<SessionId, Caches>, StoreError> {
    let mut caches: HashMap<SessionId, Caches> = HashMap::new();
    store.summaries(&mut |row: &SummaryRow| {
        let found = caches.entry(row.session).or_default();
        // One from before the last truncation covers deleted commits.
        match read_summary(row) {
            Ok(summary) if is_of_history(&summary, store.base(row.session).ok().flatten()) => {
                found.summary = Some(summary);
            }
            Ok(_) | Err(Unusable::OtherVersion) => {}
            Err(Unusable::Damaged) => found.unreadable.push((row.revision, DamageCause::Summary)),
        }
        ControlFlow::Continue(())
    })?;
    for stored in store.sessions() {
        let mut whole = Whole::of(stored.session);
        let take = &mut |revision, frame: &[u8]| whole.take(revision, frame);
        let found = store.read_snapshot(stored.session, stored.head, take)?;
        let Some(revision) = found else { continue };
        let of_session = caches.entry(stored.session).or_default();
        match whole.finish() {
            Ok(board) if board.revision() == revision => {
                of_session.snapshot = Some(board);
            }
            Ok(_) | Err(_) => of_session.unreadable.push((revision, DamageCause::Snapshot)),
        }
    }
    Ok(caches)
}

/// All sessions by id.
#[derive(Default)]
struct Checked {
    caches: HashMap<SessionId, Caches>,
    /// In the order of their first commits.
    sessions: Vec<Loading>,
    by_id: HashMap<SessionId, usize>,
    damage: Vec<Damage>,
    commits: u64,
}

impl Checked {
    /// Notes a session whose history has no known beginning.
    fn set_aside(&mut self, stored: &StoredSession) {
        let StoredSession { session, head, .. } = *stored;
        let mut loading = Loading::new(session, head);
        self.damage.push(loading.damage(None, head, DamageCause::Beginning));
        self.by_id.insert(session, self.sessions.len());
        self.sessions.push(loading);
    }

    fn take(&mut self, stored: &Stored<'_>) {
        let (session, revision, begins) = match stored {
            Stored::Base { session, revision, .. } => (*session, *revision, true),
            Stored::Commit(Record { session, revision, .. }) => (*session, *revision, false),
        };
        let index = *self.by_id.entry(session).or_insert_with(|| {
            let before = Revision(revision.0.saturating_sub(1));
            let mut loading = Loading::new(session, before);
            loading.base = begins.then(|| BaseReader::new(session));
            self.sessions.push(loading);
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
            self.damage.push(loading.damage(journal_id, revision, cause));
        }
        if let Some(caches) = self.caches.get_mut(&session) {
            let unlike = caches.unlike(loading);
            let whose = |(revision, cause)| Damage {
                journal_id: None,
                session,
                name: loading.name.clone(),
                revision,
                cause,
            };
            self.damage.extend(unlike.into_iter().map(whose));
        }
    }

    /// A base without later commits ends the history.
    fn end_bases(&mut self) {
        for loading in self.sessions.iter_mut().filter(|loading| !loading.damaged) {
            if let Err(cause) = loading.end_base() {
                self.damage.push(loading.damage(None, loading.board.revision(), cause));
            }
        }
    }
}

impl Checked {
    /// A summary is stored after its commits.
    fn find_lost_ends(&mut self) {
        for (session, caches) in &self.caches {
            let loading = self.by_id.get(session).and_then(|index| self.sessions.get(*index));
            let found = loading.map(|loading| loading.board.revision()).unwrap_or_default();
            let Some(summary) = &caches.summary else { continue };
            let revision = summary.extent.revision;
            if revision > found && loading.is_none_or(|loading| !loading.damaged) {
                self.damage.push(Damage {
                    journal_id: None,
                    session: *session,
                    name: Some(summary.name.clone()),
                    revision,
                    cause: DamageCause::Lost { found },
                });
            }
        }
    }

    /// Finds unreadable summaries and names, and the names of sessions whose histories have lost them.
    fn find_names(&mut self, store: &dyn EmbeddedStore) -> Result<(), StoreError> {
        let (mut names, mut faults) = (HashMap::new(), Vec::new());
        for NameRow { session, name } in store.names()? {
            match name {
                Some(name) => drop(names.insert(session, name)),
                None => faults.push((session, Revision::default(), DamageCause::Name)),
            }
        }
        for (session, caches) in &mut self.caches {
            let unreadable = std::mem::take(&mut caches.unreadable).into_iter();
            faults.extend(unreadable.map(|(revision, cause)| (*session, revision, cause)));
        }
        self.damage.extend(faults.into_iter().map(|(session, revision, cause)| Damage {
            journal_id: None,
            session,
            name: None,
            revision,
            cause,
        }));
        let mut damage = std::mem::take(&mut self.damage);
        for damage in damage.iter_mut().filter(|damage| damage.name.is_none()) {
            damage.name = self.name_of(&names, damage.session);
        }
        self.damage = damage;
        Ok(())
    }

    /// Returns a session's name; a damaged id differs little from the session's.
    fn name_of(
        &self,
        names: &HashMap<SessionId, Vec<u8>>,
        session: SessionId,
    ) -> Option<SessionName> {
        let summarized = || Some(self.caches.get(&session)?.summary.as_ref()?.name.clone());
        let own = self.sessions.iter().filter(|loading| loading.board.id().is_near(session));
        let mut near = names.keys().filter(|other| other.is_near(session));
        name_of(names, session)
            .or_else(summarized)
            .or_else(|| own.filter_map(|loading| loading.name.clone()).next())
            .or_else(|| name_of(names, *near.next()?))
    }
}

impl Caches {
    /// Compares snapshot and summary with the history's board, each once, and returns the differences.
    fn unlike(&mut self, loading: &Loading) -> Vec<(Revision, DamageCause)> {
        let mut unlike = std::mem::take(&mut self.unreadable);
        let (board, revision) = (&loading.board, loading.board.revision());
        if let Some(stored) = self.summary.take_if(|stored| stored.extent.revision == revision) {
            let snapshot_bytes = stored.snapshot_bytes;
            let is_so =
                loading.summary().is_some_and(|now| Summary { snapshot_bytes, ..now } == stored);
            if !is_so {
                unlike.push((revision, DamageCause::Summary));
            }
        }
        if let Some(stored) = self.snapshot.take_if(|stored| stored.revision() == revision)
            && stored.beginning_at(board.oldest()) != *board
        {
            unlike.push((revision, DamageCause::Snapshot));
        }
        unlike
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use blackboard_store::{SqliteOptions, SqliteStore, Store as _};

    #[test]
    fn a_token_with_a_changed_byte_is_a_fault() {
        let dir = TempDir::new().unwrap();
        let store = SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap();
        store.put_token(Uuid::new_v4(), Some(b"demo")).unwrap();
        assert!(check(&store).unwrap().is_sound());
        store.close().unwrap();
        drop(store);
        let database = rusqlite::Connection::open(dir.path().join("blackboard.db")).unwrap();
        database.execute("UPDATE token SET body = CAST('Demo' AS BLOB)", []).unwrap();
        drop(database);
        let store = SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap();
        let soundness = check(&store).unwrap();
        assert!(!soundness.is_sound());
        assert_eq!(soundness.faults().collect::<Vec<_>>(), ["damaged tokens: 1"]);
    }
}
