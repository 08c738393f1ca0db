//! Recent commits of watched sessions, kept in memory for their watchers.
//!
//! Bounded per session and in total; older commits are read from the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::board::{Change, Commit, Revision, SessionChange};

/// The number of commits in one page of a session's history.
pub const COMMITS_AT_ONCE_MAX: usize = 256;

/// The bytes of commits in one page, unless the first commit alone has more.
pub(crate) const COMMIT_BYTES_AT_ONCE_MAX: usize = 1 << 20;

/// The number of recent commits of one session.
const RECENT_COMMITS_MAX: usize = 1024;

/// The bytes of recent commits of one session.
const RECENT_BYTES_MAX: usize = 1 << 20;

/// The bytes of recent commits of all sessions.
pub(crate) const RECENT_BYTES_ALL_MAX: usize = 64 << 20;

/// A commit with the bytes of its frame.
pub(crate) type Weighed = (Arc<Commit>, usize);

/// Consecutive commits, the last of which made the head.
#[derive(Debug, Default)]
pub(crate) struct RecentCommits {
    commits: VecDeque<Weighed>,
    bytes: usize,
}

impl RecentCommits {
    /// Adds commits. If they do not fit, all are dropped.
    pub(crate) fn add(&mut self, commits: Vec<Weighed>, held: &AtomicUsize) {
        for (commit, bytes) in commits {
            // An adopted history does not continue the name's former one.
            let begins = commit
                .changes
                .iter()
                .any(|c| matches!(c, Change::Session(SessionChange::Adopted { .. })));
            let all = held.load(Ordering::Relaxed);
            if begins || bytes > RECENT_BYTES_MAX || all + bytes > RECENT_BYTES_ALL_MAX {
                self.clear(held);
                continue;
            }
            self.commits.push_back((commit, bytes));
            self.bytes += bytes;
            count(held, bytes, 0);
        }
        while self.commits.len() > RECENT_COMMITS_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some((_, bytes)) = self.commits.pop_front() else { break };
            self.bytes -= bytes;
            count(held, 0, bytes);
        }
    }

    pub(crate) fn clear(&mut self, held: &AtomicUsize) {
        count(held, 0, self.bytes);
        *self = Self::default();
    }

    /// Returns a page of the commits after a revision, if the next one is here.
    pub(crate) fn after(&self, after: Revision, bytes_max: usize) -> Option<Vec<Arc<Commit>>> {
        let (first, _) = self.commits.front()?;
        let known = first.revision.0.saturating_sub(1);
        let skipped = usize::try_from(after.0.checked_sub(known)?).ok()?;
        if skipped >= self.commits.len() {
            return None;
        }
        let mut bytes = 0;
        let within = |(_, of): &&Weighed| {
            let taken = bytes < bytes_max;
            bytes += of;
            taken
        };
        let commits = self.commits.iter().skip(skipped).take(COMMITS_AT_ONCE_MAX);
        Some(commits.take_while(within).map(|(commit, _)| Arc::clone(commit)).collect())
    }
}

/// Changes a count of bytes; relaxed, since it bounds memory and orders nothing.
pub(crate) fn count(held: &AtomicUsize, added: usize, dropped: usize) {
    held.fetch_add(added, Ordering::Relaxed);
    held.fetch_sub(dropped, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Nonce, Timestamp};

    fn commit(revision: u64) -> Weighed {
        let commit = Commit {
            revision: Revision(revision),
            at: Timestamp(0),
            agent: None,
            trace: None,
            nonce: Nonce(0),
            kept: None,
            changes: Vec::new(),
        };
        (Arc::new(commit), 100)
    }

    fn revisions(recent: &RecentCommits, after: u64) -> Option<Vec<u64>> {
        let commits = recent.after(Revision(after), 250)?;
        Some(commits.iter().map(|commit| commit.revision.0).collect())
    }

    #[test]
    fn what_is_at_hand_is_given_from_any_revision_in_it() {
        let (mut recent, held) = (RecentCommits::default(), AtomicUsize::new(0));
        assert_eq!(revisions(&recent, 0), None);
        recent.add((5..=9).map(commit).collect(), &held);
        assert_eq!(revisions(&recent, 3), None);
        assert_eq!(revisions(&recent, 4), Some(vec![5, 6, 7]));
        assert_eq!(revisions(&recent, 7), Some(vec![8, 9]));
        assert_eq!(revisions(&recent, 9), None);
        assert_eq!(held.load(Ordering::Relaxed), 500);
        recent.clear(&held);
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let (mut recent, held) = (RecentCommits::default(), AtomicUsize::new(0));
        for first in [1, 1001] {
            recent.add((first..first + 1000).map(commit).collect(), &held);
        }
        assert_eq!(recent.commits.len(), RECENT_COMMITS_MAX);
        assert_eq!(revisions(&recent, 975), None);
        assert_eq!(revisions(&recent, 976), Some(vec![977, 978, 979]));
        assert_eq!(held.load(Ordering::Relaxed), RECENT_COMMITS_MAX * 100);
    }

    #[test]
    fn where_there_is_no_room_nothing_is_at_hand() {
        let (mut recent, held) = (RecentCommits::default(), AtomicUsize::new(0));
        recent.add(vec![commit(1)], &held);
        held.store(RECENT_BYTES_ALL_MAX, Ordering::Relaxed);
        recent.add(vec![commit(2)], &held);
        assert_eq!(revisions(&recent, 0), None);
    }
}
