//! Touched entries: what commits have changed of a session, noted when they are published, so that the indexer need not read them.

use blackboard_board::{Commit, Indexed, LogName, Revision, Seq, SeqRange, SessionId};

/// The ranges of entries that are remembered of a session. Of more, the commits are read.
const RANGES_MAX: usize = 32;

/// The entries that commits in a row have touched, none of which removes any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(super) session: SessionId,
    /// The revision before the first commit.
    pub(super) after: Revision,
    /// The revision of the last one.
    pub(super) last: Revision,
    pub(super) ranges: Vec<(LogName, SeqRange)>,
}

impl Touched {
    /// Returns what commits have touched; `None` if that is more than entries to look at.
    pub(crate) fn of<'a>(
        session: SessionId,
        commits: impl Iterator<Item = &'a Commit>,
    ) -> Option<Self> {
        let mut touched: Option<Self> = None;
        for commit in commits {
            let touched = touched.get_or_insert_with(|| {
                let before = Revision(commit.revision.0.saturating_sub(1));
                Self { session, after: before, last: before, ranges: Vec::new() }
            });
            if commit.revision != touched.last.next() {
                return None;
            }
            touched.last = commit.revision;
            for change in &commit.changes {
                match change.facts().indexed {
                    Indexed::Nothing => {}
                    Indexed::Entries(log, first, count) => touched.add(log, first, count)?,
                    Indexed::Whole
                    | Indexed::Removed(..)
                    | Indexed::Cleared(_)
                    | Indexed::ClearedOf(_) => return None,
                }
            }
        }
        touched
    }

    /// Adds entries; returns `None` if there are too many ranges.
    fn add(&mut self, log: &LogName, first: Seq, count: usize) -> Option<()> {
        let Some(more) = (count as u64).checked_sub(1) else { return Some(()) };
        let range = SeqRange { first, last: Seq(first.0.saturating_add(more)) };
        self.join(log, range)
    }

    fn join(&mut self, log: &LogName, range: SeqRange) -> Option<()> {
        let known = self
            .ranges
            .iter_mut()
            .find(|(of, known)| of == log && known.last.0.saturating_add(1) == range.first.0);
        if let Some((_, known)) = known {
            known.last = range.last;
        } else if self.ranges.len() < RANGES_MAX {
            self.ranges.push((log.clone(), range));
        } else {
            return None;
        }
        Some(())
    }

    /// Adds what the commits behind these have touched; `None` if they are no such, or touch too much.
    pub(super) fn and(mut self, next: Self) -> Option<Self> {
        if (self.session, self.last) != (next.session, next.after) {
            return None;
        }
        self.last = next.last;
        next.ranges.into_iter().try_for_each(|(log, range)| self.join(&log, range))?;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blackboard_board::{Change, Item, LogChange, Nonce, Timestamp};
    use uuid::Uuid;

    const SESSION: SessionId = SessionId(Uuid::nil());

    fn commit(revision: u64, change: LogChange) -> Commit {
        Commit {
            revision: Revision(revision),
            at: Timestamp(0),
            agent: None,
            trace: None,
            nonce: Nonce(0),
            kept: None,
            changes: vec![Change::Log(LogName::Requests, change)],
        }
    }

    fn appended(revision: u64, first: u64, count: usize) -> Commit {
        let items = vec![Item::from_json("{}").unwrap(); count];
        commit(revision, LogChange::Appended { first: Seq(first), items })
    }

    fn touched(commits: &[Commit]) -> Option<Touched> {
        Touched::of(SESSION, commits.iter())
    }

    #[test]
    fn appends_in_a_row_are_one_range() {
        let one = touched(&[appended(5, 1, 2), appended(6, 3, 1)]).unwrap();
        let next = touched(&[appended(7, 4, 10)]).unwrap();
        let all = one.and(next).unwrap();
        let range = SeqRange { first: Seq(1), last: Seq(13) };
        assert_eq!(all.ranges, [(LogName::Requests, range)]);
        assert_eq!((all.after, all.last), (Revision(4), Revision(7)));
        assert_eq!(touched(&[]), None);
    }

    #[test]
    fn what_is_not_in_a_row_or_removes_is_unknown() {
        let other =
            Touched { session: SessionId(Uuid::max()), ..touched(&[appended(2, 2, 1)]).unwrap() };
        let one = || touched(&[appended(1, 1, 1)]).unwrap();
        assert_eq!(one().and(other), None);
        assert_eq!(one().and(touched(&[appended(3, 2, 1)]).unwrap()), None);
        assert_eq!(touched(&[appended(1, 1, 1), appended(3, 2, 1)]), None);
        assert_eq!(touched(&[appended(1, 1, 1), commit(2, LogChange::Cleared)]), None);
        let ranges = u64::try_from(RANGES_MAX).unwrap();
        let apart = |count| (1..=count).map(|n| appended(n, n * 2, 1)).collect::<Vec<_>>();
        assert!(touched(&apart(ranges)).is_some());
        assert_eq!(touched(&apart(ranges + 1)), None);
    }
}
