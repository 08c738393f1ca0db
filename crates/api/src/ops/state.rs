//! The state: read a value, and set, patch, add to, append to or remove one.

use crate::intake::fields::value_of;
use crate::intake::input::{Input as _, Members, inputs, unions};
use crate::intake::kinds::{Amount, Elements};
use crate::refusal::{Refusal, no_value};
use crate::tag::{Resource, Tag, version};
use blackboard_board::json::DEPTH_MAX;
use blackboard_board::{
    Board, Command, Edit, Epoch, Extent, Json, StatePath, StateValue, Ttl, Version,
};
use blackboard_service::{ServiceError, SessionHandle};

inputs! {
    /// Adds to a number.
    Adding as "AddBody" {
        /// The amount.
        add "add": Amount as needed,
    }

    /// Appends elements to an array.
    Appending as "AppendBody" {
        /// The elements.
        append "append": Elements as needed,
    }
}

unions! {
    /// One of two operations.
    Changing as "ChangeBody" {
        /// Adds to a number; an absent value counts as 0.
        Add(Adding),
        /// Appends elements to an array; an absent array is created.
        Append(Appending),
    }
}

/// The remedy for a merge patch that was sent as an operation.
const TO_MERGE: &str = "to merge members, send Content-Type: application/merge-patch+json";

impl Changing {
    /// Reads a body that has one of the two.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let names = [Adding::NAMES, Appending::NAMES].concat();
        let mut members = Members::of("", text)?;
        members.are_of(&names).map_err(|refusal| refusal.hint(TO_MERGE))?;
        members.is_one_of(&names)?;
        let is_none = members.is_empty();
        let read = Self::take(&mut members);
        read.map_err(|refusal| if is_none { refusal.hint(TO_MERGE) } else { refusal })
    }

    /// Returns the command for the value at a path.
    pub fn of(self, path: StatePath) -> Result<Command, Refusal> {
        let edit = match self {
            Self::Add(Adding { add }) => Edit::Add(add),
            Self::Append(Appending { append }) => {
                Edit::Append(append.elements(levels_max(&path).saturating_sub(1))?)
            }
        };
        Ok(Command::State(path, edit))
    }
}

/// Returns the maximum depth of a value at a path.
fn levels_max(path: &StatePath) -> usize {
    DEPTH_MAX.saturating_sub(path.len())
}

/// Returns the command that sets a value, which stands at this pointer.
pub fn put(path: StatePath, at: &str, value: &str, ttl: Option<Ttl>) -> Result<Command, Refusal> {
    let value = value_of(value, levels_max(&path), at)?;
    Ok(Command::State(path, Edit::Put { value, ttl }))
}

/// Returns the command that applies a merge patch, which stands at this pointer, to a value.
pub fn merge(path: StatePath, at: &str, patch: &str) -> Result<Command, Refusal> {
    let patch = value_of(patch, levels_max(&path), at)?;
    Ok(Command::State(path, Edit::Merge(patch)))
}

/// Returns the command that adds to a number.
pub fn add(path: StatePath, amount: Json) -> Command {
    Command::State(path, Edit::Add(amount))
}

/// Returns the command that removes a value.
pub fn remove(path: StatePath) -> Command {
    Command::State(path, Edit::Remove)
}

/// Returns the value at a path, which must be there.
pub fn value(board: &Board, path: &StatePath) -> Result<StateValue, Refusal> {
    board.state().value(path).ok_or_else(|| no_value(path, board.revision()))
}

/// Returns the tag of the value at a path, or of the whole state if the value is absent.
pub fn tag(epoch: Epoch, board: &Board, path: &StatePath) -> Tag {
    let (changed, path) = match board.state().value(path) {
        Some(value) => (value.changed(), path.clone()),
        None => (board.state().changed(), StatePath::root()),
    };
    Tag::new(epoch, board.at_version(changed), &Resource::State(path))
}

/// Returns the version that a tag of the value at a path stands for.
pub fn version_of(
    session: &SessionHandle,
    path: &StatePath,
    tag: &str,
) -> Result<Option<Version>, ServiceError> {
    let (epoch, resource) = (session.service().epoch(), Resource::State(path.clone()));
    let of = |now: Extent| version(tag, false, epoch, now.session, &resource);
    Ok(session.extent()?.and_then(of))
}
