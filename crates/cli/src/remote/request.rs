//! Requests as people read them: the state in a word for a table, in a sentence for one entry, and the past attempts.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::screen::Table;

/// A claim on a request.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) agent: String,
    pub(super) fence: u64,
    pub(super) expires_at: String,
}

/// The end of a request, or its cancellation.
#[derive(Debug, Deserialize)]
pub(super) struct End<'a> {
    agent: Option<String>,
    at: String,
    pub(super) fence: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
    #[serde(borrow)]
    verdict: Option<Verdict<'a>>,
}

/// The verdict by which a result was accepted.
#[derive(Debug, Deserialize)]
struct Verdict<'a> {
    agent: String,
    at: String,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

/// The end of an attempt without success.
#[derive(Debug, Deserialize)]
pub(super) struct PastAttempt<'a> {
    agent: Option<String>,
    from: String,
    to: String,
    outcome: String,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

/// What an envelope says of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Task<'a> {
    pub(super) done: Option<&'a End<'a>>,
    pub(super) failed: Option<&'a End<'a>>,
    pub(super) cancelled: Option<&'a End<'a>>,
    pub(super) in_review: Option<&'a End<'a>>,
    /// Of a claimed request, which ends with the claim.
    pub(super) cancel: Option<&'a End<'a>>,
    pub(super) claim: Option<&'a Claim>,
    pub(super) blocked_by: &'a [u64],
    pub(super) stopped_by: &'a [u64],
    pub(super) after: &'a [u64],
    pub(super) priority: Option<i64>,
    pub(super) not_before: Option<&'a str>,
    pub(super) deadline: Option<&'a str>,
    pub(super) review: bool,
    pub(super) attempts: Option<u32>,
    pub(super) failures: Option<u32>,
    pub(super) past_attempts: &'a [PastAttempt<'a>],
}

impl End<'_> {
    fn sentence(&self, what: &str) -> String {
        let by = self.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        let value = self.result.or(self.reason);
        let value = value.map(|value| format!(": {}", value.get())).unwrap_or_default();
        format!("{what}{by} at {}{value}", self.at)
    }

    fn words(&self, what: &str) -> String {
        format!("{what}{}", because(self.reason))
    }
}

impl Verdict<'_> {
    fn sentence(&self) -> String {
        format!("accepted by {} at {}{}", self.agent, self.at, because(self.reason))
    }
}

impl PastAttempt<'_> {
    fn sentence(&self) -> String {
        let of = self.agent.as_ref().map(|agent| format!("of {agent} ")).unwrap_or_default();
        let Self { from, to, reason, .. } = self;
        format!("{of}{}, {from} to {to}{}", self.outcome_word(), because(*reason))
    }

    fn outcome_word(&self) -> &str {
        match self.outcome.as_str() {
            "lapsed" => "expired",
            outcome => outcome,
        }
    }
}

impl Task<'_> {
    /// Returns the state with who, when and what.
    pub(super) fn sentence(&self) -> String {
        let ends = [
            (self.done, "done"),
            (self.failed, "failed"),
            (self.cancelled, "cancelled"),
            (self.in_review, "in review, done"),
        ];
        let ended = ends.iter().find_map(|(end, what)| end.map(|end| end.sentence(what)));
        let claimed = || {
            let claim = self.claim?;
            let cancel = self.cancel.map(|cancel| cancel.sentence("; to be cancelled, asked"));
            let cancel = cancel.unwrap_or_default();
            Some(format!("claimed by {} until {}{cancel}", claim.agent, claim.expires_at))
        };
        ended.or_else(claimed).unwrap_or_else(|| self.unclaimed())
    }

    /// Returns the state in few words.
    pub(super) fn words(&self) -> String {
        if self.done.is_some() {
            return "done".to_owned();
        }
        if self.in_review.is_some() {
            return "in review".to_owned();
        }
        let ends = [(self.failed, "failed"), (self.cancelled, "cancelled")];
        let ended = ends.iter().find_map(|(end, what)| end.map(|end| end.words(what)));
        let claimed = || {
            let claim = self.claim?;
            let cancel = if self.cancel.is_some() { ", to be cancelled" } else { "" };
            Some(format!("claimed by {}{cancel}", claim.agent))
        };
        ended.or_else(claimed).unwrap_or_else(|| self.unclaimed())
    }

    /// Returns the state of a request that waits: for others, for a time, for another attempt, for an agent.
    fn unclaimed(&self) -> String {
        let stopped = match self.stopped_by {
            [] => String::new(),
            [_] if self.blocked_by.len() == 1 => ", which failed or was cancelled".to_owned(),
            stopped => format!("; {} failed or was cancelled", listed(stopped)),
        };
        let blocked = match self.blocked_by {
            [] => None,
            blocked => Some(format!("waits for {}{stopped}", listed(blocked))),
        };
        let early = self.not_before.map(|time| format!("not before {time}"));
        let parts: Vec<String> =
            [self.past_failures(), blocked, early].into_iter().flatten().collect();
        if parts.is_empty() { "pending".to_owned() } else { parts.join("; ") }
    }

    /// Returns how many attempts have failed, and why the last one did.
    fn past_failures(&self) -> Option<String> {
        let mut failed = self.past_attempts.iter().filter(|past| past.outcome != "released");
        let (count, last) = (failed.clone().count(), failed.next_back());
        let count = self.spent().unwrap_or_else(|| count.to_string());
        let last = last.filter(|_| self.failures != Some(0))?;
        let why = match last.outcome.as_str() {
            "lapsed" => ": the claim expired".to_owned(),
            _ => because(last.reason),
        };
        Some(format!("{count} failed{why}"))
    }

    /// Returns how many of its attempts have failed, if they are limited.
    fn spent(&self) -> Option<String> {
        self.attempts.map(|attempts| format!("{} of {attempts}", self.failures.unwrap_or_default()))
    }

    /// Adds a line for the verdict on its result.
    pub(super) fn list_verdict(&self, table: &mut Table) {
        if let Some(verdict) = self.done.and_then(|done| done.verdict.as_ref()) {
            table.fact("verdict", &verdict.sentence());
        }
    }

    /// Adds a line for each term on which it was submitted.
    pub(super) fn list_terms(&self, table: &mut Table) {
        let terms = [
            ("attempts", self.spent().map(|spent| format!("{spent} failed"))),
            ("after", (!self.after.is_empty()).then(|| listed(self.after))),
            ("priority", self.priority.map(|priority| priority.to_string())),
            ("not_before", self.not_before.map(str::to_owned)),
            ("deadline", self.deadline.map(str::to_owned)),
            ("review", self.review.then(|| "by another agent".to_owned())),
        ];
        for (name, term) in terms {
            if let Some(term) = term {
                table.fact(name, &term);
            }
        }
    }

    /// Adds a line for each past attempt.
    pub(super) fn list_attempts(&self, table: &mut Table) {
        for past in self.past_attempts {
            table.fact("attempt", &past.sentence());
        }
    }

    /// Returns true if nobody has worked on it: neither claimed nor ended.
    pub(super) const fn is_unclaimed(&self) -> bool {
        self.claim.is_none() && !self.has_ended() && self.in_review.is_none()
    }

    /// Returns true if it has ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.done.is_some() || self.failed.is_some() || self.cancelled.is_some()
    }
}

fn listed(seqs: &[u64]) -> String {
    seqs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a reason after a colon: a text as it reads, anything else as JSON.
fn because(reason: Option<&RawValue>) -> String {
    let Some(reason) = reason else { return String::new() };
    let text = serde_json::from_str::<String>(reason.get());
    format!(": {}", text.unwrap_or_else(|_| reason.get().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::body::Entry;
    use blackboard_board::LogName;

    /// The state of a request with these members in its envelope: in a table, and in full.
    fn states(members: &str) -> [String; 2] {
        let text = format!(r#"{{"seq":5,"revision":9,"at":"T0","item":{{}}{members}}}"#);
        let entry: Entry<'_> = serde_json::from_str(&text).unwrap();
        [entry.words(&LogName::Requests), entry.task().sentence()]
    }

    fn state(members: &str) -> String {
        let [words, sentence] = states(members);
        assert_eq!(words, sentence);
        words
    }

    #[test]
    fn a_request_that_waits_says_for_what() {
        assert_eq!(state(""), "pending");
        assert_eq!(state(r#","blocked_by":[2,3]"#), "waits for 2, 3");
        let stopped = r#","blocked_by":[2],"stopped_by":[2]"#;
        assert_eq!(state(stopped), "waits for 2, which failed or was cancelled");
        let stopped = r#","blocked_by":[2,3],"stopped_by":[3]"#;
        assert_eq!(state(stopped), "waits for 2, 3; 3 failed or was cancelled");
        assert_eq!(state(r#","not_before":"T1""#), "not before T1");
        let past = |outcome: &str, reason: &str| {
            format!(
                r#","past_attempts":[{{"agent":"A","from":"T1","to":"T2","outcome":"{outcome}"{reason}}}]"#
            )
        };
        let failed = past("failed", r#","reason":"no disk""#);
        assert_eq!(state(&failed), "1 failed: no disk");
        let counted = format!(r#"{failed},"attempts":3,"failures":1,"not_before":"T1""#);
        assert_eq!(state(&counted), "1 of 3 failed: no disk; not before T1");
        assert_eq!(state(&past("lapsed", "")), "1 failed: the claim expired");
        assert_eq!(state(&past("released", "")), "pending");
    }

    #[test]
    fn a_request_that_ended_says_how() {
        let claim = r#","claim":{"agent":"A","fence":3,"expires_at":"T1"}"#;
        assert_eq!(states(claim), ["claimed by A", "claimed by A until T1"]);
        let cancel = format!(r#"{claim},"cancel":{{"at":"T2","reason":"late"}}"#);
        let expected = ["claimed by A, to be cancelled".to_owned()];
        assert_eq!(states(&cancel)[..1], expected);
        let end = r#"{"agent":"A","at":"T1","result":{"n":1.0},"fence":3}"#;
        assert_eq!(states(&format!(r#","done":{end}"#)), ["done", r#"done by A at T1: {"n":1.0}"#]);
        assert_eq!(states(&format!(r#","in_review":{end}"#))[0], "in review");
        let end = r#"{"at":"T1","reason":"deadline"}"#;
        assert_eq!(
            states(&format!(r#","failed":{end}"#)),
            ["failed: deadline", r#"failed at T1: "deadline""#]
        );
        assert_eq!(states(&format!(r#","cancelled":{end}"#))[0], "cancelled: deadline");
    }
}
