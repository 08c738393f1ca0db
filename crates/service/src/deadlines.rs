//! Deadlines by session name, the earliest first.

use std::collections::{BTreeSet, HashMap};

use blackboard_board::SessionName;

/// Deadlines, at most one for each session.
#[derive(Debug)]
pub(crate) struct Deadlines<T> {
    by_time: BTreeSet<(T, SessionName)>,
    by_name: HashMap<SessionName, T>,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_name: HashMap::new() }
    }
}

impl<T: Copy + Ord> Deadlines<T> {
    /// Sets a session's deadline, or removes it.
    pub(crate) fn set(&mut self, name: &SessionName, next: Option<T>) {
        let before = match next {
            Some(at) => self.by_name.insert(name.clone(), at),
            None => self.by_name.remove(name),
        };
        if before == next {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, name.clone()));
        }
        if let Some(at) = next {
            self.by_time.insert((at, name.clone()));
        }
    }

    /// Returns the number of sessions with a deadline.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<T> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Returns a session's deadline.
    pub(crate) fn of(&self, name: &SessionName) -> Option<T> {
        self.by_name.get(name).copied()
    }

    /// Returns at most `limit` sessions whose deadline is due.
    pub(crate) fn due(&self, now: T, limit: usize) -> Vec<SessionName> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        due.take(limit).map(|(_, name)| name.clone()).collect()
    }

    /// Takes out the session with the earliest deadline, if that is due.
    pub(crate) fn take_due(&mut self, now: T) -> Option<SessionName> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, name) = self.by_time.pop_first()?;
        self.by_name.remove(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blackboard_board::Timestamp;

    #[test]
    fn a_session_has_its_last_noted_deadline_only() {
        let name = |name: &str| name.parse::<SessionName>().unwrap();
        let mut deadlines = Deadlines::default();
        for (of, next) in
            [("a", Some(5)), ("b", Some(3)), ("c", Some(4)), ("b", Some(9)), ("c", None)]
        {
            deadlines.set(&name(of), next.map(Timestamp));
        }
        assert_eq!(deadlines.next(), Some(Timestamp(5)));
        assert_eq!(deadlines.due(Timestamp(4), 10), []);
        assert_eq!(deadlines.due(Timestamp(9), 10), [name("a"), name("b")]);
        assert_eq!(deadlines.due(Timestamp(9), 1), [name("a")]);
        assert_eq!(deadlines.of(&name("b")), Some(Timestamp(9)));
        assert_eq!(deadlines.take_due(Timestamp(5)), Some(name("a")));
        assert_eq!(deadlines.take_due(Timestamp(8)), None);
        assert_eq!((deadlines.of(&name("a")), deadlines.next()), (None, Some(Timestamp(9))));
    }
}
