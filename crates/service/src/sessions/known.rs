//! What this server knows of a session's head, as it is compared with a store that other servers write to.
//!
//! A revision is no identity there: after the promotion of a standby that lagged, the revisions of lost commits are given
//! to others. The seal of a commit distinguishes them.

use uuid::Uuid;

use blackboard_board::{Board, Epoch, Revision, Seal, SessionId};
use blackboard_store::Head;

/// The head of a session as published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) session: SessionId,
    pub(crate) revision: Revision,
    /// Its last commit; `None` if only a base has that revision.
    pub(crate) seal: Option<Seal>,
    /// True if the session exists.
    exists: bool,
    /// The epoch in which the store had this head.
    pub(crate) epoch: Epoch,
}

/// How a store stands to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has the head, and perhaps later commits.
    Has,
    /// It retains no commit by which that could be said.
    Unsure,
    /// It has lost commits that were acknowledged.
    Lost,
}

impl Known {
    /// What is known of a name without a session.
    pub(crate) const NOTHING: Self = Self {
        session: SessionId(Uuid::nil()),
        revision: Revision(0),
        seal: None,
        exists: false,
        epoch: Epoch(0),
    };

    pub(crate) fn of(board: &Board, seal: Option<Seal>, epoch: Epoch) -> Self {
        let (session, revision) = (board.id(), board.revision());
        Self { session, revision, seal, exists: board.life().is_some(), epoch }
    }

    /// Returns true if it is the same head.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.session, self.revision, self.seal) == (other.session, other.revision, other.seal)
    }

    /// Compares it with the head that a store was found to have later.
    pub(crate) fn standing(&self, head: Option<&Head>) -> Standing {
        let Some(head) = head else {
            // A deleted session may have been forgotten.
            return if self.exists { Standing::Lost } else { Standing::Has };
        };
        // The next session of a name goes on above the revisions of the one before.
        let next = if self.session == head.session { self.revision } else { self.revision.next() };
        if head.revision < next {
            return Standing::Lost;
        }
        if self.session != head.session {
            return Standing::Has;
        }
        match (self.seal, head.asked) {
            (Some(known), Some(stored)) if known == stored => Standing::Has,
            (Some(_), Some(_)) => Standing::Lost,
            // The history begins there, by a truncation.
            (_, None) if head.revision == self.revision => Standing::Has,
            (None, Some(_)) | (_, None) => Standing::Unsure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(Uuid::from_u128(1));
    const TWO: SessionId = SessionId(Uuid::from_u128(2));

    fn known(seal: Option<u8>) -> Known {
        let seal = seal.map(|byte| Seal([byte; 11]));
        Known { session: ONE, revision: Revision(5), seal, exists: true, epoch: Epoch(1) }
    }

    fn standing(known: &Known, session: SessionId, revision: u64, asked: Option<u8>) -> Standing {
        let (revision, asked) = (Revision(revision), asked.map(|byte| Seal([byte; 11])));
        known.standing(Some(&Head { session, revision, base: None, history_bytes: 0, asked }))
    }

    #[test]
    fn a_head_with_another_commit_or_a_lower_one_is_a_loss() {
        let own = known(Some(7));
        for revision in [5, 6] {
            assert_eq!(standing(&own, ONE, revision, Some(7)), Standing::Has);
            assert_eq!(standing(&own, ONE, revision, Some(8)), Standing::Lost);
        }
        assert_eq!(standing(&own, ONE, 4, None), Standing::Lost);
    }

    #[test]
    fn a_truncated_history_is_read_again_once_it_goes_on() {
        assert_eq!(standing(&known(Some(7)), ONE, 5, None), Standing::Has);
        assert_eq!(standing(&known(Some(7)), ONE, 6, None), Standing::Unsure);
        assert_eq!(standing(&known(None), ONE, 5, None), Standing::Has);
        assert_eq!(standing(&known(None), ONE, 5, Some(7)), Standing::Unsure);
    }

    #[test]
    fn the_next_session_of_a_name_has_higher_revisions() {
        assert_eq!(standing(&known(Some(7)), TWO, 6, None), Standing::Has);
        assert_eq!(standing(&known(Some(7)), TWO, 5, None), Standing::Lost);
        assert_eq!(standing(&Known::NOTHING, TWO, 1, None), Standing::Has);
    }

    #[test]
    fn a_name_that_the_store_does_not_know_was_lost_or_forgotten() {
        assert_eq!(known(Some(7)).standing(None), Standing::Lost);
        assert_eq!(Known { exists: false, ..known(Some(7)) }.standing(None), Standing::Has);
        assert_eq!(Known::NOTHING.standing(None), Standing::Has);
    }
}
