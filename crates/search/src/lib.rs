//! Ranked search in texts: an index in a file of its own, its query language, and snippets.
//!
//! The index is made from the board and may be deleted at any time. It holds words and places, not the texts.

mod batch;
mod error;
mod fold;
mod index;
mod inversion;
mod letters;
mod log_key;
mod matching;
mod query;
mod reach;
mod segment;
mod snippet;
mod text;
mod words;

pub use batch::{Batch, Document, Position, SessionKey};
pub use error::SearchError;
pub use index::{EXAMINED_MAX, Index, Matches, RANKED_MAX, Ranked, SESSION_BYTES};
pub use log_key::{log_key, log_of};
pub use query::{InvalidQuery, QUERY_BYTES_MAX, Query, TERMS_MAX};
pub use reach::{Logs, Names, Reach};
pub use snippet::Snippets;
pub use text::{TEXT_BYTES_MAX, text_of};
pub use words::{Phrase, QueryWords, WORDS_VERSION, Word, Words};
