//! Commands to a board, with their conditions and results.

pub(crate) mod rejected;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::model::agent::Status;
use super::model::idempotency::Key;
use super::model::settings::{LabelsPatch, Set, SettingsPatch};
use super::state::{StatePath, StateValue};
use super::values::claim::{Claim, Fence};
use super::{
    AgentName, Board, CheckpointName, Digest, Item, Json, LogName, MediaType, Nonce, PlanRequest,
    Rank, Revision, Seq, SessionName, Timestamp, TraceId, Ttl, Version, Wanted, When,
};

/// A write, as requested.
#[derive(Clone, Debug)]
pub struct Write {
    /// The session's name.
    pub session: SessionName,
    /// The author and the conditions.
    pub terms: Terms,
    /// The command.
    pub command: Command,
}

/// The terms of a write: everything but the session and the command.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The condition.
    pub condition: Condition,
    /// The claim under which the write is made, if named.
    pub fence: Option<Fence>,
    /// The author, if named.
    pub author: Option<AgentName>,
    /// The agent that the author's token is bound to: other agents' claims, statuses and hosts are not its own.
    pub bound_to: Option<AgentName>,
    /// The idempotency key, if given.
    pub key: Option<Key>,
    /// The trace of the request, if it names one.
    pub trace: Option<TraceId>,
}

/// The command.
#[derive(Clone, Debug)]
pub enum Command {
    /// Changes the session as a whole.
    Session(SessionCommand),
    /// Changes the four logs together.
    Board(BoardCommand),
    /// Changes a log.
    Log(LogName, LogCommand),
    /// Changes the state at a path.
    State(StatePath, Edit),
    /// Changes an agent.
    Agent(AgentName, AgentCommand),
    /// Removes all agents and empties all of their logs.
    RemoveAgents,
    /// Changes the claim or the result of a request.
    Request(Seq, RequestCommand),
    /// Answers or skips a question.
    Question(Seq, QuestionCommand),
    /// Appends questions that wait for an answer until a deadline.
    Ask {
        /// The questions.
        items: Vec<Item>,
        /// The time to live.
        ttl: Ttl,
        /// The answer to use after the deadline, if any.
        default: Option<String>,
    },
    /// Appends requests with terms: what they wait for, how often they are tried, and so on.
    Plan {
        /// The requests.
        items: Vec<Item>,
        /// The plan of each.
        plan: PlanRequest,
    },
    /// Claims the first claimable request with these members, by priority and then by age.
    ClaimNext {
        /// The members.
        wanted: Wanted,
        /// The place in the order up to which requests are known not to match.
        from: Rank,
        /// The time to live of the claim.
        ttl: Ttl,
    },
    /// Acknowledges a message.
    Ack {
        /// The agent that the message was sent to, by default the author.
        agent: Option<AgentName>,
        /// The message.
        message: Seq,
    },
    /// Changes a checkpoint.
    Checkpoint(CheckpointName, CheckpointCommand),
    /// Carries out one of two branches in one commit.
    Transact(Box<Transaction>),
}

/// A command to the session as a whole.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "no larger than a command already is")]
pub enum SessionCommand {
    /// Creates the session, or changes its settings and labels.
    Put {
        /// The change of settings.
        settings: Set<SettingsPatch>,
        /// The change of labels.
        labels: Set<LabelsPatch>,
        /// Answered questions, loaded if the command creates the session.
        qa_pairs: Vec<Item>,
    },
    /// Deletes the session with all its data.
    Delete,
    /// Restores an earlier board.
    Restore {
        /// The earlier board of the same session.
        then: Arc<Board>,
    },
    /// Adopts a stored history under a name without a session.
    Adopt {
        /// The board at the end of the history.
        board: Arc<Board>,
        /// The session that it was forked from.
        fork_of: Option<SessionName>,
    },
    /// Adds a blob whose bytes are stored. Creates the session if need be.
    PutBlob {
        /// The digest of its bytes.
        sha256: Digest,
        /// Its size in bytes.
        bytes: u64,
        /// Its media type, unless the blob is there with another.
        media_type: MediaType,
        /// The time in milliseconds after which another upload makes another commit.
        renewed_after_ms: i64,
    },
    /// Removes images that no retained revision names. Only the server issues this command.
    ForgetImages {
        /// The version of the session up to which the server has examined the history.
        seen: Version,
        /// The digests of the images, at most [`IMAGES_FORGOTTEN_MAX`](super::IMAGES_FORGOTTEN_MAX).
        images: BTreeSet<Digest>,
    },
}

/// A command to the four logs together.
#[derive(Clone, Debug)]
pub enum BoardCommand {
    /// Replaces all items, in the order of [`LogName::BOARD`].
    Replace {
        /// The items of each log.
        logs: [Vec<Item>; 4],
        /// The whole state, if replaced too.
        state: Option<Json>,
    },
    /// Empties the four logs.
    Clear {
        /// True to empty the state too.
        state: bool,
    },
}

/// A command to a log.
#[derive(Clone, Debug)]
pub enum LogCommand {
    /// Appends items.
    Append {
        /// The items.
        items: Vec<Item>,
    },
    /// Replaces all items.
    Replace {
        /// The new items.
        items: Vec<Item>,
    },
    /// Removes entries.
    Remove {
        /// The selected entries.
        which: Which,
    },
    /// Replaces the item of an entry.
    PutEntry {
        /// The entry.
        seq: Seq,
        /// The new item.
        item: Item,
        /// The required revision of the entry's last change, if the item was computed from the entry.
        basis: Option<Revision>,
    },
    /// Removes one entry.
    DeleteEntry {
        /// The entry.
        seq: Seq,
    },
}

/// A command to an agent.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// Registers the agent, or replaces its profile.
    Put {
        /// The profile, with or without its status.
        profile: Item,
    },
    /// Patches the profile.
    Patch {
        /// A merge patch (RFC 7396), an object.
        patch: Item,
    },
    /// Removes the agent and empties its logs.
    Remove,
}

/// A command to a request.
#[derive(Clone, Debug)]
pub enum RequestCommand {
    /// Claims the request, or renews the claim.
    Claim {
        /// The time to live.
        ttl: Ttl,
    },
    /// Releases the claim.
    Release,
    /// Finishes the request.
    Finish {
        /// The fence of the claim, if named.
        fence: Option<Revision>,
        /// The result.
        result: Option<Json>,
    },
    /// Ends the claim without success.
    Fail {
        /// The fence of the claim, if named.
        fence: Option<Revision>,
        /// The reason.
        reason: Option<Json>,
        /// The time until the request can be claimed again.
        retry_in: Option<Ttl>,
    },
    /// Makes a request that failed or was cancelled claimable again, with all its attempts.
    Retry {
        /// The new deadline.
        deadline: Option<When>,
    },
    /// Cancels the request: at once, or with its claim.
    Cancel {
        /// The reason.
        reason: Option<Json>,
    },
    /// Accepts or refuses the request's result.
    Judge {
        /// The fence of the judged attempt, if it was claimed.
        fence: Option<Revision>,
        /// True to accept it.
        accepted: bool,
        /// The reason.
        reason: Option<Json>,
    },
}

/// A command to an unanswered question.
#[derive(Clone, Debug)]
pub enum QuestionCommand {
    /// Answers the question.
    Answer {
        /// The answer, not blank.
        answer: String,
    },
    /// Records that the question stays unanswered.
    Skip,
}

/// A command to a checkpoint.
#[derive(Clone, Copy, Debug)]
pub enum CheckpointCommand {
    /// Sets the checkpoint to the revision of this write.
    Put,
    /// Removes the checkpoint.
    Remove,
}

/// A change of the state at a path.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Sets a value, with or without a time to live.
    Put {
        /// The value.
        value: Json,
        /// The time to live.
        ttl: Option<Ttl>,
    },
    /// Applies a merge patch (RFC 7396).
    Merge(Json),
    /// Adds a number to a number.
    Add(Json),
    /// Appends elements to an array.
    Append(Vec<Json>),
    /// Removes the value.
    Remove,
}

/// Tests, and the commands to run if all pass or if one fails.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// The tests.
    pub tests: Vec<Test>,
    /// The commands to run if all tests pass, in order, each of which changes one thing.
    pub then: Vec<Command>,
    /// The commands to run if a test fails.
    pub otherwise: Vec<Command>,
}

/// A test of the board.
#[derive(Clone, Debug)]
pub enum Test {
    /// The value at a state path equals this value: numbers by value, members in any order.
    Equals(StatePath, Json),
    /// A state path is absent (true) or present (false).
    Absent(StatePath, bool),
    /// A state path has this version. `None` is a version that it cannot have.
    InVersion(StatePath, Option<Version>),
    /// A log has this number of entries.
    Count(LogName, usize),
    /// A request is claimable (true) or not (false).
    Claimable(Seq, bool),
    /// The session is at this revision.
    AtRevision(Revision),
}

/// A selection of entries to remove.
#[derive(Clone, Debug)]
pub enum Which {
    /// All entries.
    All,
    /// Entries whose item has one of these steps.
    Steps(Vec<super::json::Exact>),
    /// All entries but this number of the newest.
    AllButNewest(usize),
}

/// The condition of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `If-Match`: the required version of the target.
    pub matches: Option<Matches>,
    /// `If-None-Match: *`: the target must not exist.
    pub absent: bool,
}

/// The required version of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// Any version: the target must exist.
    Any,
    /// One of these versions.
    Versions(Vec<Version>),
}

/// External inputs of a decision: the time, a nonce and the server's settings.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The current time.
    pub now: Timestamp,
    /// The nonce of the commit, if there is one.
    pub nonce: Nonce,
    /// The server's settings.
    pub policy: &'a Policy,
    /// Answered questions that a new session gets after those of the policy.
    pub qa_pairs: &'a [Item],
    /// The number of sessions.
    pub sessions: usize,
}

/// The server's settings that rules of the board depend on.
#[derive(Clone, Debug)]
pub struct Policy {
    /// True if the first write creates a session.
    pub auto_create: bool,
    /// The maximum size of a session's item text, in bytes.
    pub session_bytes_max: u64,
    /// The maximum size of a session's images in bytes, each counted once.
    pub session_blob_bytes_max: u64,
    /// The maximum number of entries in all logs and memories of a session.
    pub session_items_max: u64,
    /// The maximum number of sessions.
    pub sessions_max: usize,
    /// Answered questions that every new session gets.
    pub qa_pairs: Vec<Item>,
}

impl Answer {
    /// Returns the seq of the first added entry, if any.
    #[must_use]
    pub fn first_added(&self) -> Option<Seq> {
        if let Self::Added { first, count: 1.., .. } = self { Some(*first) } else { None }
    }

    /// Returns the number of removed entries or agents if the answer is a removal.
    #[must_use]
    pub fn removed(&self) -> Option<usize> {
        if let Self::Removed { count } = self { Some(*count) } else { None }
    }
}

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The write succeeded, or was already in effect.
    Done,
    /// Items were added under these seqs.
    Added {
        /// The first seq; the others follow in sequence.
        first: Seq,
        /// The number of added items.
        count: usize,
        /// The number of items that the session's settings discarded.
        dropped: usize,
    },
    /// Entries or agents were removed.
    Removed {
        /// The number of removed entries or agents.
        count: usize,
    },
    /// The new value at a state path.
    Value(StateValue),
    /// A request was claimed.
    Claimed {
        /// The claim.
        claim: Claim,
        /// True if the claim was newly won, not renewed.
        won: bool,
    },
    /// The next request was claimed, or there is none.
    Next(Option<(Seq, Claim)>),
    /// The agent's new status.
    Status(Status),
    /// One branch of a transaction was carried out.
    Transacted {
        /// True if all tests passed.
        succeeded: bool,
        /// The answer to each operation.
        results: Vec<Answer>,
    },
}
