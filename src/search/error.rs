//! Errors of the index.

use std::io;

/// An error of the index.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The file is damaged, or is not an index of this version.
    #[error("the search index is damaged")]
    Damaged,
    /// The search was ended before it was done.
    #[error("the search was ended")]
    Ended,
    /// The index could not be read or written.
    #[error("the search index cannot be used")]
    Sqlite(#[source] rusqlite::Error),
    /// The file could not be removed.
    #[error("the search index cannot be removed")]
    Io(#[from] io::Error),
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged,
            _ => Self::Sqlite(error),
        }
    }
}
