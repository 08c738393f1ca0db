//! The stored shape of commits and bases: JSON, with the items' text as it is.
//!
//! This is format 2, the one that a frame's version byte names. It has all of format 1, which had no
//! state, agents, claims, keys and expiries, so one reader takes the commits of both; no base was ever
//! stored in format 1. Neither ever changes: a new member or a new kind of change is a new format, since
//! an older server must refuse what it does not know.

mod base;
mod change;
mod commit;
mod parts;

pub use base::{decode_base, encode_base};
pub use commit::{decode_commit, encode_commit};

/// Stored bytes that are not in this format.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// They are no JSON of the expected shape.
    #[error("not in the stored format")]
    Shape(#[from] serde_json::Error),
    /// An image belongs to an item that is not there.
    #[error("an image belongs to item {index}, of {items}")]
    Image {
        /// Which item.
        index: usize,
        /// How many there are.
        items: usize,
    },
    /// What an agent says of itself has no status.
    #[error("an agent's profile has no status")]
    Profile,
    /// The parts of a stored state do not belong together.
    #[error("the revisions or lifetimes of the state do not fit its document")]
    State,
}

/// A member that is there, whatever it is: null too is a value that a client may have sent.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod golden_tests;
