//! Stored forms of commits and bases, in JSON.
//!
//! The text of items is kept exactly. This is format 1, named by a frame's version byte. Once it is released it never
//! changes: a new member or kind of change makes a new format, which older servers refuse.

pub mod archive;
mod base;
mod change;
mod commit;
pub(crate) mod frame;
mod parts;
mod restored;
mod summary;
mod work;

pub use crate::packed::Body;
pub use base::{BaseReader, Unsound, base_parts};
pub use commit::{decode_commit, encode_body, encode_commit};
pub use summary::{decode_summary, encode_summary};

/// Stored bytes that are not in this format.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are not JSON of the expected shape. The parser's message is omitted, since it quotes values and
    /// errors are logged.
    #[error("invalid stored data at byte {at}")]
    Shape {
        /// The offset of the fault, from 1.
        at: usize,
    },
    /// An image refers to a missing item.
    #[error("an image refers to item {index} of {items}")]
    Image {
        /// The index of the item.
        index: usize,
        /// The number of items.
        items: usize,
    },
    /// An agent's profile has no status.
    #[error("an agent's profile has no status")]
    Profile,
    /// The parts of a stored state do not fit together.
    #[error("the state's revisions do not fit its document, or the document is invalid")]
    State,
    /// The summary has another version.
    #[error("the summary has another version")]
    Summary,
    /// The parts of a base do not make a board.
    #[error("the base is inconsistent")]
    Base(#[from] Unsound),
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape { at: error.column() }
    }
}

/// Reads a member that is present. Null is a value, since a client may have sent it.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
