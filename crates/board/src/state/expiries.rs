//! Deadlines of the state's paths, by path and by time.

use imbl::{OrdMap, OrdSet};

use super::path::StatePath;
use crate::Timestamp;

/// The deadlines. Each path exists in the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expiries {
    by_path: OrdMap<StatePath, Timestamp>,
    by_time: OrdSet<(Timestamp, StatePath)>,
}

impl Expiries {
    /// Returns true if both are the same map, without comparing the entries.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.by_path.ptr_eq(&other.by_path) || (self.by_path.is_empty() && other.by_path.is_empty())
    }

    pub(super) fn get(&self, path: &StatePath) -> Option<Timestamp> {
        self.by_path.get(path).copied()
    }

    pub(super) fn set(&mut self, path: StatePath, at: Timestamp) {
        self.end(&path);
        self.by_time.insert((at, path.clone()));
        self.by_path.insert(path, at);
    }

    fn end(&mut self, path: &StatePath) {
        if let Some(at) = self.by_path.remove(path) {
            self.by_time.remove(&(at, path.clone()));
        }
    }

    /// Removes the deadlines at this path and below for which `over` returns true.
    pub(super) fn end_within(&mut self, path: &StatePath, over: impl Fn(&StatePath) -> bool) {
        let ended: Vec<_> = self.within(path).filter(|within| over(within)).cloned().collect();
        for path in ended {
            self.end(&path);
        }
    }

    /// Returns the paths with deadlines at this path and below.
    fn within(&self, path: &StatePath) -> impl Iterator<Item = &StatePath> {
        let from = self.by_path.range(path.clone()..).map(|(path, _)| path);
        from.take_while(|within| path.contains(within))
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.get_min().map(|(at, _)| *at)
    }

    /// Returns expired paths in order of time, omitting any path below another one. Examines at most `limit`
    /// deadlines.
    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<StatePath> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        let mut due: Vec<_> = due.take(limit).collect();
        due.sort_by_key(|(_, path)| path);
        due.dedup_by(|(_, below), (_, above)| above.contains(below));
        due.sort();
        due.into_iter().map(|(_, path)| path.clone()).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&StatePath, Timestamp)> {
        self.by_path.iter().map(|(path, at)| (path, *at))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }
}
