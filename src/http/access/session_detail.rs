//! The details of a session that its caller may see.
//!
//! Sizes include memories that the caller may not see, and would reveal the length of each step in them. A tag
//! reveals its inputs to anyone who tries all values, so a tag is made only of what its caller is shown.

use serde::{Deserialize, Serialize};

use crate::api::tag::{Rendering, Resource};
use crate::auth::{Caller, Scope};
use crate::board::Extent;

/// The step to which sizes are rounded up for a caller who may not see all memories, in bytes.
const SIZE_STEP: u64 = 1 << 20;

/// The detail of a session that a caller sees, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sight {
    /// The revision only: the token may not read.
    Revision,
    /// All but exact sizes: some memories are hidden from the token.
    Rounded,
    /// All of the session.
    Exact,
}

impl Sight {
    pub(crate) fn of(caller: &Caller) -> Self {
        if !caller.may(Scope::Read) {
            Self::Revision
        } else if caller.sees_all_memories().is_err() {
            Self::Rounded
        } else {
            Self::Exact
        }
    }

    /// Returns a size as the caller sees it; 0 if the caller sees only the revision.
    pub(crate) fn size(self, bytes: u64) -> u64 {
        match self {
            Self::Revision => 0,
            Self::Rounded => bytes.div_ceil(SIZE_STEP).saturating_mul(SIZE_STEP),
            Self::Exact => bytes,
        }
    }

    /// Returns the rendering of the session. Retention changes a session's description without a commit.
    pub(crate) fn rendering(self, now: Extent, history_bytes: u64) -> Rendering {
        let plain = Rendering::of(Resource::Session, now.version());
        match self {
            Self::Revision => plain,
            Self::Rounded | Self::Exact => {
                plain.in_format(format!("{} {}", now.oldest, self.size(history_bytes)))
            }
        }
    }
}
