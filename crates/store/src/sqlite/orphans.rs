//! Orphaned histories: staged but never adopted, or no longer named by a session.

use rusqlite::Connection;

use super::database::Failure;
use super::index::{Base, Beginning, Histories, Owner};
use super::rows::bases::HistoryRow;
use super::rows::journal::Journal;
use super::rows::parts::{BASE, END, REVISION_END};
use super::rows::summaries;
use super::session_names;
use blackboard_board::{Revision, SessionId};

impl Journal {
    /// Forgets a staged history. Its row marks it as staged until everything else of it is deleted, so a crash
    /// changes nothing.
    pub(crate) fn discard(&mut self, session: SessionId) -> Result<(), Failure> {
        let mut histories = self.histories.write();
        if histories.standing(session).owner == Owner::Staged {
            let (rows, base) = histories.discard(session);
            self.garbage.add(session, rows, base);
            self.garbage.add_past(session, REVISION_END);
            self.garbage.add_discarded(session);
        }
        Ok(())
    }

    /// Forgets the histories of these sessions. Their rows mark them as staged until everything else of them is
    /// deleted.
    pub(crate) fn forget(&mut self, sessions: &[SessionId]) -> Result<(), Failure> {
        let (owned, unknown): (Vec<Owned>, Vec<SessionId>) = {
            let histories = self.histories.read();
            let own = |session: &SessionId| Owned::of(&histories, *session);
            let is_unknown = |session: &SessionId| !histories.is_known(*session);
            let unknown = sessions.iter().copied().filter(is_unknown).collect();
            (sessions.iter().filter_map(own).collect(), unknown)
        };
        if owned.is_empty() && unknown.is_empty() {
            return Ok(());
        }
        let bases = self.database.transact(|connection| {
            for session in &unknown {
                summaries::delete(connection, *session, REVISION_END)?;
                session_names::delete(connection, *session)?;
            }
            let bases = owned.iter().map(|owned| owned.disown(connection));
            bases.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let mut histories = self.histories.write();
        for (Owned { session, .. }, bases) in owned.into_iter().zip(bases) {
            let (rows, put) = histories.discard(session);
            self.garbage.add(session, rows, put);
            self.garbage.add(session, histories.take_strays(session), None);
            for revision in bases {
                self.garbage.add(
                    session,
                    Vec::new(),
                    Some(Base { revision, parts: 0, ends: false }),
                );
            }
            self.garbage.add_past(session, REVISION_END);
            self.garbage.add_discarded(session);
        }
        Ok(())
    }
}

/// A session with a history of its own.
struct Owned {
    session: SessionId,
    beginning: Beginning,
    /// The id under which the history's row is stored, if damaged.
    damaged_row: Option<SessionId>,
}

impl Owned {
    fn of(histories: &Histories, session: SessionId) -> Option<Self> {
        let is_own = match histories.standing_of_known(session)? {
            Owner::Session | Owner::Damaged => true,
            Owner::Staged | Owner::Discarded => false,
        };
        let beginning = histories.in_force(session);
        is_own.then(|| Self { session, beginning, damaged_row: histories.damaged_row(session) })
    }

    /// Marks the history as staged. Returns the revisions of its bases.
    fn disown(&self, connection: &Connection) -> rusqlite::Result<Vec<Revision>> {
        let &Self { session, beginning, damaged_row } = self;
        if let Some(stored) = damaged_row {
            HistoryRow::delete(connection, stored)?;
        }
        HistoryRow { session, beginning, staged: true }.write(connection)?;
        END.delete_few(connection, session)?;
        summaries::delete(connection, session, REVISION_END)?;
        BASE.of_session(connection, session)
    }
}
