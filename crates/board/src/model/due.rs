//! Deadlines of a board, by what expires.

use crate::state::StatePath;
use std::collections::BTreeSet;

use imbl::OrdSet;

use crate::log::SeqRange;
use crate::{Board, Seq, Timestamp};

/// An expiring part of a board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A path of the state is deleted.
    State(StatePath),
    /// A claim on a request expires.
    Claim(Seq),
    /// The deadline of a request passed.
    Deadline(Seq),
    /// The times before which requests could not be claimed have come.
    Requests(Vec<SeqRange>),
    /// A question stops waiting. The commit's next change sets the question's new item.
    Question(Seq),
    /// The session is deleted with all its contents.
    Session,
}

impl Board {
    /// Returns the next deadline, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let [leases, early, deadlines] =
            [self.tasks.leases(), self.tasks.early(), self.tasks.deadlines()]
                .map(|times| times.get_min().map(|(at, _)| *at));
        let state = self.state.next_expiry();
        let times = [self.ends_at(), state, leases, early, deadlines, self.asked.next()];
        times.into_iter().flatten().min()
    }

    /// Returns at most `limit` expired things, or only the session if it expired. All requests whose time has come are
    /// one.
    #[must_use]
    pub fn due(&self, now: Timestamp, limit: usize) -> Vec<Due> {
        if self.ends_at().is_some_and(|at| at <= now) {
            return vec![Due::Session];
        }
        let tasks = &self.tasks;
        let passed = |times: &OrdSet<(Timestamp, Seq)>| {
            let passed: Vec<Seq> =
                times.iter().take_while(|(at, _)| *at <= now).map(|(_, seq)| *seq).collect();
            passed
        };
        // A deadline ends the request with its claim and its wait.
        let ended: BTreeSet<Seq> = passed(tasks.deadlines()).into_iter().collect();
        let goes_on = |seq: &Seq| !ended.contains(seq);
        let claims = passed(tasks.leases()).into_iter().filter(goes_on).map(Due::Claim);
        let mut ready: Vec<Seq> = passed(tasks.early()).into_iter().filter(goes_on).collect();
        ready.sort_unstable();
        let ready = (!ready.is_empty()).then(|| Due::Requests(consecutive(&ready)));
        let paths = self.state.due(now, limit).into_iter().map(Due::State);
        let deadlines = passed(tasks.deadlines()).into_iter().map(Due::Deadline);
        let questions = self.asked.due(now).map(Due::Question);
        let due = ready.into_iter().chain(paths).chain(deadlines).chain(claims).chain(questions);
        due.take(limit).collect()
    }

    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        let ttl = self.life.as_ref()?.settings.ttl?;
        Some(self.written_at.after(ttl))
    }
}

/// Groups ascending seqs into ranges without gaps.
fn consecutive(seqs: &[Seq]) -> Vec<SeqRange> {
    let ranges = seqs.chunk_by(|seq, next| next.0 == seq.0 + 1);
    ranges
        .filter_map(|range| Some(SeqRange { first: *range.first()?, last: *range.last()? }))
        .collect()
}
