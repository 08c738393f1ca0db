//! When something in which session comes to its end by time, the next one first.

use std::collections::{BTreeSet, HashMap};

use crate::board::{SessionName, Timestamp};

/// One deadline a session at most: its next one.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_time: BTreeSet<(Timestamp, SessionName)>,
    by_name: HashMap<SessionName, Timestamp>,
}

impl Deadlines {
    /// Notes a session's next deadline, or that it has none.
    pub(super) fn set(&mut self, name: &SessionName, next: Option<Timestamp>) {
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

    /// The next one of all.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// At most `limit` sessions whose deadline has come.
    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<SessionName> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        due.take(limit).map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
