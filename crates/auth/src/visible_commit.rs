//! The visible part of a commit, for a caller. All views of commits use it.

use std::borrow::Cow;

use super::Caller;
use blackboard_board::{Change, Commit, LogName, Part, Restored, SessionChange, SessionName};

impl Caller {
    /// A commit as it may see it: that there was one, and of its changes those that it may see.
    #[must_use]
    pub fn visible<'a>(&self, commit: &'a Commit) -> Cow<'a, Commit> {
        if commit.changes.iter().all(|change| self.sees_change(change)) {
            return Cow::Borrowed(commit);
        }
        let changes = commit.changes.iter().filter_map(|change| self.part_of(change)).collect();
        Cow::Owned(Commit { changes, ..commit.clone() })
    }

    /// Returns true if it may see all of every commit.
    #[must_use]
    pub fn sees_all(&self) -> bool {
        self.limited_to().is_none() && self.reaches_all()
    }

    /// Returns true if all of a change is visible.
    fn sees_change(&self, change: &Change) -> bool {
        is_seen(change, |log| self.sees(log), |session| self.reaches(session))
    }

    /// Returns the visible part of a change.
    fn part_of(&self, change: &Change) -> Option<Change> {
        if self.sees_change(change) {
            return Some(change.clone());
        }
        if let Change::Session(SessionChange::Restored(restored)) = change {
            let mut logs = restored.logs.clone();
            logs.retain(|(log, _)| self.sees(log));
            let restored = Restored { logs, ..(**restored).clone() };
            return Some(Change::Session(SessionChange::Restored(restored.into())));
        }
        if let Change::Session(SessionChange::Adopted { name, after, .. }) = change {
            return Some(Change::Session(SessionChange::Adopted {
                name: name.clone(),
                after: *after,
                fork_of: None,
            }));
        }
        None
    }
}

/// Returns true if every caller that reaches the session may see all of this commit.
#[must_use]
pub fn is_open(commit: &Commit) -> bool {
    let is_shared = |log: &LogName| log.owner().is_none();
    commit.changes.iter().all(|change| is_seen(change, is_shared, |_| false))
}

/// Returns true if all of a change is visible to a caller that sees these logs and reaches these sessions.
fn is_seen(
    change: &Change,
    sees: impl Fn(&LogName) -> bool,
    reaches: impl Fn(&SessionName) -> bool,
) -> bool {
    match change.facts().part {
        Part::Restored(restored) => restored.logs.iter().all(|(log, _)| sees(log)),
        Part::Adopted(Some(origin)) => reaches(origin),
        Part::Log(log) => sees(log),
        Part::Adopted(None)
        | Part::Unnamed
        | Part::Session
        | Part::State(_)
        | Part::Merged(..)
        | Part::Agent(_)
        | Part::AgentWithLogs(_) => true,
    }
}
