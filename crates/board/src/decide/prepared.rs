//! Large values of a write, built and compressed before the write reaches the head of the queue.
//!
//! They are built against the board published at that time, and change only the cost of a decision, never its result.
//! A value that does not fit the current board is discarded.

use super::Draft;
use crate::command::{BoardCommand, Command, Edit, Transaction};
use crate::packed::PackedText;
use crate::state::{Made, State, StatePath};
use crate::{Board, Change, Json, StateChange};

/// The minimum size of a prepared value in bytes. A smaller value is built during the decision, in at most a
/// millisecond.
const PREPARED_BYTES_MIN: usize = 16 << 10;

/// The large values of a write.
#[derive(Debug, Default)]
pub struct Prepared(Vec<Part>);

#[derive(Debug)]
struct Part {
    path: StatePath,
    value: Json,
    how: How,
    made: Made,
    packed: Option<PackedText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Put,
    Merge,
}

impl Prepared {
    /// Builds a command's large values for this board, in time linear in their length.
    #[must_use]
    pub fn of(board: &Board, command: &Command) -> Self {
        let mut parts = Vec::new();
        each_large(command, &mut |path, value, how| {
            let made = match how {
                How::Put => board.state.make_put(path, value.text()),
                How::Merge => board.state.make_merged(path, value.text()),
            };
            let part = |made| {
                let packed = PackedText::of(value);
                Part { path: path.clone(), value: value.clone(), how, made, packed }
            };
            parts.extend(made.map(part));
        });
        Self(parts)
    }

    /// Returns the total size of a command's large values, in bytes.
    #[must_use]
    pub fn bytes(command: &Command) -> usize {
        let mut bytes = 0;
        each_large(command, &mut |_, value, _| bytes += value.text().len());
        bytes
    }

    /// Returns the values with their compressed forms, for the commit's body.
    pub fn packed(&self) -> Vec<&PackedText> {
        self.0.iter().filter_map(|part| part.packed.as_ref()).collect()
    }

    /// Returns true if there are no prepared values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if all values still fit this board.
    #[must_use]
    pub fn fits(&self, board: &Board) -> bool {
        self.0.iter().all(|part| board.state.fits(&part.path, &part.made))
    }

    /// Returns the value prepared for this change, if any.
    fn find(&self, how: How, path: &StatePath, value: &Json) -> Option<&Made> {
        let is = |part: &&Part| part.how == how && part.value.is(value) && part.path == *path;
        self.0.iter().find(is).map(|part| &part.made)
    }
}

impl Draft<'_> {
    /// Changes the state, using the prepared value if it fits.
    pub(super) fn change_state(&mut self, change: Change) {
        if self.takes_prepared(&change) {
            self.changes.push(change);
        } else {
            self.change(change);
        }
    }

    fn takes_prepared(&mut self, change: &Change) -> bool {
        let (prepared, revision) = (self.prepared, self.stamp.revision);
        let mut is_taken = false;
        if let Change::State(path, StateChange::Put { value, expires_at }) = change
            && let Some(made) = prepared.find(How::Put, path, value)
        {
            let take = |state: &mut State| {
                is_taken = state.take_put(path, made, *expires_at, revision);
            };
            self.board.edit_state(take);
        } else if let Change::State(path, StateChange::Merged { patch }) = change
            && let Some(made) = prepared.find(How::Merge, path, patch)
        {
            let take = |state: &mut State| is_taken = state.take_merged(path, made, revision);
            self.board.edit_state(take);
        }
        is_taken
    }
}

/// Visits the large values that a command sets in the state.
fn each_large(command: &Command, visit: &mut dyn FnMut(&StatePath, &Json, How)) {
    let mut large = |path: &StatePath, value: &Json, how| {
        if value.text().len() >= PREPARED_BYTES_MIN {
            visit(path, value, how);
        }
    };
    if let Command::State(path, Edit::Put { value, .. }) = command {
        large(path, value, How::Put);
    } else if let Command::State(path, Edit::Merge(patch)) = command {
        large(path, patch, How::Merge);
    } else if let Command::Board(BoardCommand::Replace { state: Some(value), .. }) = command {
        large(&StatePath::root(), value, How::Put);
    } else if let Command::Transact(transaction) = command {
        let Transaction { then, otherwise, .. } = &**transaction;
        then.iter().chain(otherwise).for_each(|command| each_large(command, visit));
    }
}
