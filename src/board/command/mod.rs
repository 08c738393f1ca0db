//! Commands to a board, with their terms and their answers.

pub(crate) mod rejected;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::model::agent::Status;
use super::model::idempotency::Key;
use super::model::settings::{LabelsPatch, Set, SettingsPatch};
use super::state::{StatePath, StateValue};
use super::values::claim::{Claim, Fence};
use super::{
    AgentName, Board, CheckpointName, Digest, Item, Json, LogName, Nonce, Revision, Seq,
    SessionName, Timestamp, Ttl, Version,
};

/// A write, as requested.
#[derive(Clone, Debug)]
pub struct Write {
    /// Where, by whom, and on what terms.
    pub terms: Terms,
    /// The command.
    pub command: Command,
}

/// The terms of a write: everything but the command.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The session's name.
    pub session: SessionName,
    /// The condition.
    pub condition: Condition,
    /// The claim under which it is made, where one was named.
    pub fence: Option<Fence>,
    /// The author, if named.
    pub author: Option<AgentName>,
    /// The key by which a repeat is known, where one was given.
    pub key: Option<Key>,
}

/// The command.
#[derive(Clone, Debug)]
pub enum Command {
    /// Change the session as a whole.
    Session(SessionCommand),
    /// Change the four logs together.
    Board(BoardCommand),
    /// Change a log.
    Log(LogName, LogCommand),
    /// Change the state at a path.
    State(StatePath, Edit),
    /// Change an agent.
    Agent(AgentName, AgentCommand),
    /// Remove all agents and empty all memories.
    RemoveAgents,
    /// Change the work on a request.
    Request(Seq, RequestCommand),
    /// Answer a question, or skip it.
    Question(Seq, QuestionCommand),
    /// Append questions that wait for an answer until a deadline.
    Ask {
        /// The questions.
        items: Vec<Item>,
        /// The time to live.
        ttl: Ttl,
        /// The answer after the deadline, if any.
        default: Option<String>,
    },
    /// Change a checkpoint.
    Checkpoint(CheckpointName, CheckpointCommand),
    /// Carry out one of two branches, in one commit.
    Transact(Box<Transaction>),
}

/// A command to the session as a whole.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "no larger than a command already is")]
pub enum SessionCommand {
    /// Create the session, or change its settings and labels.
    Put {
        /// The change of settings.
        settings: Set<SettingsPatch>,
        /// The change of labels.
        labels: Set<LabelsPatch>,
        /// Questions with their answers, loaded if this creates the session.
        qa_pairs: Vec<Item>,
    },
    /// Delete the session with all it has.
    Delete,
    /// Restore an earlier board.
    Restore {
        /// The earlier board, of the same session.
        then: Arc<Board>,
    },
    /// Adopt a stored history under a name without a session.
    Adopt {
        /// The board at its end.
        board: Arc<Board>,
        /// The session that it was forked from.
        fork_of: Option<SessionName>,
    },
    /// Forget images that no retained revision names. Only the server asks for that.
    ForgetImages {
        /// The version of the session up to which the server has examined the history.
        seen: Version,
        /// Their digests, at most [`IMAGES_FORGOTTEN_MAX`](super::IMAGES_FORGOTTEN_MAX).
        images: BTreeSet<Digest>,
    },
}

/// A command to the four logs together.
#[derive(Clone, Debug)]
pub enum BoardCommand {
    /// Replace all items, in the order of [`LogName::BOARD`].
    Replace {
        /// The items of each log.
        logs: [Vec<Item>; 4],
        /// The whole state, if it is replaced too.
        state: Option<Json>,
    },
    /// Empty the four logs.
    Clear {
        /// True to empty the state too.
        state: bool,
    },
}

/// A command to a log.
#[derive(Clone, Debug)]
pub enum LogCommand {
    /// Append items.
    Append {
        /// The items.
        items: Vec<Item>,
    },
    /// Replace all items.
    Replace {
        /// The new items.
        items: Vec<Item>,
    },
    /// Remove entries.
    Remove {
        /// The selected entries.
        which: Which,
    },
    /// Replace the item of an entry.
    PutEntry {
        /// The entry.
        seq: Seq,
        /// The new item.
        item: Item,
        /// The required revision of the entry's last change, if the item was made from the entry.
        basis: Option<Revision>,
    },
    /// Remove one entry.
    DeleteEntry {
        /// The entry.
        seq: Seq,
    },
}

/// A command to an agent.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// Register the agent, or replace its profile.
    Put {
        /// The profile, with or without its status.
        profile: Item,
    },
    /// Patch the profile.
    Patch {
        /// A merge patch (RFC 7396), an object.
        patch: Item,
    },
    /// Remove the agent and empty its memory.
    Remove,
}

/// A command about the work on a request.
#[derive(Clone, Debug)]
pub enum RequestCommand {
    /// Claim the request, or renew the claim.
    Claim {
        /// The time to live.
        ttl: Ttl,
    },
    /// Give the claim back.
    Release,
    /// Finish the request.
    Finish {
        /// The fence of the claim, if named.
        fence: Option<Revision>,
        /// The result.
        result: Option<Json>,
    },
}

/// A command to a question without an answer.
#[derive(Clone, Debug)]
pub enum QuestionCommand {
    /// Answer the question.
    Answer {
        /// The answer, which is not blank.
        answer: String,
    },
    /// Record that the question gets no answer.
    Skip,
}

/// A command to a checkpoint.
#[derive(Clone, Copy, Debug)]
pub enum CheckpointCommand {
    /// Set the checkpoint on the revision that this write makes.
    Put,
    /// Remove the checkpoint.
    Remove,
}

/// A change of the state at a path.
#[derive(Clone, Debug)]
pub enum Edit {
    /// This is its value, for so long or for ever.
    Put {
        /// Its value.
        value: Json,
        /// The time to live.
        ttl: Option<Ttl>,
    },
    /// A merge patch (RFC 7396) is applied.
    Merge(Json),
    /// A number is added to a number.
    Add(Json),
    /// Elements are added at the end of an array.
    Append(Vec<Json>),
    /// It is removed.
    Remove,
}

/// Tests, and what to do if all of them hold, and what if not.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// The tests.
    pub tests: Vec<Test>,
    /// The commands if all tests pass, each changing one thing, in order.
    pub then: Vec<Command>,
    /// The commands if a test fails.
    pub otherwise: Vec<Command>,
}

/// A question to the board.
#[derive(Clone, Debug)]
pub enum Test {
    /// A path of the state has this value: numbers by value, members in any order.
    Equals(StatePath, Json),
    /// A path of the state is absent, or is there.
    Absent(StatePath, bool),
    /// A path of the state is in this version. `None` is a version that it cannot have.
    InVersion(StatePath, Option<Version>),
    /// A log has so many entries.
    Count(LogName, usize),
    /// A request can be claimed, or cannot.
    Claimable(Seq, bool),
    /// The session is at this revision.
    AtRevision(Revision),
}

/// Which entries to remove.
#[derive(Clone, Debug)]
pub enum Which {
    /// All of them.
    All,
    /// Entries whose item has one of these steps.
    Steps(Vec<super::json::Exact>),
    /// All but this many, the newest.
    AllButNewest(usize),
}

/// The condition of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `If-Match`: the required version of the target.
    pub matches: Option<Matches>,
    /// `If-None-Match: *`: the thing written must not exist.
    pub absent: bool,
}

/// The required version of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// It must exist.
    Any,
    /// It must be one of these versions.
    Versions(Vec<Version>),
}

/// The outside facts of a decision: the time, a nonce, and the server's settings.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The clock.
    pub now: Timestamp,
    /// The mark of the commit, if there will be one.
    pub nonce: Nonce,
    /// The server's settings.
    pub policy: &'a Policy,
    /// The questions with their answers that a new session gets after those of the policy.
    pub qa_pairs: &'a [Item],
    /// The number of sessions.
    pub sessions: usize,
}

/// The server's settings on which rules of the board depend.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether a first write makes its session.
    pub auto_create: bool,
    /// The most bytes of item text in a session.
    pub session_bytes_max: u64,
    /// The most bytes of images in a session, each counted once.
    pub session_blob_bytes_max: u64,
    /// The most entries of all logs and memories of a session.
    pub session_items_max: u64,
    /// The most sessions.
    pub sessions_max: usize,
    /// The questions with their answers that every new session gets.
    pub qa_pairs: Vec<Item>,
}

impl Answer {
    /// The seq of the first entry that was added, if one was.
    #[must_use]
    pub fn first_added(&self) -> Option<Seq> {
        if let Self::Added { first, count: 1.., .. } = self { Some(*first) } else { None }
    }

    /// Returns the number of removed entries or agents, for a removal.
    #[must_use]
    pub fn removed(&self) -> Option<usize> {
        if let Self::Removed { count } = self { Some(*count) } else { None }
    }
}

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The write is done, or was already in effect.
    Done,
    /// Items were added, these seqs given.
    Added {
        /// The first seq; the others follow one by one.
        first: Seq,
        /// The number.
        count: usize,
        /// The number of items that the session's settings discard.
        dropped: usize,
    },
    /// Entries, or agents, were removed.
    Removed {
        /// The number.
        count: usize,
    },
    /// A path of the state has this value now.
    Value(StateValue),
    /// A request is claimed.
    Claimed {
        /// The claim.
        claim: Claim,
        /// Whether it was won just now, and not only renewed.
        won: bool,
    },
    /// An agent has this status now.
    Status(Status),
    /// One branch of a transaction was carried out.
    Transacted {
        /// Whether all tests held.
        succeeded: bool,
        /// The answer to each operation.
        results: Vec<Answer>,
    },
}
