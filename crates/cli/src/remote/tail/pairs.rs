//! Openings and their ends: a question with its answer, a claim with its end.
//!
//! Each is a line when it happens. An end names its opening: by whom and how long ago. A renewed claim is left out.

use std::collections::BTreeMap;

use super::event::{Change, Commit, Question};
use super::line::sentence;
use blackboard_board::Timestamp;
use blackboard_printable::line;

/// The most questions, and the most claims, that are remembered; the ends of further ones stand alone.
const OPEN_MAX: usize = 1_000;

/// The kinds of change that end a claim.
const ENDS: [&str; 6] =
    ["finished", "failed", "released", "cancelled", "claim_expired", "deadline_passed"];

/// The openings without their ends.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    questions: BTreeMap<u64, Opening>,
    claims: BTreeMap<u64, Opening>,
}

#[derive(Debug)]
struct Opening {
    at: String,
    agent: String,
    text: String,
}

impl Pairs {
    /// Returns what a commit says; nothing if it only renews claims.
    pub(super) fn sentences(&mut self, commit: &Commit<'_>) -> Vec<String> {
        commit.changes.iter().flat_map(|change| self.of_change(commit, change)).collect()
    }

    fn of_change(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> Vec<String> {
        match (&*change.kind, change.log.as_deref(), change.request) {
            ("appended", Some("questions"), _) => self.asked(commit, change),
            ("updated", Some("questions"), _) => vec![self.updated(commit, change)],
            ("claimed", _, Some(request)) => {
                self.claimed(commit, change, request).into_iter().collect()
            }
            (kind, _, Some(request)) if ENDS.contains(&kind) => {
                let opening = self.claims.remove(&request);
                let after = opening.map(|opening| opening.after(commit, "claimed"));
                vec![sentence(change) + &after.unwrap_or_default()]
            }
            ("question_expired", ..) => vec![self.expired(commit, change)],
            _ => {
                self.forget(change);
                vec![sentence(change)]
            }
        }
    }

    /// Returns a sentence for each question, unless one of them is no open question.
    fn asked(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> Vec<String> {
        let open = |entry: &super::event::Appended<'_>| {
            let question = Question::read(entry.item);
            let text = question.asked().filter(|_| !question.is_ended())?.to_owned();
            Some((entry.seq, text))
        };
        let entries = change.entries.as_deref().unwrap_or_default();
        let all: Option<Vec<_>> = entries.iter().map(open).collect();
        let Some(all) = all.filter(|all| !all.is_empty()) else { return vec![sentence(change)] };
        let said = all.iter().map(|(seq, text)| format!("questions/{seq} asked: {text:?}"));
        let said = said.collect();
        let room = OPEN_MAX.saturating_sub(self.questions.len());
        let openings = all.into_iter().take(room);
        let openings =
            openings.map(|(seq, text)| (seq, Opening::of(commit, commit.agent.as_deref(), text)));
        self.questions.extend(openings);
        said
    }

    fn updated(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> String {
        let is_ended = change.item.is_some_and(|item| Question::read(item).is_ended());
        let ended = change.seq.filter(|_| is_ended);
        let opening = ended.and_then(|seq| self.questions.remove(&seq));
        let after = opening.map(|opening| opening.after(commit, "asked"));
        sentence(change) + &after.unwrap_or_default()
    }

    fn expired(&mut self, commit: &Commit<'_>, change: &Change<'_>) -> String {
        let opening = change.question.and_then(|seq| self.questions.remove(&seq));
        let after = opening
            .map(|opening| format!(": {:?}{}", opening.text, opening.after(commit, "asked")));
        sentence(change) + &after.unwrap_or_default()
    }

    /// Returns a sentence unless the agent has the claim already.
    fn claimed(
        &mut self,
        commit: &Commit<'_>,
        change: &Change<'_>,
        request: u64,
    ) -> Option<String> {
        let agent = change.agent.as_deref();
        let is_renewed =
            self.claims.get(&request).is_some_and(|opening| Some(opening.agent.as_str()) == agent);
        if is_renewed {
            return None;
        }
        let said = sentence(change);
        if self.claims.len() < OPEN_MAX {
            self.claims.insert(request, Opening::of(commit, agent, said.clone()));
        }
        Some(said)
    }

    /// Forgets the openings that a change takes away.
    fn forget(&mut self, change: &Change<'_>) {
        let of_log = match change.log.as_deref() {
            Some("questions") => Some(&mut self.questions),
            Some("requests") => Some(&mut self.claims),
            Some(_) | None => None,
        };
        match (&*change.kind, of_log) {
            ("cleared", Some(openings)) => openings.clear(),
            ("removed", Some(openings)) => {
                let ranges = change.ranges.as_deref().unwrap_or_default();
                let is_removed =
                    |seq: &u64| ranges.iter().any(|(from, to)| (from..=to).contains(&seq));
                openings.retain(|seq, _| !is_removed(seq));
            }
            ("restored" | "adopted" | "created" | "deleted", None) => *self = Self::default(),
            _ => {}
        }
    }

    /// Returns a line for each opening that has no end yet.
    pub(super) fn open(self) -> Vec<String> {
        let question = |(seq, opening): (u64, Opening)| {
            let Opening { at, agent, text } = opening;
            format!("open: questions/{seq} {text:?} (asked by {agent} at {at})")
        };
        let claim =
            |(_, opening): (u64, Opening)| format!("open: {} at {}", opening.text, opening.at);
        let questions = self.questions.into_iter().map(question);
        let all = questions.chain(self.claims.into_iter().map(claim));
        all.map(|text| line(&text).into_owned()).collect()
    }
}

impl Opening {
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
    fn a_question_is_a_line_and_its_answer_refers_to_it() {
        let mut pairs = Pairs::default();
        let asked = r#"{"kind":"appended","log":"questions","entries":[{"seq":1,"item":{"question":"q?"}},{"seq":2,"item":{"text":"r?"}}]}"#;
        let expected = [r#"questions/1 asked: "q?""#, r#"questions/2 asked: "r?""#];
        assert_eq!(said(&mut pairs, 1, "A", asked), expected);
        let answered = r#"{"kind":"updated","log":"questions","seq":1,"item":{"question":"q?","answer":"yes"}}"#;
        let expected = r#"questions/1 "q?" → "yes" (asked by A 12.0 s before)"#;
        assert_eq!(said(&mut pairs, 13, "P", answered), [expected]);
        let open = pairs.open();
        assert_eq!(open, [r#"open: questions/2 "r?" (asked by A at 2026-11-21T07:03:01.500Z)"#]);
    }

    #[test]
    fn a_claim_is_a_line_and_its_end_refers_to_it() {
        let mut pairs = Pairs::default();
        let claimed = r#"{"kind":"claimed","request":4,"agent":"B","fence":9,"expires_at":"x"}"#;
        assert_eq!(said(&mut pairs, 1, "B", claimed), ["requests/4 claimed by B, fence 9"]);
        assert!(said(&mut pairs, 2, "B", claimed).is_empty(), "a renewal");
        let done = r#"{"kind":"finished","request":4,"fence":9,"result":1},{"kind":"state_put","path":"a","value":1}"#;
        let expected = ["requests/4 done: 1 (claimed by B 3.0 s before)", "state/a = 1"];
        assert_eq!(said(&mut pairs, 4, "B", done), expected);
        assert_eq!(said(&mut pairs, 5, "B", claimed).len(), 1);
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

    #[test]
    fn what_is_taken_away_is_not_open() {
        let asked = r#"{"kind":"appended","log":"questions","entries":[{"seq":1,"item":{"text":"a"}},{"seq":2,"item":{"text":"b"}},{"seq":5,"item":{"text":"c"}}]}"#;
        let claimed = r#"{"kind":"claimed","request":4,"agent":"B","fence":9,"expires_at":"x"}"#;
        let open_after = |change: &str| {
            let mut pairs = Pairs::default();
            said(&mut pairs, 1, "A", asked);
            said(&mut pairs, 2, "B", claimed);
            said(&mut pairs, 3, "C", change);
            pairs.open().len()
        };
        assert_eq!(open_after(r#"{"kind":"state_put","path":"a","value":1}"#), 4);
        let removed = r#"{"kind":"removed","log":"questions","ranges":[[1,1],[5,9]]}"#;
        assert_eq!(open_after(removed), 2);
        assert_eq!(open_after(r#"{"kind":"cleared","log":"questions"}"#), 1);
        assert_eq!(open_after(r#"{"kind":"cleared","log":"requests"}"#), 3);
        assert_eq!(open_after(r#"{"kind":"cleared","log":"screenshots"}"#), 4);
        assert_eq!(open_after(r#"{"kind":"restored","to":3}"#), 0);
    }
}
