//! Open questions of a session and their deadlines.

use imbl::{OrdMap, OrdSet};

use crate::log::filter::is_open;
use crate::{Item, Log, Seq, SeqRange, Timestamp};

/// The maximum number of questions with a deadline in one write, since each stores its default.
pub const AWAITED_AT_ONCE_MAX: usize = 1_000;

/// The maximum size of a question's default, in bytes.
pub const DEFAULT_BYTES_MAX: usize = 64 << 10;

/// The questions without an answer.
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

    /// Finds the open questions of a log, without deadlines.
    pub(crate) fn of(questions: &Log) -> Self {
        let open = questions.iter().filter(|entry| is_open(&entry.item)).map(|entry| entry.seq);
        Self { open: open.collect(), ..Self::default() }
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
    pub(crate) fn update(&mut self, question: Seq, item: &Item) {
        if is_open(item) {
            self.open.insert(question);
        } else {
            self.close(question);
        }
    }

    pub(crate) fn remove(&mut self, ranges: &[SeqRange]) {
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
