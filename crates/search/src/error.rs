//! Errors of the index.

use std::io;

use rusqlite::ErrorCode;

/// An error of the index.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The file is damaged, or is not an index of this version.
    #[error("the search index is damaged")]
    Damaged,
    /// The search was ended before it was done.
    #[error("the search was ended")]
    Ended,
    /// The index was found damaged meanwhile, and is made anew.
    #[error("the search index is being rebuilt")]
    Closed,
    /// The index could not be read or written.
    #[error("the search index cannot be used")]
    Sqlite(#[source] rusqlite::Error),
    /// The file could not be removed.
    #[error("the search index cannot be removed")]
    Io(#[from] io::Error),
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            // No change of this server breaks a constraint of a sound index.
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => Self::Damaged,
            // A value of another type, or no row, in the place of one that this server wrote.
            None => Self::Damaged,
            Some(_) if is_schema_damaged(&error) => Self::Damaged,
            Some(_) => Self::Sqlite(error),
        }
    }
}

impl SearchError {
    /// Returns true if the file must be made anew after a statement without a client's text. A damaged file may have no
    /// other sign than that the statement fails.
    #[must_use]
    pub fn is_of_the_file(&self) -> bool {
        match self {
            Self::Damaged => true,
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::Unknown),
            Self::Ended | Self::Closed | Self::Io(_) => false,
        }
    }
}

fn is_schema_damaged(error: &rusqlite::Error) -> bool {
    // SQLite has no code of its own for it. No query causes it.
    error.to_string().contains("no such table")
}
