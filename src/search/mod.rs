//! Ranked search in texts: an index in a file of its own, its query language, and snippets.
//!
//! The index is made from the board and may be deleted at any time. It holds words and places, not the texts.

mod error;
mod index;
mod query;
mod snippet;
mod text;
mod words;

pub use error::SearchError;
pub(crate) use index::SESSION_BYTES;
pub use index::{
    Accept, Batch, Document, EXAMINED_MAX, Index, Position, RANKED_MAX, Ranked, SessionKey,
};
pub use query::{InvalidQuery, QUERY_BYTES_MAX, Query, TERMS_MAX};
pub use snippet::snippets;
pub use text::{TEXT_BYTES_MAX, text_of};
pub use words::{Word, WordQuery, Words};
