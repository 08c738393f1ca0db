//! Stored shapes of commits and bases: JSON, with the items' text as it is.
//!
//! This is format 4, which a frame's version byte names. One reader takes formats 1 to 4; bases exist since format 3. A
//! format never changes: a new member or kind of change is a new format, which older servers refuse.

pub mod archive;
mod base;
mod change;
mod commit;
pub(crate) mod frame;
mod parts;
mod restored;
mod summary;

pub use base::{BaseReader, Unsound, base_parts};
pub use commit::{decode_commit, encode_commit};
pub use summary::{decode_summary, encode_summary};

/// Stored bytes that are not in this format.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// They are no JSON of the expected shape. What the parser says of it is left out: it quotes values, and
    /// this goes into logs.
    #[error("invalid stored data at byte {at}")]
    Shape {
        /// The offset of the fault, from 1.
        at: usize,
    },
    /// An image belongs to an item that is not there.
    #[error("an image refers to item {index} of {items}")]
    Image {
        /// Which item.
        index: usize,
        /// How many there are.
        items: usize,
    },
    /// An agent's profile has no status.
    #[error("an agent's profile has no status")]
    Profile,
    /// The parts of a stored state do not belong together.
    #[error("the state's revisions do not fit its document, or the document is invalid")]
    State,
    /// A summary has another version.
    #[error("the summary has another version")]
    Summary,
    /// The parts of a base make no board.
    #[error("the base is unsound")]
    Base(#[from] Unsound),
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape { at: error.column() }
    }
}

/// Reads a present member. Null is a value too, which a client may have sent.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
