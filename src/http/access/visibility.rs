//! Sight of a session: the detail that a caller's token may see.
//!
//! Sizes count memories that a caller may not see, and would tell how long each step in them is. A tag tells what it
//! is made of to anyone who tries all values, so it is made of what its caller is shown.

use serde::{Deserialize, Serialize};

use crate::auth::{Caller, Scope};
use crate::board::Extent;
use crate::http::response::tag::{Rendering, Resource};

/// To whom sizes are told in such steps, who may not see all that they are of.
const SIZE_STEP: u64 = 1 << 20;

/// How much of a session a caller is told, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sight {
    /// Its revision: the token may not read.
    Revision,
    /// All but its exact sizes: some memories are hidden from the token.
    Rounded,
    /// All of it.
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

    /// A size as it is told; not at all where only the revision is.
    pub(crate) fn size(self, bytes: u64) -> u64 {
        match self {
            Self::Revision => 0,
            Self::Rounded => bytes.div_ceil(SIZE_STEP).saturating_mul(SIZE_STEP),
            Self::Exact => bytes,
        }
    }

    /// The session as it is shown. Its description may change without a commit, by what is kept of its history.
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
