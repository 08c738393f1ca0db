//! Recorded calls and answers, and the model that decides which answers fit a board.
//!
//! The board here is a few numbers under `state`, each with its tag, and the requests and questions of `tasks.rs`. The
//! model knows nothing of revisions; those are `revisions.rs`'s.

use std::sync::Arc;
use std::time::Duration;

use super::tasks::{Task, Tasks, Told};

/// An entity tag as it stood in an answer.
pub(crate) type Tag = Arc<str>;

/// One version of a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    pub(crate) value: i64,
    pub(crate) tag: Tag,
}

/// What a client asked. A key is the place of a number among those of the board.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Read {
        key: usize,
    },
    Put {
        key: usize,
        value: i64,
    },
    /// A put on the condition that the number is still as it was seen; not there, if none was.
    Swap {
        key: usize,
        seen: Option<Shown>,
        value: i64,
    },
    Add {
        key: usize,
        by: i64,
    },
    Delete {
        key: usize,
    },
    /// If `asked` is `expected`, `key` becomes `value`; else `by` is added to it.
    Transact {
        asked: usize,
        expected: Option<i64>,
        key: usize,
        value: i64,
        by: i64,
    },
    Task(Task),
}

impl Op {
    /// The number that it shows or writes.
    pub(crate) fn key(&self) -> Option<usize> {
        match *self {
            Self::Read { key }
            | Self::Put { key, .. }
            | Self::Swap { key, .. }
            | Self::Add { key, .. }
            | Self::Delete { key }
            | Self::Transact { key, .. } => Some(key),
            Self::Task(_) => None,
        }
    }
}

/// What it was told.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// How the number is, if there is one: the answer of a read, of a refused swap (with what stood in
    /// its way), and of a deletion of nothing.
    Shown(Option<Shown>),
    /// A put or a swap was done.
    Put {
        made: bool,
        tag: Tag,
    },
    Added {
        made: bool,
        shown: Shown,
    },
    Deleted,
    /// The condition of the transaction held.
    Then,
    /// It did not, and this is the sum.
    Else(i64),
    Task(Told),
    /// The connection was lost: it may have happened, then or later, or never.
    Unknown,
}

impl Outcome {
    /// Whether it says that something was written.
    pub(crate) fn committed(&self) -> bool {
        match self {
            Self::Put { .. } | Self::Added { .. } | Self::Deleted | Self::Then | Self::Else(_) => {
                true
            }
            Self::Task(told) => told.committed(),
            Self::Shown(_) | Self::Unknown => false,
        }
    }
}

/// One request with its answer.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    pub(crate) outcome: Outcome,
    /// That of its commit, or the one that it shows; 0 where the outcome is unknown.
    pub(crate) revision: u64,
    pub(crate) began: Duration,
    /// `None` where the outcome is unknown.
    pub(crate) ended: Option<Duration>,
}

/// A number with its tag, which a transaction does not tell: the next to be shown it tells us.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) value: i64,
    pub(crate) tag: Option<Tag>,
}

/// The numbers, by key, and the tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Board {
    numbers: Vec<Option<Cell>>,
    tasks: Tasks,
}

impl Board {
    pub(crate) fn empty(keys: usize) -> Self {
        Self { numbers: vec![None; keys], tasks: Tasks::default() }
    }

    pub(crate) fn cell(&self, key: usize) -> Option<&Cell> {
        self.numbers[key].as_ref()
    }

    /// The board after that call, if its answer is one that this board can give.
    pub(crate) fn step(mut self, op: &Op, outcome: &Outcome) -> Option<Self> {
        if let (Op::Task(task), Outcome::Task(told)) = (op, outcome) {
            return self.tasks.step(*task, told).map(|()| self);
        }
        // Tasks are asked for until there is an answer.
        let key = op.key()?;
        match (op, outcome) {
            (Op::Read { .. }, Outcome::Shown(shown)) => self.agreed(key, shown.as_ref()),
            (Op::Delete { .. }, Outcome::Shown(None)) => self.agreed(key, None),
            (Op::Swap { seen, .. }, Outcome::Shown(present)) if seen != present => {
                self.agreed(key, present.as_ref())
            }
            (Op::Put { value, .. }, Outcome::Put { made, tag }) => {
                (*made == self.is_absent(key)).then(|| self.put(key, *value, Some(tag)))
            }
            (Op::Swap { seen, value, .. }, Outcome::Put { made, tag }) => {
                let fits = self.holds(key, seen.as_ref()) && *made == self.is_absent(key);
                fits.then(|| self.put(key, *value, Some(tag)))
            }
            (Op::Add { by, .. }, Outcome::Added { made, shown }) => {
                let fits = self.sum(key, *by) == shown.value && *made == self.is_absent(key);
                fits.then(|| self.put(key, shown.value, Some(&shown.tag)))
            }
            (Op::Transact { value, .. }, Outcome::Then) => {
                self.grants(op).then(|| self.put(key, *value, None))
            }
            (Op::Transact { by, .. }, Outcome::Else(value)) => {
                let fits = !self.grants(op) && self.sum(key, *by) == *value;
                fits.then(|| self.put(key, *value, None))
            }
            (Op::Delete { .. }, Outcome::Deleted | Outcome::Unknown) => {
                (!self.is_absent(key)).then(|| self.with(key, None))
            }
            (_, Outcome::Unknown) => self.unseen(op),
            _ => None,
        }
    }

    /// The board after a call had an effect that nobody was told.
    fn unseen(self, op: &Op) -> Option<Self> {
        let key = op.key()?;
        match op {
            Op::Read { .. } | Op::Delete { .. } | Op::Task(_) => None,
            Op::Put { value, .. } => Some(self.put(key, *value, None)),
            Op::Swap { seen, value, .. } => {
                self.holds(key, seen.as_ref()).then(|| self.put(key, *value, None))
            }
            Op::Transact { value, .. } if self.grants(op) => Some(self.put(key, *value, None)),
            Op::Transact { by, .. } | Op::Add { by, .. } => {
                let sum = self.sum(key, *by);
                Some(self.put(key, sum, None))
            }
        }
    }

    fn is_absent(&self, key: usize) -> bool {
        self.cell(key).is_none()
    }

    /// Whether the condition of a transaction holds.
    fn grants(&self, op: &Op) -> bool {
        match op {
            Op::Transact { asked, expected, .. } => {
                self.cell(*asked).map(|cell| cell.value) == *expected
            }
            Op::Read { .. }
            | Op::Put { .. }
            | Op::Swap { .. }
            | Op::Add { .. }
            | Op::Delete { .. }
            | Op::Task(_) => true,
        }
    }

    /// Whether the number is as it was shown. Where its tag is not known, its value decides.
    fn holds(&self, key: usize, shown: Option<&Shown>) -> bool {
        match (self.cell(key), shown) {
            (Some(Cell { value, tag }), Some(shown)) => {
                *value == shown.value && tag.as_ref().is_none_or(|tag| *tag == shown.tag)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Nothing changes but that the number's tag is known from now on.
    fn agreed(self, key: usize, shown: Option<&Shown>) -> Option<Self> {
        let known = |shown: &Shown| Cell { value: shown.value, tag: Some(Arc::clone(&shown.tag)) };
        self.holds(key, shown).then(|| self.with(key, shown.map(known)))
    }

    fn sum(&self, key: usize, by: i64) -> i64 {
        self.cell(key).map_or(0, |cell| cell.value) + by
    }

    fn put(self, key: usize, value: i64, tag: Option<&Tag>) -> Self {
        self.with(key, Some(Cell { value, tag: tag.map(Arc::clone) }))
    }

    fn with(mut self, key: usize, cell: Option<Cell>) -> Self {
        self.numbers[key] = cell;
        self
    }
}
