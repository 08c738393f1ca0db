//! Open questions of a session and their deadlines, and the answers to questions of agents.

use imbl::{OrdMap, OrdSet};

use crate::log::filter::is_open;
use crate::{AgentName, Board, Entry, Item, Log, LogName, Revision, Seq, SeqRange, Timestamp};

/// The maximum number of questions with a deadline in one write, since each stores its default.
pub const AWAITED_AT_ONCE_MAX: usize = 1_000;

/// The maximum size of a question's default, in bytes.
pub const DEFAULT_BYTES_MAX: usize = 64 << 10;

/// The questions without an answer, and those of agents that got one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Open questions: items with a string as `question` or `text`, and without an `answer`.
    pub(crate) open: OrdSet<Seq>,
    /// Open questions with a deadline.
    pub(crate) awaited: OrdMap<Seq, Awaited>,
    /// The deadlines in order of time.
    pub(crate) by_time: OrdSet<(Timestamp, Seq)>,
    /// The bytes of the default answers.
    pub(crate) bytes: u64,
    /// The questions of each agent that have an answer, by their last change.
    pub(crate) answered: OrdMap<AgentName, OrdSet<(Revision, Seq)>>,
}

/// The deadline of a question, and its default answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The deadline.
    pub expires_at: Timestamp,
    /// The default answer, if any.
    pub default: Option<Box<str>>,
}

impl Asked {
    /// Returns the questions without an answer, ordered by seq.
    #[must_use]
    pub fn open(&self) -> &OrdSet<Seq> {
        &self.open
    }

    /// Returns the deadline and default of a question, if it has a deadline.
    #[must_use]
    pub fn awaited(&self, question: Seq) -> Option<&Awaited> {
        self.awaited.get(&question)
    }

    /// Returns the bytes of the default answers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the questions of this agent that got an answer after this revision, by the revision of their last change.
    pub fn answered(
        &self,
        agent: &AgentName,
        after: Revision,
    ) -> impl DoubleEndedIterator<Item = (Revision, Seq)> {
        let answered = self.answered.get(agent).into_iter();
        answered.flat_map(move |answered| answered.range((after.next(), Seq(0))..)).copied()
    }

    /// Returns the number of answered questions, and of the agents that asked them.
    pub(crate) fn answered_sizes(&self) -> (usize, usize) {
        (self.answered.values().map(OrdSet::len).sum(), self.answered.len())
    }

    /// Finds the open and the answered questions of a log, without deadlines.
    pub(crate) fn of(questions: &Log) -> Self {
        let mut asked = Self::default();
        questions.iter().for_each(|entry| asked.put(entry));
        asked
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.by_time.get_min().map(|(at, _)| *at)
    }

    /// Returns the expired questions, by time.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = Seq> {
        self.by_time.iter().take_while(move |(at, _)| *at <= now).map(|(_, seq)| *seq)
    }

    pub(crate) fn append(&mut self, first: Seq, items: &[Item]) {
        let questions = (first.0..).map(Seq).zip(items).filter(|(_, item)| is_open(item));
        self.open.extend(questions.map(|(seq, _)| seq));
    }

    /// Closes a question with an answer. A question that lost its answer is open again, without a deadline.
    pub(crate) fn put(&mut self, question: &Entry) {
        if is_open(&question.item) {
            self.open.insert(question.seq);
        } else {
            self.close(question.seq);
        }
        if let Some(agent) = answered_agent(question) {
            let mut answered = self.answered.get(agent).cloned().unwrap_or_default();
            answered.insert((question.revision, question.seq));
            self.answered.insert(agent.clone(), answered);
        }
    }

    /// Forgets the answer to a question that is about to change.
    fn forget_answer(&mut self, question: &Entry) {
        let Some(agent) = answered_agent(question) else { return };
        let Some(answered) = self.answered.get(agent) else { return };
        let answered = answered.without(&(question.revision, question.seq));
        if answered.is_empty() {
            self.answered.remove(agent);
        } else {
            self.answered.insert(agent.clone(), answered);
        }
    }

    fn remove(&mut self, ranges: &[SeqRange]) {
        for range in ranges {
            let gone: Vec<Seq> = self.open.range(range.first..=range.last).copied().collect();
            gone.into_iter().for_each(|question| self.close(question));
        }
    }

    /// Sets the deadline of the open questions in a range.
    pub(crate) fn wait(&mut self, range: SeqRange, until: &Awaited) {
        let open: Vec<Seq> = self.open.range(range.first..=range.last).copied().collect();
        for question in open {
            self.wait_for_ever(question);
            self.by_time.insert((until.expires_at, question));
            self.bytes += until.bytes();
            self.awaited.insert(question, until.clone());
        }
    }

    pub(crate) fn wait_for_ever(&mut self, question: Seq) {
        if let Some(until) = self.awaited.remove(&question) {
            self.by_time.remove(&(until.expires_at, question));
            self.bytes -= until.bytes();
        }
    }

    fn close(&mut self, question: Seq) {
        self.open.remove(&question);
        self.wait_for_ever(question);
    }
}

impl Awaited {
    fn bytes(&self) -> u64 {
        self.default.as_ref().map_or(0, |default| default.len() as u64)
    }
}

/// Returns the agent that asked a question, if the question got an answer since. One that was posted with its answer did
/// not.
fn answered_agent(question: &Entry) -> Option<&AgentName> {
    let is_answered = question.updated.is_some() && question.item.get("answer").is_some();
    question.agent.as_ref().filter(|_| is_answered)
}

impl Board {
    /// Edits a question, and finds whether it is open.
    pub(crate) fn edit_question(&mut self, question: Seq, edit: impl FnOnce(&mut Log)) {
        let [questions, ..] = &self.logs;
        if let Some(before) = questions.get(question) {
            self.asked.forget_answer(before);
        }
        self.edit_log(&LogName::Questions, edit);
        let [questions, ..] = &self.logs;
        if let Some(after) = questions.get(question) {
            self.asked.put(after);
        }
    }

    /// Forgets questions that are about to be removed.
    pub(crate) fn forget_questions(&mut self, ranges: &[SeqRange]) {
        let [questions, ..] = &self.logs;
        for range in ranges {
            let entries = questions.range(*range);
            entries.for_each(|entry| self.asked.forget_answer(entry));
        }
        self.asked.remove(ranges);
    }
}
