//! Facts of each kind of change, in one table: its name, the part that it changes, its contents, and more.
//!
//! Views, filters, rights and the search read a change by its facts, so that a new kind is one more row. Only the rules
//! (`apply`, `admit`), the stored form and the JSON of a change know each kind.

use super::restored::Restored;
use super::{
    AgentChange, Change, CheckpointChange, LogChange, Note, RequestChange, SessionChange,
    StateChange,
};
use crate::log::SeqRange;
use crate::model::agent::Profile;
use crate::model::due::Due;
use crate::model::settings::{Labels, Settings};
use crate::{AgentName, Digest, Item, Json, LogName, Seq, SessionName, StatePath, Timestamp};

/// The facts of a change.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The kind in one word, as in the stored form.
    pub kind: &'static str,
    /// The part of the board that it changes. Filters, rights and lists of open entries go by it.
    pub part: Part<'a>,
    /// What it brings from outside.
    pub contents: Contents<'a>,
    /// The deadline that it sets, if any.
    pub deadline: Option<Timestamp>,
    /// The entries that a search finds in another form after it.
    pub indexed: Indexed<'a>,
    /// True if it only removes, so that it succeeds in a full session.
    pub removes: bool,
}

/// The part of a board that a change is in.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// None that a watcher of parts can name, such as settings and checkpoints. All who reach the session see it.
    Unnamed,
    /// The whole session, which ends.
    Session,
    /// The whole board, restored to an earlier one.
    Restored(&'a Restored),
    /// The whole board, adopted from a fork or an archive, with the session that it was forked from.
    Adopted(Option<&'a SessionName>),
    /// A log, or claims and plans of its entries.
    Log(&'a LogName),
    /// The state at a path.
    State(&'a StatePath),
    /// The state at a path, in the members of a merge patch.
    Merged(&'a StatePath, &'a Json),
    /// An agent.
    Agent(&'a AgentName),
    /// An agent with its logs.
    AgentWithLogs(&'a AgentName),
}

/// The contents of a change, which came from outside.
#[derive(Clone, Copy, Debug)]
pub enum Contents<'a> {
    /// None.
    Nothing,
    /// Settings and labels of a session.
    Settings(&'a Settings, &'a Labels),
    /// Items of a log.
    Items(&'a [Item]),
    /// A value of any kind, with the name of the member that has it, if any.
    Value(Option<&'a str>, &'a Json),
    /// Values without names.
    Values(&'a [Json]),
    /// The profile of an agent.
    Profile(&'a Profile),
    /// The requests that others wait for.
    Requests(&'a [Seq]),
    /// The digests of images.
    Images(&'a [Digest]),
    /// A blob of so many bytes, which are stored elsewhere.
    Blob(u64),
    /// All that a restore brings back.
    Restored(&'a Restored),
}

/// The entries whose texts a change adds, changes or removes.
#[derive(Clone, Debug)]
pub enum Indexed<'a> {
    /// None.
    Nothing,
    /// All of the board.
    Whole,
    /// So many entries of a log from this one on.
    Entries(&'a LogName, Seq, usize),
    /// Removed entries of a log.
    Removed(&'a LogName, &'a [SeqRange]),
    /// All entries of a log, which were removed.
    Cleared(&'a LogName),
    /// All entries of an agent's logs, which were removed.
    ClearedOf(&'a AgentName),
}

/// The facts of a change that has no effect and no contents.
const NONE: Facts<'static> = Facts {
    kind: "",
    part: Part::Unnamed,
    contents: Contents::Nothing,
    deadline: None,
    indexed: Indexed::Nothing,
    removes: false,
};

/// The kind of a commit whose changes have several kinds.
pub(super) const TRANSACTION: &str = "transaction";

/// The kind of a commit that only keeps an answer.
pub(super) const UNCHANGED: &str = "unchanged";

macro_rules! kinds {
    ($($kind:literal: $pattern:pat => { $($field:ident: $value:expr),* };)+) => {
        /// The kinds of commits: the kinds of changes, and two that no change has.
        pub const COMMIT_KINDS: [&str; [$($kind),+].len() + 2] =
            [$($kind,)+ TRANSACTION, UNCHANGED];

        impl Change {
            /// Returns the facts of the change.
            #[must_use]
            pub fn facts(&self) -> Facts<'_> {
                match self {
                    $($pattern => Facts { kind: $kind, $($field: $value,)* ..NONE },)+
                }
            }
        }
    };
}

kinds! {
    "created": Change::Session(SessionChange::Created { settings, labels, .. }) => {
        contents: Contents::Settings(settings, labels)
    };
    "configured": Change::Session(SessionChange::Configured { settings, labels }) => {
        contents: Contents::Settings(settings, labels)
    };
    "deleted": Change::Session(SessionChange::Deleted) => { part: Part::Session, removes: true };
    "appended": Change::Log(log, LogChange::Appended { first, items }) => {
        part: Part::Log(log),
        contents: Contents::Items(items),
        indexed: Indexed::Entries(log, *first, items.len())
    };
    "cleared": Change::Log(log, LogChange::Cleared) => {
        part: Part::Log(log), indexed: Indexed::Cleared(log), removes: true
    };
    "removed": Change::Log(log, LogChange::Removed { ranges }) => {
        part: Part::Log(log), indexed: Indexed::Removed(log, ranges), removes: true
    };
    "updated": Change::Log(log, LogChange::Updated { seq, item }) => {
        part: Part::Log(log),
        contents: Contents::Items(std::slice::from_ref(item)),
        indexed: Indexed::Entries(log, *seq, 1)
    };
    "acked": Change::Log(log, LogChange::Acked { .. }) => { part: Part::Log(log) };
    "state_put": Change::State(path, StateChange::Put { value, expires_at }) => {
        part: Part::State(path),
        contents: Contents::Value(path.name(), value),
        deadline: *expires_at
    };
    "state_set": Change::State(path, StateChange::Set { value }) => {
        part: Part::State(path), contents: Contents::Value(path.name(), value)
    };
    "state_merged": Change::State(path, StateChange::Merged { patch }) => {
        part: Part::Merged(path, patch), contents: Contents::Value(path.name(), patch)
    };
    "state_appended": Change::State(path, StateChange::Appended { elements }) => {
        part: Part::State(path), contents: Contents::Values(elements)
    };
    "state_removed": Change::State(path, StateChange::Removed) => {
        part: Part::State(path), removes: true
    };
    "agent_put": Change::Agent(agent, AgentChange::Put { profile }) => {
        part: Part::Agent(agent), contents: Contents::Profile(profile)
    };
    "agent_removed": Change::Agent(agent, AgentChange::Removed) => {
        part: Part::AgentWithLogs(agent),
        indexed: Indexed::ClearedOf(agent),
        removes: true
    };
    "claimed": Change::Request(_, RequestChange::Claimed { expires_at, .. }) => {
        part: Part::Log(&LogName::Requests), deadline: Some(*expires_at)
    };
    "released": Change::Request(seq, RequestChange::Released) => {
        part: Part::Log(&LogName::Requests), indexed: Indexed::request(*seq), removes: true
    };
    "finished": Change::Request(seq, RequestChange::Finished { result, .. }) => {
        part: Part::Log(&LogName::Requests),
        contents: Contents::of(result.as_ref()),
        indexed: Indexed::request(*seq)
    };
    "failed": Change::Request(seq, RequestChange::Failed { reason, retry_at }) => {
        part: Part::Log(&LogName::Requests),
        contents: Contents::of(reason.as_ref()),
        deadline: *retry_at,
        indexed: Indexed::request(*seq)
    };
    "retried": Change::Request(seq, RequestChange::Retried { deadline }) => {
        part: Part::Log(&LogName::Requests), deadline: *deadline, indexed: Indexed::request(*seq)
    };
    "cancel_requested": Change::Request(_, RequestChange::CancelRequested { reason }) => {
        part: Part::Log(&LogName::Requests), contents: Contents::of(reason.as_ref())
    };
    "cancelled": Change::Request(seq, RequestChange::Cancelled { reason }) => {
        part: Part::Log(&LogName::Requests),
        contents: Contents::of(reason.as_ref()),
        indexed: Indexed::request(*seq)
    };
    "verdict": Change::Request(seq, RequestChange::Verdict { reason, .. }) => {
        part: Part::Log(&LogName::Requests),
        contents: Contents::of(reason.as_ref()),
        indexed: Indexed::request(*seq)
    };
    "planned": Change::Planned { plan, .. } => {
        part: Part::Log(&LogName::Requests),
        contents: Contents::Requests(&plan.after),
        deadline: plan.deadline.max(plan.not_before)
    };
    "state_expired": Change::Expired(Due::State(path)) => { part: Part::State(path) };
    "claim_expired": Change::Expired(Due::Claim(seq)) => {
        part: Part::Log(&LogName::Requests), indexed: Indexed::request(*seq)
    };
    "deadline_passed": Change::Expired(Due::Deadline(seq)) => {
        part: Part::Log(&LogName::Requests), indexed: Indexed::request(*seq)
    };
    "due": Change::Expired(Due::Requests(_)) => { part: Part::Log(&LogName::Requests) };
    "question_expired": Change::Expired(Due::Question(_)) => {
        part: Part::Log(&LogName::Questions)
    };
    "session_expired": Change::Expired(Due::Session) => { part: Part::Session };
    "awaited": Change::Awaited { until, .. } => {
        part: Part::Log(&LogName::Questions), deadline: Some(until.expires_at)
    };
    "checkpoint_put": Change::Checkpoint(_, CheckpointChange::Put) => {};
    "checkpoint_removed": Change::Checkpoint(_, CheckpointChange::Removed) => { removes: true };
    "restored": Change::Session(SessionChange::Restored(restored)) => {
        part: Part::Restored(restored),
        contents: Contents::Restored(restored),
        indexed: Indexed::Whole
    };
    "adopted": Change::Session(SessionChange::Adopted { fork_of, .. }) => {
        part: Part::Adopted(fork_of.as_ref()), indexed: Indexed::Whole
    };
    "images_forgotten": Change::Session(SessionChange::ImagesForgotten { images }) => {
        contents: Contents::Images(images)
    };
    "budget_exhausted": Change::Session(SessionChange::Noted(Note::BudgetExhausted)) => {};
    "blob_put": Change::Session(SessionChange::BlobPut { bytes, .. }) => {
        contents: Contents::Blob(*bytes)
    };
}

impl Part<'_> {
    /// Returns true if the whole session may differ after the change.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        match self {
            Self::Session | Self::Restored(_) | Self::Adopted(_) => true,
            Self::Unnamed
            | Self::Log(_)
            | Self::State(_)
            | Self::Merged(..)
            | Self::Agent(_)
            | Self::AgentWithLogs(_) => false,
        }
    }

    /// Returns true if entries of this log may differ after the change.
    pub(super) fn touches(self, log: &LogName) -> bool {
        self.is_whole() || matches!(self, Self::Log(own) if own == log)
    }
}

impl<'a> Contents<'a> {
    /// Returns a value that has no name, if there is one.
    fn of(value: Option<&'a Json>) -> Self {
        value.map_or(Self::Nothing, |value| Self::Value(None, value))
    }
}

impl Indexed<'_> {
    /// Returns one request.
    const fn request(seq: Seq) -> Self {
        Self::Entries(&LogName::Requests, seq, 1)
    }
}
