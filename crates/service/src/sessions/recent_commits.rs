//! Recent commits of watched sessions, kept in memory for their watchers, with texts that many of these send.
//!
//! Bounded per session and in total; older commits are read from the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use blackboard_board::{Change, Commit, Revision, SessionChange};

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

/// The number of shared texts of one session: watchers in step need one, those that are a commit behind another.
const SHARED_TEXTS_MAX: usize = 4;

/// A commit with the bytes of its frame.
pub(crate) type Weighed = (Arc<Commit>, usize);

/// Consecutive commits, the last of which made the head.
#[derive(Debug, Default)]
pub(crate) struct RecentCommits {
    commits: VecDeque<Weighed>,
    bytes: usize,
    /// The texts made last.
    texts: VecDeque<SharedText>,
}

/// A page of commits of a session.
#[derive(Debug)]
pub(crate) struct RecentPage {
    pub(crate) commits: Vec<Arc<Commit>>,
    /// True if it ends at the head.
    pub(crate) is_last: bool,
}

/// The text of a page.
#[derive(Debug)]
pub(crate) struct RecentText {
    pub(crate) text: Bytes,
    /// The revision of the last commit.
    pub(crate) until: Revision,
    /// True if it ends at the head.
    pub(crate) is_last: bool,
}

/// The text of all commits after a revision until another, as their watchers send it.
#[derive(Clone, Debug)]
pub struct SharedText {
    /// The revision before the first commit.
    pub after: Revision,
    /// The last commit.
    pub last: Arc<Commit>,
    /// True if every caller may see all of these commits.
    pub is_open: bool,
    /// The text.
    pub text: Bytes,
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
        let texts: usize = self.texts.iter().map(|shared| shared.text.len()).sum();
        count(held, 0, self.bytes + texts);
        *self = Self::default();
    }

    /// Keeps a text for other watchers, unless its commits are no longer the recent ones.
    pub(crate) fn share(&mut self, shared: SharedText, held: &AtomicUsize) {
        let (bytes, revision) = (shared.text.len(), shared.last.revision);
        let last = self.place(revision).and_then(|place| self.commits.get(place.checked_sub(1)?));
        if !last.is_some_and(|(last, _)| Arc::ptr_eq(last, &shared.last))
            || self.texts.iter().any(|other| other.after == shared.after)
            || bytes > RECENT_BYTES_MAX / SHARED_TEXTS_MAX
            || held.load(Ordering::Relaxed) + bytes > RECENT_BYTES_ALL_MAX
        {
            return;
        }
        count(held, bytes, 0);
        self.texts.push_front(shared);
        if self.texts.len() > SHARED_TEXTS_MAX
            && let Some(oldest) = self.texts.pop_back()
        {
            count(held, 0, oldest.text.len());
        }
    }

    /// Returns the text of the commits after a revision, if there is one for this reader.
    pub(crate) fn shared(&self, after: Revision, sees_all: bool) -> Option<RecentText> {
        let fits = |shared: &&SharedText| shared.after == after && (shared.is_open || sees_all);
        let shared = self.texts.iter().find(fits)?;
        let (head, _) = self.commits.back()?;
        let until = shared.last.revision;
        Some(RecentText { text: shared.text.clone(), until, is_last: head.revision == until })
    }

    /// Returns the number of commits here up to this revision, if it is before, or one of, these.
    fn place(&self, revision: Revision) -> Option<usize> {
        let (first, _) = self.commits.front()?;
        usize::try_from(revision.0.checked_sub(first.revision.0.saturating_sub(1))?).ok()
    }

    /// Returns a page of the commits after a revision, if the next one is here.
    pub(crate) fn after(&self, after: Revision, bytes_max: usize) -> Option<RecentPage> {
        let skipped = self.place(after)?;
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
        let commits: Vec<_> =
            commits.take_while(within).map(|(commit, _)| Arc::clone(commit)).collect();
        let is_last = skipped + commits.len() == self.commits.len();
        Some(RecentPage { commits, is_last })
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
    use blackboard_board::{Nonce, Timestamp};

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

    fn last(recent: &RecentCommits) -> Revision {
        recent.commits.back().unwrap().0.revision
    }

    fn shared(recent: &RecentCommits, after: u64, last: u64) -> SharedText {
        let page = recent.after(Revision(after), usize::MAX).unwrap();
        let last = page.commits.into_iter().find(|commit| commit.revision.0 == last).unwrap();
        let text = Bytes::from(vec![b'x'; 1000]);
        SharedText { after: Revision(after), last, is_open: true, text }
    }

    fn revisions(recent: &RecentCommits, after: u64) -> Option<Vec<u64>> {
        let page = recent.after(Revision(after), 250)?;
        assert_eq!(page.is_last, page.commits.last().unwrap().revision == last(recent));
        Some(page.commits.iter().map(|commit| commit.revision.0).collect())
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

    #[test]
    fn a_shared_text_goes_with_the_commits_it_is_of() {
        let (mut recent, held) = (RecentCommits::default(), AtomicUsize::new(0));
        recent.add((5..=9).map(commit).collect(), &held);
        let (early, late) = (shared(&recent, 4, 7), shared(&recent, 7, 9));
        for text in [&early, &late] {
            recent.share(text.clone(), &held);
        }
        let known = |recent: &RecentCommits, after| {
            recent.shared(Revision(after), false).map(|shared| shared.is_last)
        };
        assert_eq!(known(&recent, 4), Some(false));
        assert_eq!(known(&recent, 7), Some(true));
        assert_eq!(known(&recent, 5), None);
        assert_eq!(held.load(Ordering::Relaxed), 2500);
        recent.clear(&held);
        assert_eq!(held.load(Ordering::Relaxed), 0);
        assert_eq!(known(&recent, 7), None);
        // Another history with the same revisions.
        recent.add((5..=9).map(commit).collect(), &held);
        recent.share(late, &held);
        assert_eq!(known(&recent, 7), None);
        assert_eq!(held.load(Ordering::Relaxed), 500);
    }

    #[test]
    fn a_session_shares_few_texts_and_no_long_one() {
        let (mut recent, held) = (RecentCommits::default(), AtomicUsize::new(0));
        recent.add((1..=9).map(commit).collect(), &held);
        for after in 0..9 {
            recent.share(shared(&recent, after, after + 1), &held);
        }
        assert_eq!(recent.texts.len(), SHARED_TEXTS_MAX);
        let is_shared = |recent: &RecentCommits, after, sees_all| {
            recent.shared(Revision(after), sees_all).is_some()
        };
        assert!(!is_shared(&recent, 4, true) && is_shared(&recent, 5, false));
        let long = Bytes::from(vec![b'x'; RECENT_BYTES_MAX / SHARED_TEXTS_MAX + 1]);
        recent.share(SharedText { text: long, ..shared(&recent, 0, 9) }, &held);
        assert!(!is_shared(&recent, 0, true));
        assert_eq!(held.load(Ordering::Relaxed), 900 + SHARED_TEXTS_MAX * 1000);
        recent.share(SharedText { is_open: false, ..shared(&recent, 0, 1) }, &held);
        assert!(!is_shared(&recent, 0, false) && is_shared(&recent, 0, true));
    }
}
