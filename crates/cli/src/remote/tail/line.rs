//! An event as one line: revision, time, agent, kind, and what changed.

use super::event::{Change, Commit, Question};
use super::paint::Paint;
use crate::remote::feed::Resync;
use blackboard_printable::{cut, line, padded};

/// The maximum size of a sentence, in bytes.
const SENTENCE_BYTES_MAX: usize = 200;

/// The most sentences of a line; a commit may have a thousand changes.
const SENTENCES_MAX: usize = 8;

/// The columns of the agent and of the kind; longer ones move what follows.
const AGENT_COLUMNS: usize = 12;
const KIND_COLUMNS: usize = 14;

/// Returns the line of a commit.
pub(super) fn commit_line(
    paint: Paint,
    kind: &str,
    commit: &Commit<'_>,
    sentences: &[String],
) -> String {
    let shown = |text: &String| line(&cut(text, SENTENCE_BYTES_MAX)).into_owned();
    let mut said: Vec<String> = sentences.iter().take(SENTENCES_MAX).map(shown).collect();
    if let Some(rest) = sentences.len().checked_sub(SENTENCES_MAX).filter(|rest| *rest > 0) {
        said.push(format!("and {rest} more"));
    }
    let agent = line(commit.agent.as_deref().unwrap_or("-")).into_owned();
    let head = format!("{:>6} {}", commit.revision, time(&commit.at));
    let (agent, kind) = (padded(&agent, AGENT_COLUMNS), padded(&line(kind), KIND_COLUMNS));
    let (head, agent) = (paint.faint(&head), paint.agent(&agent));
    format!("{head} {agent} {} {}", paint.kind(&kind), said.join("; "))
}

pub(super) fn resync_line(paint: Paint, resync: &Resync) -> String {
    let Resync { revision, oldest_revision } = resync;
    paint.warning(&format!(
        "{revision:>6} resync: not all revisions up to {revision} can be shown; the history begins at {oldest_revision}"
    ))
}

/// Returns a sentence for each change of a commit.
pub(super) fn sentences(commit: &Commit<'_>) -> Vec<String> {
    commit.changes.iter().map(sentence).collect()
}

/// Returns what a change did, and where.
pub(super) fn sentence(change: &Change<'_>) -> String {
    let kind = &*change.kind;
    if change.log.is_some() {
        return of_log(change);
    }
    if let Some(request) = change.request {
        return of_request(kind, request, change);
    }
    if let Some(question) = change.question {
        return format!("questions/{question} expired");
    }
    if let Some(path) = &change.path {
        return of_state(path, change);
    }
    if let Some(requests) = &change.requests {
        return format!("requests/{} {kind}", listed(requests));
    }
    if let Some(agent) = &change.agent {
        let value = change.value.map(|value| format!(" {}", value.get()));
        let gone = if kind == "agent_removed" { " removed" } else { "" };
        return format!("agents/{agent}{}{gone}", value.unwrap_or_default());
    }
    match (&change.name, change.to, &change.fork_of, &change.sha256) {
        (Some(name), ..) => format!("checkpoint {name}"),
        (None, Some(to), ..) => format!("restored to revision {to}"),
        (None, None, Some(origin), _) => format!("forked from {origin}"),
        (None, None, None, Some(sha256)) => format!("blobs/{sha256}"),
        (None, None, None, None) => of_session(kind, change),
    }
}

fn of_session(kind: &str, change: &Change<'_>) -> String {
    match (change.first, change.last) {
        (Some(first), Some(last)) if kind == "awaited" => {
            format!("questions/{} expire", range(first, last))
        }
        (Some(first), Some(last)) if kind == "planned" => {
            format!("requests/{} planned", range(first, last))
        }
        _ => kind.replace('_', " "),
    }
}

fn of_log(change: &Change<'_>) -> String {
    let log = change.log.as_deref().unwrap_or_default();
    let brief = change.first.zip(change.count);
    match (&change.entries, brief, &change.ranges, change.seq) {
        (Some(entries), ..) => match entries.as_slice() {
            [] => log.to_owned(),
            [one] => format!("{log}/{} {}", one.seq, one.item.get()),
            [first, .., last] => {
                format!("{log}/{} {} …", range(first.seq, last.seq), first.item.get())
            }
        },
        (None, Some((first, count)), ..) => {
            format!("{log}/{} large", range(first, first.saturating_add(count).saturating_sub(1)))
        }
        (None, None, Some(ranges), _) => format!("{log}/{} removed", listed(ranges)),
        (None, None, None, Some(seq)) => updated(log, seq, change),
        (None, None, None, None) => format!("{log} {}", change.kind),
    }
}

fn updated(log: &str, seq: u64, change: &Change<'_>) -> String {
    let Some(item) = change.item else {
        let what = if change.kind == "acked" { "acknowledged" } else { "changed, large" };
        return format!("{log}/{seq} {what}");
    };
    let question = Question::read(item);
    match question.asked() {
        Some(asked) if log == "questions" && question.is_ended() => {
            format!("questions/{seq} {asked:?} → {}", question.end())
        }
        _ => format!("{log}/{seq} {}", item.get()),
    }
}

fn of_request(kind: &str, request: u64, change: &Change<'_>) -> String {
    let value = change.result.or(change.reason);
    let value = value.map(|value| format!(": {}", value.get())).unwrap_or_default();
    let fence = change.fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
    let what = match kind {
        "claimed" => {
            let agent = change.agent.as_deref().unwrap_or_default();
            format!("claimed by {agent}{fence}")
        }
        "finished" => "done".to_owned(),
        "verdict" if change.accept == Some(true) => "accepted".to_owned(),
        "verdict" => "rejected".to_owned(),
        other => other.replace('_', " "),
    };
    format!("requests/{request} {what}{value}")
}

fn of_state(path: &str, change: &Change<'_>) -> String {
    let place = if path.is_empty() { "state".to_owned() } else { format!("state/{path}") };
    if let Some(value) = change.value {
        return format!("{place} = {}", value.get());
    }
    if let Some(patch) = change.patch {
        return format!("{place} merged {}", patch.get());
    }
    if let Some(elements) = change.elements {
        return format!("{place} appended {}", elements.get());
    }
    match &*change.kind {
        "state_removed" => format!("{place} removed"),
        "state_expired" => format!("{place} expired"),
        _ => format!("{place} changed, large"),
    }
}

fn listed(ranges: &[(u64, u64)]) -> String {
    let ranges: Vec<_> = ranges.iter().map(|(first, last)| range(*first, *last)).collect();
    ranges.join(", ")
}

fn range(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Returns hours, minutes and seconds of a time.
fn time(at: &str) -> String {
    line(at.get(11..19).unwrap_or(at)).into_owned()
}

#[cfg(test)]
mod tests;
