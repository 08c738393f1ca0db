//! Changes of a commit as JSON, in full or in brief.
//!
//! The brief form has addresses instead of contents. Events and the audit show changes alike; the stored form is
//! independent.

use super::entry::{ImageBody, imageless};
use super::write_json;
use crate::intake::settings::SettingsBody;
use crate::push;
use blackboard_address::{agent_url, entry_url, image_url, log_path, log_url, state_url};
use blackboard_board::{
    AgentChange, AgentName, Change, Commit, Contents, Digest, Due, Item, Json, Labels, LogChange,
    LogName, Plan, Priority, RequestChange, Restored, Seq, SeqRange, SessionChange, SessionName,
    Settings, StateChange, StatePath, Timestamp, json,
};

/// The size from which an event shows its changes in brief.
pub(crate) const EVENT_BYTES_MAX: usize = 256 << 10;

/// The bytes of a forgotten image's digest: 64 digits, quotes, and a separator.
const FORGOTTEN_BYTES: usize = 67;

/// The maximum bytes of a seq in a list.
const SEQ_BYTES: usize = 17;

/// The form in which a change is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The whole change, with the addresses of images.
    Full,
    /// The place that changed, with the address of its content.
    Brief,
}

/// Writes a commit as an object with these changes: in full, unless that would be too large for an event.
pub fn write_event(
    session: &SessionName,
    commit: &Commit,
    changes: &[&Change],
    kind: bool,
    out: &mut String,
) {
    let start = out.len();
    if changes.iter().map(|change| contents(change)).sum::<usize>() <= EVENT_BYTES_MAX {
        write_commit(session, commit, changes, kind, Form::Full, out);
        if out.len() - start <= EVENT_BYTES_MAX {
            return;
        }
        out.truncate(start);
    }
    write_commit(session, commit, changes, kind, Form::Brief, out);
}

/// Writes a commit as an object with these changes.
pub(crate) fn write_commit(
    session: &SessionName,
    commit: &Commit,
    changes: &[&Change],
    kind: bool,
    form: Form,
    out: &mut String,
) {
    push(out, format_args!("{{\"revision\":{},\"at\":\"{}\"", commit.revision, commit.at));
    if let Some(agent) = &commit.agent {
        out.push_str(",\"agent\":");
        json::quote(agent.as_str(), out);
    }
    if let Some(trace) = commit.trace {
        push(out, format_args!(",\"trace\":\"{trace}\""));
    }
    if kind {
        push(out, format_args!(",\"kind\":\"{}\"", commit.kind()));
    }
    out.push_str(",\"changes\":");
    write_list(changes, out, |change, out| Writer { session, form, out }.change(change));
    out.push('}');
}

/// Returns the bytes of a change's contents, without the text around them.
fn contents(change: &Change) -> usize {
    let text = |json: &Json| json.text().len();
    match change.facts().contents {
        Contents::Items(items) => items.iter().map(|item| item.text().len()).sum(),
        Contents::Value(_, value) => text(value),
        Contents::Values(values) => values.iter().map(text).sum(),
        Contents::Profile(profile) => profile.item().text().len(),
        Contents::Requests(requests) => requests.len() * SEQ_BYTES,
        Contents::Images(images) => images.len() * FORGOTTEN_BYTES,
        Contents::Nothing | Contents::Settings(..) | Contents::Blob(_) | Contents::Restored(_) => 0,
    }
}

/// Writes an array.
pub(crate) fn write_list<T>(
    all: impl IntoIterator<Item = T>,
    out: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    out.push('[');
    for (index, one) in all.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(one, out);
    }
    out.push(']');
}

/// The writer of one change.
struct Writer<'a> {
    session: &'a SessionName,
    form: Form,
    out: &'a mut String,
}

impl Writer<'_> {
    fn change(&mut self, change: &Change) {
        push(self.out, format_args!("{{\"kind\":\"{}\"", change.kind()));
        match change {
            Change::Session(
                SessionChange::Created { settings, labels, .. }
                | SessionChange::Configured { settings, labels },
            ) => {
                self.settings(settings, labels);
            }
            Change::Log(log, change) => self.log(log, change),
            Change::State(path, StateChange::Put { value, expires_at }) => {
                self.place(path, "value", value.text());
                self.time("expires_at", *expires_at);
            }
            Change::State(path, StateChange::Set { value }) => {
                self.place(path, "value", value.text());
            }
            Change::State(path, StateChange::Merged { patch }) => {
                self.place(path, "patch", patch.text());
            }
            Change::State(path, StateChange::Appended { elements }) => {
                self.elements(path, elements);
            }
            Change::State(path, StateChange::Removed) | Change::Expired(Due::State(path)) => {
                self.text("path", &path.to_string());
            }
            Change::Agent(agent, AgentChange::Put { profile }) => {
                self.agent(agent, profile.item().text());
            }
            Change::Agent(agent, AgentChange::Removed) => self.text("agent", agent.as_str()),
            Change::Request(seq, change) => self.request(*seq, change),
            Change::Expired(Due::Claim(seq) | Due::Deadline(seq)) => self.number("request", seq.0),
            Change::Expired(Due::Requests(requests)) => self.ranges("requests", requests),
            Change::Expired(Due::Question(seq)) => self.number("question", seq.0),
            Change::Awaited { first, last, until } => {
                self.number("first", first.0);
                self.number("last", last.0);
                self.time("expires_at", Some(until.expires_at));
                if let (Form::Full, Some(default)) = (self.form, &until.default) {
                    self.text("default", default);
                }
            }
            Change::Planned { first, last, plan } => self.planned(*first, *last, plan),
            Change::Checkpoint(name, _) => {
                self.text("name", name.as_str());
            }
            Change::Session(SessionChange::Restored(restored)) => self.restored(restored),
            Change::Session(SessionChange::Adopted { after, fork_of, .. }) => {
                self.number("after", after.0);
                if let Some(origin) = fork_of {
                    self.text("fork_of", origin.as_str());
                }
            }
            Change::Session(SessionChange::ImagesForgotten { images }) => self.forgotten(images),
            Change::Session(SessionChange::BlobPut { sha256, bytes, media_type }) => {
                self.text("sha256", &sha256.to_string());
                self.number("bytes", *bytes);
                self.text("media_type", media_type.as_str());
            }
            Change::Session(SessionChange::Deleted | SessionChange::Noted(_))
            | Change::Expired(Due::Session) => {}
        }
        self.out.push('}');
    }

    fn log(&mut self, log: &LogName, change: &LogChange) {
        match change {
            LogChange::Appended { first, items } => {
                self.appended(log, *first, items);
            }
            LogChange::Cleared => self.text("log", &log_path(log)),
            LogChange::Removed { ranges } => {
                self.text("log", &log_path(log));
                self.ranges("ranges", ranges);
            }
            LogChange::Updated { seq, item } => self.updated(log, *seq, item),
            LogChange::Acked { seq } => {
                self.text("log", &log_path(log));
                self.number("seq", seq.0);
            }
        }
    }

    fn request(&mut self, seq: Seq, change: &RequestChange) {
        self.number("request", seq.0);
        match change {
            RequestChange::Claimed { agent, fence, expires_at } => {
                self.text("agent", agent.as_str());
                self.number("fence", fence.0);
                self.time("expires_at", Some(*expires_at));
            }
            RequestChange::Released => {}
            RequestChange::Retried { deadline } => self.time("deadline", *deadline),
            RequestChange::Failed { reason, retry_at } => {
                self.time("not_before", *retry_at);
                self.value(seq, "reason", reason.as_ref());
            }
            RequestChange::CancelRequested { reason } | RequestChange::Cancelled { reason } => {
                self.value(seq, "reason", reason.as_ref());
            }
            RequestChange::Verdict { accepted, reason } => {
                self.json("accept", if *accepted { "true" } else { "false" });
                self.value(seq, "reason", reason.as_ref());
            }
            RequestChange::Finished { fence, result } => {
                if let Some(fence) = fence {
                    self.number("fence", fence.0);
                }
                self.value(seq, "result", result.as_ref());
            }
        }
    }

    fn settings(&mut self, settings: &Settings, labels: &Labels) {
        if self.form == Form::Full {
            self.json("settings", &settings_text(settings));
            self.json("labels", &labels_text(labels));
        }
    }

    fn appended(&mut self, log: &LogName, first: Seq, items: &[Item]) {
        self.text("log", &log_path(log));
        if self.form == Form::Brief {
            self.number("first", first.0);
            self.number("count", items.len() as u64);
            let (after, before) =
                (first.0.saturating_sub(1), first.0.saturating_add(items.len() as u64));
            let url = log_url(self.session, log);
            return self.text("url", &format!("{url}?after={after}&before={before}"));
        }
        self.name("entries");
        let session = self.session;
        write_list((first.0..).map(Seq).zip(items), self.out, |(seq, item), out| {
            push(out, format_args!("{{\"seq\":{seq},\"item\":"));
            write_shown(session, seq, item, out);
            out.push('}');
        });
    }

    fn updated(&mut self, log: &LogName, seq: Seq, item: &Item) {
        self.text("log", &log_path(log));
        self.number("seq", seq.0);
        if self.form == Form::Brief {
            return self.text("url", &entry_url(self.session, log, seq));
        }
        self.name("item");
        write_shown(self.session, seq, item, self.out);
    }

    /// Writes a place in the state, with its new value.
    fn place(&mut self, path: &StatePath, name: &str, value: &str) {
        self.text("path", &path.to_string());
        match self.form {
            Form::Full => self.json(name, value),
            Form::Brief => self.text("url", &state_url(self.session, path)),
        }
    }

    fn elements(&mut self, path: &StatePath, elements: &[Json]) {
        self.text("path", &path.to_string());
        if self.form == Form::Brief {
            return self.text("url", &state_url(self.session, path));
        }
        self.name("elements");
        write_list(elements, self.out, |element, out| out.push_str(element.text()));
    }

    fn agent(&mut self, agent: &AgentName, profile: &str) {
        self.text("agent", agent.as_str());
        match self.form {
            Form::Full => self.json("value", profile),
            Form::Brief => self.text("url", &agent_url(self.session, agent)),
        }
    }

    fn planned(&mut self, first: Seq, last: Seq, plan: &Plan) {
        self.number("first", first.0);
        self.number("last", last.0);
        if let Some(attempts) = plan.attempts {
            self.number("attempts", attempts.into());
        }
        if plan.priority != Priority::DEFAULT {
            self.json("priority", &plan.priority.get().to_string());
        }
        self.time("not_before", plan.not_before);
        self.time("deadline", plan.deadline);
        if plan.review {
            self.json("review", "true");
        }
        if !plan.after.is_empty() && self.form == Form::Full {
            self.name("after");
            write_list(plan.after.iter(), self.out, |seq, out| push(out, format_args!("{seq}")));
        }
    }

    /// Writes the value that ended the work on a request.
    fn value(&mut self, seq: Seq, name: &str, value: Option<&Json>) {
        match (self.form, value) {
            (Form::Full, Some(value)) => self.json(name, value.text()),
            (Form::Full, None) => {}
            (Form::Brief, _) => {
                self.text("url", &entry_url(self.session, &LogName::Requests, seq));
            }
        }
    }

    fn restored(&mut self, restored: &Restored) {
        self.number("to", restored.to.0);
        self.name("logs");
        write_list(&restored.logs, self.out, |(name, log), out| {
            out.push_str("{\"log\":");
            json::quote(&log_path(name), out);
            out.push_str(",\"removed\":");
            write_ranges(&log.removed, out);
            push(out, format_args!(",\"restored\":{}}}", log.entries.len()));
        });
        self.name("state");
        write_list(&restored.state, self.out, |(path, _), out| json::quote(&path.to_string(), out));
        self.name("agents");
        write_list(&restored.agents, self.out, |(agent, _), out| json::quote(agent.as_str(), out));
    }

    fn forgotten(&mut self, images: &[Digest]) {
        if self.form == Form::Brief {
            return self.number("count", images.len() as u64);
        }
        self.name("images");
        write_list(images, self.out, |sha256, out| push(out, format_args!("\"{sha256}\"")));
    }

    fn name(&mut self, name: &str) {
        push(self.out, format_args!(",\"{name}\":"));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        json::quote(text, self.out);
    }

    fn number(&mut self, name: &str, number: u64) {
        push(self.out, format_args!(",\"{name}\":{number}"));
    }

    fn time(&mut self, name: &str, at: Option<Timestamp>) {
        if let Some(at) = at {
            push(self.out, format_args!(",\"{name}\":\"{at}\""));
        }
    }

    fn json(&mut self, name: &str, text: &str) {
        self.name(name);
        self.out.push_str(text);
    }

    fn ranges(&mut self, name: &str, ranges: &[SeqRange]) {
        self.name(name);
        write_ranges(ranges, self.out);
    }
}

fn write_ranges(ranges: &[SeqRange], out: &mut String) {
    write_list(ranges, out, |SeqRange { first, last }, out| {
        push(out, format_args!("[{first},{last}]"));
    });
}

/// Writes an item and the address of its stored image.
fn write_shown(session: &SessionName, seq: Seq, item: &Item, out: &mut String) {
    out.push_str(imageless(item).get());
    if let Some(image) = item.image() {
        out.push_str(",\"image\":");
        write_json(&ImageBody::of(image_url(session, seq), image), out);
    }
}

/// Renders a session's settings.
pub(crate) fn settings_text(settings: &Settings) -> String {
    shown(serde_json::to_string(&SettingsBody::from(settings)))
}

/// Renders a session's labels.
pub(crate) fn labels_text(labels: &Labels) -> String {
    shown(serde_json::to_string(labels))
}

fn shown(text: serde_json::Result<String>) -> String {
    text.unwrap_or_else(|error| {
        tracing::error!(%error, "settings or labels cannot be written as JSON");
        "{}".to_owned()
    })
}

#[cfg(test)]
mod tests;
