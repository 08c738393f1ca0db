//! Durable append of a batch: the room for it, its transaction, and the runs that are refused.
//!
//! A damaged page refuses the runs that meet it, a full disk those that grow; the others are stored. `rows::insert` has
//! the checks and the rows.

use super::database::Failure;
use super::rows::journal::{Journal, Unwritten};
use crate::files::disk::SPARE_BYTES;
use crate::{Outcome, Run, SqliteStore};
use blackboard_board::SessionId;

impl SqliteStore {
    /// Appends a batch to the journal in one durable transaction.
    pub(crate) fn append_to(&self, journal: &mut Journal, batch: &[Run]) -> Vec<Outcome> {
        let roomy = self.has_room_for(journal, batch);
        let mut outcomes = self.append_if_roomy(journal, batch, roomy);
        if roomy && outcomes.contains(&Outcome::Full) {
            // The disk had no room for the whole batch; runs that shrink may still fit.
            outcomes = self.append_if_roomy(journal, batch, false);
        }
        if outcomes.contains(&Outcome::Full) {
            self.note_full();
            // Clients that keep retrying leave no idle moment. What this released would be free for other programs until
            // the next one, and a start needs it.
            self.make_room(journal);
            self.room.hold_reserve();
        }
        self.room.note_owed(journal.database.owed());
        outcomes
    }

    /// Refuses runs that meet a malformed page, and stores the others.
    fn append_if_roomy(&self, journal: &mut Journal, batch: &[Run], roomy: bool) -> Vec<Outcome> {
        let mut malformed = Vec::new();
        loop {
            let (outcomes, written) = self.try_to_append(journal, batch, roomy, &malformed);
            match written {
                Ok(()) => return outcomes,
                Err(Unwritten::Met { session, error }) if !malformed.contains(&session) => {
                    tracing::error!(%session, %error, "a write needed a damaged page and was rejected");
                    malformed.push(session);
                }
                // Conflicts fail with the batch too: they may name a head that exists only in it.
                Err(Unwritten::Met { error, .. }) => {
                    return vec![self.failed(&Failure::Broken(error)); batch.len()];
                }
                Err(Unwritten::All(failure)) => return vec![self.failed(&failure); batch.len()],
            }
        }
    }

    fn try_to_append(
        &self,
        journal: &mut Journal,
        batch: &[Run],
        roomy: bool,
        malformed: &[SessionId],
    ) -> (Vec<Outcome>, Result<(), Unwritten>) {
        let outcomes = journal.judge(batch, roomy, malformed);
        let accepted = batch
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome == Outcome::Appended)
            .map(|(run, _)| run);
        if accepted.clone().next().is_none() {
            return (outcomes, Ok(()));
        }
        let bytes: u64 = accepted.clone().map(Run::bytes).sum();
        let needed = bytes.saturating_mul(2).saturating_add(SPARE_BYTES);
        let mut written = journal.write(accepted.clone());
        if !roomy
            && matches!(written, Err(Unwritten::All(Failure::Full)))
            && self.room.give_up_reserve_for(needed)
        {
            written = journal.write(accepted);
        }
        if written.is_ok() {
            if self.noted(journal.sweep_if_busy()) == Some(true) {
                self.room.hold_reserve();
            }
            self.noted(journal.checkpoint_if_long());
        }
        (outcomes, written)
    }

    fn has_room_for(&self, journal: &mut Journal, batch: &[Run]) -> bool {
        let growing = batch.iter().filter(|run| run.grows);
        let bytes = growing.map(Run::frame_bytes).sum();
        if self.room.is_for(bytes) {
            return true;
        }
        // After a checkpoint, the log's content takes no more room in the database.
        self.noted(journal.database.checkpoint_now());
        self.room.note_owed(journal.database.owed());
        self.room.is_for(bytes)
    }
}
