//! Reasons for which PostgreSQL did not carry out a statement.

/// The reason for which PostgreSQL did not carry out a statement. Nothing of its transaction was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostgresFailure {
    /// It cannot serialize the transaction with another one.
    #[error("another transaction changed the same rows of the database; try again")]
    Serialization,
    /// The transaction and another one waited for each other.
    #[error("the database ended a deadlock with another transaction; try again")]
    Deadlock,
    /// Another transaction kept a lock for longer than our `lock_timeout`.
    #[error("another transaction has locked the rows of the database for too long; try again")]
    Locked,
    /// A timeout of the service, or an administrator, cancelled the statement.
    #[error(
        "the database cancelled the statement, by its statement_timeout or an administrator; try again"
    )]
    Cancelled,
    /// It lacks memory, or has reached a limit of its configuration.
    #[error(
        "the database lacks memory or has reached a limit of its configuration; try again later"
    )]
    Resources,
    /// It finds its own files damaged, or cannot read or write them.
    #[error(
        "PostgreSQL reports that its files are damaged or cannot be read; check its disk and its log, and fail over \
         to a standby or restore a backup with its own tools"
    )]
    Files,
    /// It does not store this row: a value has no place in its column.
    #[error("the database rejected the row; the server's log has the cause")]
    Row,
    /// Anything else, such as a table that is gone or a right that was revoked.
    #[error(
        "the database rejected the statement or the connection; the server's log has the cause"
    )]
    Statement,
}
