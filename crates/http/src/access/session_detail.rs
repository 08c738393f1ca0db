//! The details of a session that its caller may see.
//!
//! Sizes include memories that the caller may not see, and would reveal the length of each step in them. Rounding does not
//! help: who may write pads the session until the rounded size changes. A tag reveals its inputs to anyone who tries all
//! values, so a tag is made only of what its caller is shown.

use serde::{Deserialize, Serialize};

use blackboard_api::tag::{Rendering, Resource};
use blackboard_auth::{Caller, Scope};
use blackboard_board::Extent;

/// The detail of a session that a caller sees, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sight {
    /// The revision only: the token may not read.
    Revision,
    /// All but sizes: some memories are hidden from the token.
    Sizeless,
    /// All of the session.
    Whole,
}

impl Sight {
    pub(crate) fn of(caller: &Caller) -> Self {
        if !caller.may(Scope::Read) {
            Self::Revision
        } else if caller.sees_all_memories().is_err() {
            Self::Sizeless
        } else {
            Self::Whole
        }
    }

    /// Returns what counts hidden memories too, if the caller sees them all.
    pub(crate) fn of_all<T>(self, value: T) -> Option<T> {
        (self == Self::Whole).then_some(value)
    }

    /// Returns the rendering of the session. Retention changes a session's description without a commit.
    pub(crate) fn rendering(self, now: Extent, history_bytes: u64) -> Rendering {
        let plain = Rendering::of(Resource::Session, now.version());
        match self {
            Self::Revision => plain,
            Self::Sizeless => plain.in_format(now.oldest.to_string()),
            Self::Whole => plain.in_format(format!("{} {history_bytes}", now.oldest)),
        }
    }
}
