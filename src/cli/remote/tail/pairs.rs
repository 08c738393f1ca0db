//! Pairs in one line: a question with its answer, a claim with its end.
//!
//! The first of a pair is held back until the second comes, or until the end.

use std::collections::BTreeMap;

use super::event::{Change, Commit, Question};
use super::line::sentence;
use crate::board::Timestamp;
use crate::printable::line;

/// The most questions, and the most claims, that are held back; the next ones are shown at once.
const HELD_MAX: usize = 1_000;

/// The openings without their ends.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    questions: BTreeMap<u64, Held>,
    claims: BTreeMap<u64, Held>,
}

/// An opening.
#[derive(Debug)]
struct Held {
    at: String,
    agent: String,
    text: String,
}

impl Pairs {
    /// Returns what a commit says beside the openings that it holds.
    pub(super) fn sentences(&mut self, commit: &Commit<'_>) -> Vec<String> {
        commit.changes.iter().filter_map(|change| self.sentence(commit, change)).collect()
    }

    fn sentence(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> Option<String> {
        match (&*change.kind, change.log.as_deref(), change.request) {
            ("appended", Some("questions"), _) => self.asked(commit, change),
            ("updated", Some("questions"), _) => Some(self.updated(commit, change)),
            ("claimed", _, Some(request)) => self.claimed(commit, change, request),
            ("finished" | "failed" | "released" | "claim_expired", _, Some(request)) => {
                let held = self.claims.remove(&request);
                let after = held.map(|held| held.after(commit, "claimed"));
                Some(sentence(change) + &after.unwrap_or_default())
            }
            ("question_expired", ..) => Some(self.expired(commit, change)),
            _ => Some(sentence(change)),
        }
    }

    /// Holds questions, unless one of them is no open question.
    fn asked(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> Option<String> {
        let open = |entry: &super::event::Appended<'_>| {
            let question = Question::read(entry.item);
            let text = question.asked().filter(|_| !question.is_ended())?.to_owned();
            Some((entry.seq, text))
        };
        let entries = change.entries.as_deref().unwrap_or_default();
        let all: Option<Vec<_>> = entries.iter().map(open).collect();
        let all = all.filter(|all| !all.is_empty() && self.questions.len() + all.len() <= HELD_MAX);
        let Some(all) = all else { return Some(sentence(change)) };
        let held = |(seq, text)| (seq, Held::of(commit, commit.agent.as_deref(), text));
        self.questions.extend(all.into_iter().map(held));
        None
    }

    fn updated(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> String {
        let is_ended = change.item.is_some_and(|item| Question::read(item).is_ended());
        let held = change.seq.filter(|_| is_ended).and_then(|seq| self.questions.remove(&seq));
        let after = held.map(|held| held.after(commit, "asked"));
        sentence(change) + &after.unwrap_or_default()
    }

    fn expired(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> String {
        let held = change.question.and_then(|seq| self.questions.remove(&seq));
        let after = held.map(|held| format!(": {:?}{}", held.text, held.after(commit, "asked")));
        sentence(change) + &after.unwrap_or_default()
    }

    /// Holds a claim; a renewal leaves the first one.
    fn claimed(
        &mut self,
        commit: &Commit<'_>,
        change: &Change<'_>,
        request: u64,
    ) -> Option<String> {
        let agent = change.agent.as_deref();
        let is_renewed =
            self.claims.get(&request).is_some_and(|held| Some(held.agent.as_str()) == agent);
        if is_renewed {
            return None;
        }
        if self.claims.len() >= HELD_MAX {
            return Some(sentence(change));
        }
        self.claims.insert(request, Held::of(commit, agent, sentence(change)));
        None
    }

    /// Returns a line for each opening that has no end yet.
    pub(super) fn open(self) -> Vec<String> {
        let question = |(seq, held): (u64, Held)| {
            let Held { at, agent, text } = held;
            format!("open: questions/{seq} {text:?} (asked by {agent} at {at})")
        };
        let claim = |(_, held): (u64, Held)| format!("open: {} at {}", held.text, held.at);
        let questions = self.questions.into_iter().map(question);
        let all = questions.chain(self.claims.into_iter().map(claim));
        all.map(|text| line(&text).into_owned()).collect()
    }
}

impl Held {
    fn of(commit: &Commit<'_>, agent: Option<&str>, text: String) -> Self {
        Self { at: commit.at.to_string(), agent: agent.unwrap_or("-").to_owned(), text }
    }

    /// Returns by whom and how long ago it was opened.
    fn after(&self, commit: &Commit<'_>, what: &str) -> String {
        let ms = |at: &str| at.parse::<Timestamp>().ok().map(|at| at.0);
        let time = ms(&commit.at).zip(ms(&self.at)).map(|(to, from)| to.saturating_sub(from));
        let time = time.map(|ms| format!(" {}.{} s before", ms / 1_000, ms % 1_000 / 100));
        format!(" ({what} by {}{})", self.agent, time.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &mut Pairs, second: u64, agent: &str, changes: &str) -> Vec<String> {
        let data = format!(
            r#"{{"revision":1,"at":"2026-11-21T07:03:{second:02}.500Z","agent":"{agent}","changes":[{changes}]}}"#
        );
        pairs.sentences(&Commit::read(&data).unwrap())
    }

    #[test]
    fn a_question_is_one_line_with_its_answer() {
        let mut pairs = Pairs::default();
        let asked = r#"{"kind":"appended","log":"questions","entries":[{"seq":1,"item":{"question":"q?"}},{"seq":2,"item":{"text":"r?"}}]}"#;
        assert!(said(&mut pairs, 1, "A", asked).is_empty());
        let answered = r#"{"kind":"updated","log":"questions","seq":1,"item":{"question":"q?","answer":"yes"}}"#;
        let expected = r#"questions/1 "q?" → "yes" (asked by A 12.0 s before)"#;
        assert_eq!(said(&mut pairs, 13, "P", answered), [expected]);
        let open = pairs.open();
        assert_eq!(open, [r#"open: questions/2 "r?" (asked by A at 2026-11-21T07:03:01.500Z)"#]);
    }

    #[test]
    fn a_claim_is_one_line_with_its_end() {
        let mut pairs = Pairs::default();
        let claimed = r#"{"kind":"claimed","request":4,"agent":"B","fence":9,"expires_at":"x"}"#;
        assert!(said(&mut pairs, 1, "B", claimed).is_empty());
        assert!(said(&mut pairs, 2, "B", claimed).is_empty());
        let done = r#"{"kind":"finished","request":4,"fence":9,"result":1},{"kind":"state_put","path":"a","value":1}"#;
        let expected = ["requests/4 done: 1 (claimed by B 3.0 s before)", "state/a = 1"];
        assert_eq!(said(&mut pairs, 4, "B", done), expected);
        assert!(said(&mut pairs, 5, "B", claimed).is_empty());
        assert_eq!(
            pairs.open(),
            ["open: requests/4 claimed by B, fence 9 at 2026-11-21T07:03:05.500Z"]
        );
    }

    #[test]
    fn what_is_no_opening_is_shown_at_once() {
        let mut pairs = Pairs::default();
        let answered = r#"{"kind":"appended","log":"questions","entries":[{"seq":1,"item":{"question":"q?","answer":"a"}}]}"#;
        assert_eq!(said(&mut pairs, 1, "A", answered).len(), 1);
        let other = r#"{"kind":"appended","log":"requests","entries":[{"seq":1,"item":{"question":"q?"}}]}"#;
        assert_eq!(said(&mut pairs, 1, "A", other).len(), 1);
        assert!(pairs.open().is_empty());
    }
}
