//! Failed exchanges.

use std::time::Duration;

use super::connector::ConnectError;

/// A request without a whole answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection was made, so nothing was sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Nothing came from the server for this time.
    #[error("the server was silent for {0:?}")]
    Silent(Duration),
    /// The connection ended early, or what came is not HTTP.
    #[error("the connection broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer, or one event of it, is too long.
    #[error("the answer has more than {max} bytes")]
    TooLong {
        /// The bound.
        max: usize,
    },
    /// An event is not UTF-8.
    #[error("the answer is not UTF-8")]
    Encoding,
}

impl Error {
    /// Returns true if nothing was sent because nothing listened, as while a server restarts.
    pub(super) const fn is_refused(&self) -> bool {
        matches!(self, Self::Connect(ConnectError::Refused))
    }
}
