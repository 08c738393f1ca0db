//! Commits of other servers: taken in, and the writes that met them decided again.
//!
//! A write is decided on the heads that this server knows. If another server's commits came between, its verdict is
//! void, and so are those that met its staged board: all are decided again on the new heads, in their order. After
//! two conflicts they are decided while no other server writes to these sessions.
//!
//! A store may also have lost commits that this server published: they are dropped, and the epoch changes.

use std::slice;
use std::sync::Arc;

use super::Writer;
use super::batch::{Batch, Void};
use super::staging::Staging;
use super::verdict::{Verdict, Verdicts, answer};
use crate::error::ServiceError;
use crate::job::Behind;
use crate::sessions::known::{Known, Standing};
use crate::sessions::replay::{ONE, REPLAY_PAGE, sealed, whole};
use crate::sessions::session::new_session_id;
use blackboard_board::{Board, Revision, SessionName};
use blackboard_metrics as metrics;
use blackboard_store::{Head, SharedStore, TextChange};

/// The number of conflicts after which a write is decided while no other server writes.
const CONFLICTS_MAX: usize = 2;

impl Writer {
    /// Takes in what other servers committed to these sessions, and decides the writes again. Returns the sessions
    /// that could not be stored.
    pub(super) fn decide_on_new_heads(&mut self, void: Void, conflicts: usize) -> Vec<SessionName> {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared() else {
            tracing::error!("the store contains commits that this server did not write");
            refuse(void.verdicts, || ServiceError::Fault);
            return void.names;
        };
        let conflicts = conflicts + 1;
        if void.verdicts.is_empty() || conflicts < CONFLICTS_MAX {
            if let Err(error) = self.catch_up(shared, &void.names) {
                tracing::warn!(%error, "commits of other servers could not be read");
                refuse(void.verdicts, || ServiceError::Overloaded);
                return void.names;
            }
            let mut written = self.decide_all(void.verdicts);
            written.outcomes = self.append(&written.runs);
            return self.conclude(written, conflicts);
        }
        if conflicts > CONFLICTS_MAX {
            refuse(void.verdicts, || ServiceError::Overloaded);
            return void.names;
        }
        self.decide_exclusively(shared, void, conflicts)
    }

    fn decide_exclusively(
        &mut self,
        shared: &dyn SharedStore,
        void: Void,
        conflicts: usize,
    ) -> Vec<SessionName> {
        let Void { names, verdicts } = void;
        let held = self.touched(&names, &verdicts);
        let (mut verdicts, mut decided) = (Some(verdicts), None);
        let outcomes = shared.exclusively(&bytes_of(&held), &mut || {
            let caught_up = self.catch_up(shared, &held);
            match (caught_up, verdicts.take()) {
                (Ok(()), Some(verdicts)) => {
                    let mut written = self.decide_all(verdicts);
                    let runs = std::mem::take(&mut written.runs);
                    decided = Some(written);
                    runs
                }
                (_, back) => {
                    verdicts = back;
                    Vec::new()
                }
            }
        });
        let Some(mut written) = decided else {
            refuse(verdicts.unwrap_or_default(), || ServiceError::Overloaded);
            return names;
        };
        written.outcomes = outcomes;
        self.conclude(written, conflicts)
    }

    /// Returns the names of all sessions that these writes touch.
    fn touched(&self, names: &[SessionName], verdicts: &Verdicts) -> Vec<SessionName> {
        let sources =
            verdicts.iter().filter_map(|(job, _)| job.fork_key.as_ref()).map(|(name, _)| name);
        let gathered = self.qa_session.as_ref().map(|qa| &qa.name);
        let mut all: Vec<_> = names.iter().chain(sources).chain(gathered).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    fn decide_all(&mut self, verdicts: Verdicts) -> super::Written {
        let mut batch = Batch::default();
        for (job, _) in verdicts {
            let reading = self.clock.read();
            let verdict = if self.staging(&mut batch, job.session(), reading).is_closed() {
                // The session was deleted in this batch; its caller queues the write for the next one.
                Verdict::Cold
            } else {
                self.decide(&mut batch, &job, reading)
            };
            self.add(&mut batch, job, verdict);
        }
        self.runs(batch)
    }

    /// Takes in what other servers committed to these sessions, and tells those who wait for that.
    pub(super) fn catch_up_with(&mut self, behind: Vec<Behind>) {
        for Behind { name, head, known, waiting } in behind {
            let mut taken_in = self.meet(&name, head, &known);
            if let Err(error) = &taken_in {
                tracing::warn!(session = %name, %error, "commits of other servers could not be read");
            }
            for asker in waiting {
                let answer = std::mem::replace(&mut taken_in, Err(ServiceError::Unreachable));
                if answer.is_ok() {
                    taken_in = Ok(());
                }
                // The asker may have gone away.
                asker.send(answer).ok();
            }
        }
    }

    /// Takes in what other servers committed to the sessions of these names.
    pub(super) fn catch_up(
        &mut self,
        shared: &dyn SharedStore,
        names: &[SessionName],
    ) -> Result<(), ServiceError> {
        let known: Vec<_> = names.iter().map(|name| self.known(name)).collect();
        let asked = bytes_of(names).into_iter().zip(known.iter().map(|known| known.revision));
        let heads = shared.heads(&asked.collect::<Vec<_>>())?;
        for ((name, known), head) in names.iter().zip(known).zip(heads) {
            self.meet(name, head, &known)?;
        }
        Ok(())
    }

    fn known(&self, name: &SessionName) -> Known {
        self.directory.get(name).map_or(Known::NOTHING, |session| session.known())
    }

    /// Brings a name's session to where the store has it. `asked` is what was known when the store was asked.
    fn meet(
        &mut self,
        name: &SessionName,
        head: Option<Head>,
        asked: &Known,
    ) -> Result<(), ServiceError> {
        // Otherwise it was brought there since.
        let is_current = self.known(name).is_same(asked);
        match (asked.standing(head.as_ref()), head) {
            (Standing::Lost, head) if is_current => self.load(name, head, true),
            (Standing::Unsure, Some(head)) if is_current => self.load(name, Some(head), false),
            (_, Some(head)) => self.take_in(name, head),
            (_, None) => Ok(()),
        }
    }

    /// Returns an error if a base made after so many losses is of commits that the store has lost since.
    pub(super) fn is_still_stored(
        &mut self,
        name: &SessionName,
        losses: Option<u64>,
    ) -> Result<(), ServiceError> {
        let store = Arc::clone(&self.store);
        let (Some(shared), Some(losses)) = (store.shared(), losses) else { return Ok(()) };
        self.catch_up(shared, slice::from_ref(name))?;
        let now = self.directory.get(name).map(|session| session.extent_after_losses().1);
        if now == Some(losses) { Ok(()) } else { Err(ServiceError::FailedOver) }
    }

    /// Publishes what a name's session has in the store beyond what is published.
    fn take_in(&mut self, name: &SessionName, head: Head) -> Result<(), ServiceError> {
        let known = self.directory.get(name).map(|session| session.extent());
        match known {
            Some(known) if known.session == head.session => {
                if known.revision < head.revision {
                    match self.follow(name) {
                        // Its history begins later by now.
                        Ok(false) | Err(ServiceError::Compacted { .. }) => {
                            self.load(name, Some(head), false)?;
                        }
                        followed => _ = followed?,
                    }
                }
                self.begin_where(name, head);
                Ok(())
            }
            Some(_) => {
                // Watchers of the name see the end of its session, if that can be read, and then the next one.
                if let Err(error) = self.follow(name) {
                    tracing::debug!(session = %name, %error, "the end of a session was not read");
                }
                self.load(name, Some(head), false)
            }
            None => self.load(name, Some(head), false),
        }
    }

    /// Publishes that another server truncated the history, and how long it is by the store's count.
    fn begin_where(&self, name: &SessionName, head: Head) {
        let Some(session) = self.directory.get(name).filter(|session| session.exists()) else {
            return;
        };
        let (known, bytes) = (session.extent(), session.history_bytes());
        if known.session != head.session {
            return;
        }
        if known.revision == head.revision {
            let oldest = head.base.unwrap_or(known.oldest).max(known.oldest);
            if (oldest, head.history_bytes) != (known.oldest, bytes) {
                self.publish_beginning(&session, oldest, head.history_bytes);
            }
        } else if let Some(base) = head.base {
            // Later commits were read too; the next check finds the count that belongs to them.
            self.begin_at(&session, base, bytes.min(head.history_bytes));
        }
    }

    /// Publishes the commits that follow the published board, page by page. Returns false if it is not in memory.
    fn follow(&mut self, name: &SessionName) -> Result<bool, ServiceError> {
        loop {
            let mut staging = Staging::of(self.directory.get(name).as_ref(), &self.loader);
            if staging.is_cold() || staging.is_damaged() {
                return Ok(false);
            }
            let (session, after) = (staging.board().id(), staging.board().revision());
            let page = sealed(&*self.store, session, after, REPLAY_PAGE)?;
            if page.is_empty() {
                return Ok(true);
            }
            for (commit, bytes, seal) in page {
                staging.take_in(commit, bytes, seal)?;
            }
            self.publish(name, &mut staging);
        }
    }

    /// Publishes a name's session from the store's whole history; nothing, if it has none.
    fn load(
        &mut self,
        name: &SessionName,
        head: Option<Head>,
        is_lost: bool,
    ) -> Result<(), ServiceError> {
        let (board, history_bytes) = match head {
            Some(head) => whole(&*self.store, head.session)?,
            None => (Board::absent(new_session_id(), Revision::default()), 0),
        };
        let known = self.known(name);
        // A session that has revisions of the one before it is no successor, but an earlier one that is back.
        let is_back =
            known.session != board.id() && board.extent().oldest_cursor() < known.revision;
        let is_lost = is_lost || is_back;
        if is_lost {
            self.note_loss(name, &known, board.revision())?;
        }
        let former = Staging::of(self.directory.get(name).as_ref(), &self.loader);
        let before = Revision(board.revision().0.saturating_sub(1));
        // The commit may be gone: the history may begin here.
        let last = sealed(&*self.store, board.id(), before, ONE).unwrap_or_default();
        let last = last.into_iter().next_back().map(|(commit, _, seal)| (commit, seal));
        self.publish(name, &mut former.replaced_by(board, history_bytes, last, is_lost));
        Ok(())
    }

    /// Notes that the store lost what is known of a session. The epoch changes before anything is shown in its place, so
    /// that no tag of a lost commit is one of another commit of that revision.
    fn note_loss(
        &self,
        name: &SessionName,
        known: &Known,
        stored: Revision,
    ) -> Result<(), ServiceError> {
        let Some(shared) = self.store.shared() else { return Ok(()) };
        if known.epoch == self.store.epoch() {
            shared.draw_epoch(known.epoch)?;
        }
        self.past_boards.forget(known.session);
        if self.search.is_some() {
            shared.texts().change_texts(&[(known.session, TextChange::Forget)])?;
        }
        metrics::LOST_HEADS.add_one();
        let revision = known.revision;
        tracing::error!(session = %name, %revision, %stored, "the database has lost acknowledged commits; they are dropped here");
        Ok(())
    }
}

/// Answers writes that were not decided.
fn refuse(verdicts: Verdicts, why: impl Fn() -> ServiceError) {
    answer(verdicts.into_iter().map(|(job, _)| (job, Verdict::Failed(why()))).collect(), None);
}

fn bytes_of(names: &[SessionName]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_str().as_bytes().to_vec()).collect()
}
