//! Histories that lose their owner: a staged one that is not adopted, and one that is forgotten.

use super::bases::HistoryRow;
use super::database::Failure;
use super::histories::Owner;
use super::journal::Journal;
use super::parts::{END, REVISION_END};
use super::summaries;
use crate::board::SessionId;

impl Journal {
    /// Forgets a staged history. Its row says that it is nobody's until all else of it is deleted, so
    /// that a crash changes nothing.
    pub(super) fn discard(&mut self, session: SessionId) -> Result<(), Failure> {
        let mut histories = self.histories.write();
        if histories.standing(session).owner == Owner::Staged {
            let (rows, base) = histories.discard(session);
            self.garbage.add(session, rows, base);
            self.garbage.add_past(session, REVISION_END);
            self.garbage.add_discarded(session);
        }
        Ok(())
    }

    /// Forgets a session's history. As with one that was staged, its row says that it is nobody's until all else
    /// of it is deleted.
    pub(super) fn forget(&mut self, session: SessionId) -> Result<(), Failure> {
        if self.histories.read().standing_of_known(session) != Some(Owner::Session) {
            return Ok(());
        }
        let beginning = self.histories.read().in_force(session);
        let row = HistoryRow { session, beginning, staged: true };
        self.database.transact(|connection| {
            row.write(connection)?;
            END.delete_few(connection, session)?;
            summaries::delete(connection, session, REVISION_END)
        })?;
        let mut histories = self.histories.write();
        let (rows, put) = histories.discard(session);
        self.garbage.add(session, rows, put);
        self.garbage.add(session, histories.take_strays(session), beginning.base);
        self.garbage.add_past(session, REVISION_END);
        self.garbage.add_discarded(session);
        Ok(())
    }
}
