//! The meaning of a failed statement or connection, by its SQLSTATE.
//!
//! A code in no list is [`PostgresFailure::Statement`]: what PostgreSQL means is in the log, and nothing is guessed.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::{Outcome, PostgresError, PostgresFailure, StoreError};
use blackboard_error_chain::Chain;

/// The end of a wait for the server.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
pub(super) struct TimedOut(pub(super) std::time::Duration);

/// The meaning of an SQLSTATE.
enum Meaning {
    /// The disk of the service is full.
    Full,
    /// The service ends, starts, or takes no writes; or the connection is broken.
    Leaving,
    Failed(PostgresFailure),
}

/// Returns the store's error for a failed statement or connection.
pub(super) fn failed(error: tokio_postgres::Error) -> StoreError {
    let Some(code) = error.code() else { return StoreError::Unreachable(Box::new(error)) };
    match meaning(code) {
        Meaning::Full => StoreError::Full,
        Meaning::Leaving => StoreError::Unreachable(Box::new(error)),
        Meaning::Failed(failure) => {
            log(&error, failure);
            failure.into()
        }
    }
}

/// Returns the store's error for a connection that was not made. Its cause is for the operator who gave the address.
pub(super) fn not_connected(error: tokio_postgres::Error) -> StoreError {
    match error.code().map(meaning) {
        Some(Meaning::Failed(_)) => PostgresError::Server(error).into(),
        Some(Meaning::Full | Meaning::Leaving) | None => failed(error),
    }
}

/// Returns the outcome of a transaction that the server rolled back by this error.
pub(super) fn outcome_of(error: &tokio_postgres::Error, code: &SqlState) -> Outcome {
    match meaning(code) {
        Meaning::Full => Outcome::Full,
        Meaning::Leaving => Outcome::Unreachable,
        Meaning::Failed(failure) => {
            log(error, failure);
            Outcome::Failed(failure)
        }
    }
}

/// Returns the store's error for a connection that the pool cannot lend.
pub(super) fn not_lent(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => failed(error),
        PoolError::Timeout(_)
        | PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_) => StoreError::Unreachable(Box::new(error)),
    }
}

/// Logs why a statement failed. The text of a rejected row may quote what a client sent, so it is left out.
fn log(error: &tokio_postgres::Error, failure: PostgresFailure) {
    let Some(cause) = error.as_db_error() else { return };
    let code = cause.code().code();
    match failure {
        PostgresFailure::Row => {
            let (table, column, constraint) = (cause.table(), cause.column(), cause.constraint());
            let routine = cause.routine();
            tracing::error!(
                code,
                table,
                column,
                constraint,
                routine,
                "PostgreSQL rejected a row or a text"
            );
        }
        PostgresFailure::Files | PostgresFailure::Statement => {
            tracing::error!(code, error = %Chain(error), "PostgreSQL failed");
        }
        PostgresFailure::Serialization
        | PostgresFailure::Deadlock
        | PostgresFailure::Locked
        | PostgresFailure::Cancelled
        | PostgresFailure::Resources => {
            tracing::warn!(code, error = %Chain(error), "PostgreSQL ended a transaction");
        }
    }
}

/// Returns the meaning of an SQLSTATE.
fn meaning(code: &SqlState) -> Meaning {
    use PostgresFailure as Of;
    let (class, text) = (code.code().get(..2).unwrap_or_default(), code.code());
    let failure = match (class, text) {
        // disk_full
        (_, "53100") => return Meaning::Full,
        // read_only_sql_transaction; the timeouts of an idle and of a long transaction, which end the connection;
        // too_many_connections; an end of the service or of the connection, and a start
        (_, "25006" | "25P03" | "25P04" | "53300")
        | ("08", _)
        | (_, "57P01" | "57P02" | "57P03" | "57P04" | "57P05") => return Meaning::Leaving,
        (_, "40001") => Of::Serialization,
        (_, "40P01") => Of::Deadlock,
        // lock_not_available
        (_, "55P03") => Of::Locked,
        // query_canceled
        (_, "57014") => Of::Cancelled,
        // out_of_memory, configuration_limit_exceeded, too_complex and the like
        ("53", _) => Of::Resources,
        // io_error, undefined_file, duplicate_file; data_corrupted, index_corrupted
        ("58", _) | (_, "XX001" | "XX002") => Of::Files,
        // cardinality, data, integrity; beyond a limit of the program, such as that of a row in an index
        ("21" | "22" | "23" | "54", _) => Of::Row,
        _ => Of::Statement,
    };
    Meaning::Failed(failure)
}

/// Returns true if a transaction with this error may have been committed: a pooler reports a lost server in place of the
/// answers that did not arrive, be they to the commit or to a statement before it.
pub(super) fn leaves_open(code: &SqlState) -> bool {
    code.code().starts_with("08")
}
