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
    /// Make the session, or change its settings and labels.
    PutSession {
        /// The change of settings.
        settings: Set<SettingsPatch>,
        /// The change of labels.
        labels: Set<LabelsPatch>,
        /// Questions with their answers, loaded where this makes the session.
        qa_pairs: Vec<Item>,
    },
    /// Delete the session with all it has.
    DeleteSession,
    /// Add items at the end of a log.
    Append {
        /// Which log.
        log: LogName,
        /// The items.
        items: Vec<Item>,
    },
    /// Let these be all the items of a log.
    ReplaceLog {
        /// Which log.
        log: LogName,
        /// Its new items.
        items: Vec<Item>,
    },
    /// Remove entries of a log.
    RemoveEntries {
        /// Which log.
        log: LogName,
        /// Which of its entries.
        which: Which,
    },
    /// Give an entry another item.
    PutEntry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
        /// Its new item.
        item: Item,
        /// The revision at which the entry must have changed last, where the item was made from it.
        basis: Option<Revision>,
    },
    /// Remove one entry.
    DeleteEntry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// Let these be all the items of the four logs, in the order of [`LogName::BOARD`].
    ReplaceBoard {
        /// The items of each.
        logs: [Vec<Item>; 4],
        /// The whole state, unless it is to stay.
        state: Option<Json>,
    },
    /// Empty the four logs.
    ClearBoard {
        /// Empty the state too.
        state: bool,
    },
    /// Change the state at a path.
    EditState {
        /// Which path.
        path: StatePath,
        /// How.
        edit: Edit,
    },
    /// Register an agent, or let it say something else of itself.
    PutAgent {
        /// Which agent.
        agent: AgentName,
        /// The profile, with or without its status.
        profile: Item,
    },
    /// Patch what an agent says of itself.
    PatchAgent {
        /// Which agent.
        agent: AgentName,
        /// A merge patch (RFC 7396), an object.
        patch: Item,
    },
    /// Remove an agent and empty its memory.
    RemoveAgent {
        /// Which agent.
        agent: AgentName,
    },
    /// Remove all agents and empty all memories.
    RemoveAgents,
    /// Claim a request, or renew the claim.
    Claim {
        /// Which request.
        request: Seq,
        /// The time to live.
        ttl: Ttl,
    },
    /// Give a claim back.
    Release {
        /// The request.
        request: Seq,
    },
    /// Finish a request.
    Finish {
        /// Which request.
        request: Seq,
        /// Under which claim, where one was named.
        fence: Option<Revision>,
        /// The result.
        result: Option<Json>,
    },
    /// Answer a question that has no answer yet.
    AnswerQuestion {
        /// Which question.
        question: Seq,
        /// The answer, which is not blank.
        answer: String,
    },
    /// Ask questions that wait for an answer so long only.
    Ask {
        /// The questions.
        items: Vec<Item>,
        /// The time to live.
        ttl: Ttl,
        /// The answer after the deadline, if any.
        default: Option<String>,
    },
    /// Say that a question gets no answer.
    SkipQuestion {
        /// Which question.
        question: Seq,
    },
    /// Set a checkpoint on the revision that this makes.
    PutCheckpoint {
        /// The name.
        name: CheckpointName,
    },
    /// Remove a checkpoint.
    RemoveCheckpoint {
        /// The name.
        name: CheckpointName,
    },
    /// Restore an earlier board.
    Restore {
        /// The earlier board, of the same session.
        then: Arc<Board>,
    },
    /// Let a history that is already stored be that of a name without a session.
    Adopt {
        /// The board at its end.
        board: Arc<Board>,
        /// The session that it was forked from.
        fork_of: Option<SessionName>,
    },
    /// Forget images that nothing of what is kept names. Only the server asks for that.
    ForgetImages {
        /// The version of the session up to which it has looked at what is kept.
        seen: Version,
        /// Their digests, at most [`IMAGES_FORGOTTEN_MAX`](super::IMAGES_FORGOTTEN_MAX).
        images: BTreeSet<Digest>,
    },
    /// Do the one or the other, in one commit.
    Transact(Box<Transaction>),
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
