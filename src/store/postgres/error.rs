//! How a failed statement or connection is told.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::store::{Outcome, PostgresError, StoreError};

/// The end of a wait for the server.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
pub(super) struct TimedOut(pub(super) std::time::Duration);

/// Returns the store's error for a failed statement or connection.
pub(super) fn failed(error: tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if is_no_room(code) => StoreError::Full,
        Some(code) if is_passing(code) => StoreError::Busy,
        Some(code) if !is_leaving(code) => PostgresError::Server(error).into(),
        Some(_) | None => StoreError::Unreachable(Box::new(error)),
    }
}

/// Returns the outcome of a transaction that the server rolled back.
pub(super) fn outcome_of(code: &SqlState) -> Outcome {
    if is_no_room(code) {
        Outcome::Full
    } else if is_passing(code) {
        Outcome::Busy
    } else if is_leaving(code) {
        Outcome::Unreachable
    } else {
        Outcome::Malformed
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

fn is_no_room(code: &SqlState) -> bool {
    [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code)
}

/// Returns true if another transaction was in the way.
pub(super) fn is_passing(code: &SqlState) -> bool {
    let passing = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
    ];
    passing.contains(code)
}

/// Returns true if the server ends, starts, or has become a standby.
fn is_leaving(code: &SqlState) -> bool {
    let leaving = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    leaving.contains(code) || code.code().starts_with("08")
}
