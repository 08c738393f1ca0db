//! Attention: all that waits for one agent.

pub(crate) mod unacked;

use std::sync::LazyLock;

use super::tasks::matching::Matching;
use crate::json::Kind;
use crate::{AgentName, Board, LogName, Revision, Seq, StatePath, StateValue};

/// The maximum number of entries that a list of an attention shows.
pub const ATTENTION_ENTRIES_MAX: usize = 20;

/// The kinds of entries that can wait for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// Messages that it has not acknowledged.
    Messages,
    /// Requests that it can claim.
    Claimable,
    /// Answers to its questions.
    Answers,
    /// Requests that it has claimed and that are cancelled.
    Cancels,
    /// Results of other agents that wait for a verdict.
    Reviews,
}

impl Waking {
    /// All kinds, in display order.
    pub const ALL: [Self; 5] =
        [Self::Messages, Self::Claimable, Self::Answers, Self::Cancels, Self::Reviews];

    /// Returns the kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Claimable => "claimable",
            Self::Answers => "answers",
            Self::Cancels => "cancels",
            Self::Reviews => "reviews",
        }
    }

    /// Returns the log of these entries.
    #[must_use]
    pub fn log(self, agent: &AgentName) -> LogName {
        match self {
            Self::Messages => LogName::Messages(agent.clone()),
            Self::Claimable | Self::Cancels | Self::Reviews => LogName::Requests,
            Self::Answers => LogName::Questions,
        }
    }
}

/// Entries of one kind that wait for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// The kind.
    pub waking: Waking,
    /// The number of all entries.
    pub count: usize,
    /// The newest entries, by ascending seq, each with its last change.
    pub newest: Vec<(Seq, Revision)>,
}

/// All that waits for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// The lists that were asked for.
    pub lists: Vec<Awaiting>,
    /// True if the agent is asked to pause or to stop all its work.
    pub paused: bool,
    /// The cursor with which to go on: the last revision at which something was found, or that of the present cursor.
    pub next: Revision,
}

impl Attention {
    /// Returns true if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.count == 0)
    }
}

impl Board {
    /// Returns what waits for an agent. Of claimable requests and answers only those that came after a revision, if one
    /// is given. `matching` are the requests of this board that are wanted.
    #[must_use]
    pub fn attention(
        &self,
        agent: &AgentName,
        kinds: &[Waking],
        matching: &Matching,
        after: Option<Revision>,
    ) -> Attention {
        // A cursor beyond the head is of a history that was lost.
        let since = after.filter(|after| *after <= self.revision).unwrap_or_default();
        let lists: Vec<_> =
            kinds.iter().map(|kind| self.awaiting(agent, *kind, matching, since)).collect();
        let entries = lists.iter().flat_map(|list| &list.newest).map(|(_, changed)| *changed);
        let is_claimable = kinds.contains(&Waking::Claimable) && self.budget_passed().is_none();
        let claimable = is_claimable.then(|| matching.newest());
        let next = entries.chain(claimable).fold(since, Revision::max);
        Attention { lists, paused: self.is_paused(agent), next }
    }

    fn awaiting(
        &self,
        agent: &AgentName,
        waking: Waking,
        matching: &Matching,
        after: Revision,
    ) -> Awaiting {
        let most = ATTENTION_ENTRIES_MAX;
        let (count, seqs): (usize, Vec<Seq>) = match waking {
            Waking::Messages => {
                let unacked = self.unacked.of(agent).rev();
                (self.unacked.count(agent), unacked.take(most).collect())
            }
            Waking::Claimable if self.budget_passed().is_some() => (0, Vec::new()),
            Waking::Claimable => {
                let count = matching.claimable_count(after);
                (count, matching.claimable(after).take(most.min(count)).collect())
            }
            Waking::Answers => {
                let answered = self.asked.answered(agent, after).rev();
                let newest = answered.take(most).map(|(_, seq)| seq).collect();
                (self.asked.answered(agent, after).count(), newest)
            }
            Waking::Cancels => {
                let cancelled = self.tasks.cancelled_of(agent);
                let count = cancelled.count();
                (count, self.tasks.cancelled_of(agent).rev().take(most).collect())
            }
            Waking::Reviews => {
                (matching.reviews(agent).count(), matching.reviews(agent).take(most).collect())
            }
        };
        let log = self.log(&waking.log(agent));
        let changed = |seq: Seq| Some((seq, log?.get(seq)?.revision));
        let mut newest: Vec<_> = seqs.into_iter().filter_map(changed).collect();
        newest.sort_unstable();
        Awaiting { waking, count, newest }
    }

    /// Returns true if the state asks the agent to pause or to stop all of its work: a value at `agents/NAME/paused` or
    /// `agents/NAME/stopped` that names no single request.
    fn is_paused(&self, agent: &AgentName) -> bool {
        let agents = self.state.value(&AGENTS).and_then(|agents| agents.member(agent.as_str()));
        let asks = |name: &str| {
            let value = agents.as_ref().and_then(|agent| agent.member(name));
            value.is_some_and(|value| covers_all(&value))
        };
        asks("paused") || asks("stopped")
    }
}

/// The path of what the state says of agents.
static AGENTS: LazyLock<StatePath> =
    LazyLock::new(|| StatePath::from_segments(["agents"]).unwrap_or_else(|_| StatePath::root()));

fn covers_all(value: &StateValue) -> bool {
    let is_number = |value: StateValue| value.kind() == Kind::Number;
    value.kind() != Kind::Null && !value.member("request").is_some_and(is_number)
}
