//! Deadlines of a board, by what expires.

use crate::state::StatePath;
use crate::{Board, Seq, Timestamp};

/// An expiring part of a board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A path of the state is deleted.
    State(StatePath),
    /// A claim on a request expires.
    Claim(Seq),
    /// A question stops waiting. The commit's next change sets the question's new item.
    Question(Seq),
    /// The session is deleted with all its contents.
    Session,
}

impl Board {
    /// Returns the next deadline, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let lease = self.claim_deadlines.get_min().map(|(at, _)| *at);
        let times = [self.ends_at(), self.state.next_expiry(), lease, self.asked.next()];
        times.into_iter().flatten().min()
    }

    /// Returns at most `limit` expired things, or only the session if it expired.
    #[must_use]
    pub fn due(&self, now: Timestamp, limit: usize) -> Vec<Due> {
        if self.ends_at().is_some_and(|at| at <= now) {
            return vec![Due::Session];
        }
        let claim_deadlines = self.claim_deadlines.iter().take_while(|(at, _)| *at <= now);
        let paths = self.state.due(now, limit).into_iter().map(Due::State);
        let claims = claim_deadlines.map(|(_, seq)| Due::Claim(*seq));
        let questions = self.asked.due(now).map(Due::Question);
        paths.chain(claims).chain(questions).take(limit).collect()
    }

    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        let ttl = self.life.as_ref()?.settings.ttl?;
        Some(self.written_at.after(ttl))
    }
}
