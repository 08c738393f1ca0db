//! Detection of a pooler that gives the transactions of one connection to several sessions of PostgreSQL.
//!
//! In session mode, or without a pooler, a connection keeps its session, and no other connection ever has it. Nothing is
//! set on the connections before this is known: other clients of the pooler would get the setting.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::super::error::failed;
use crate::{PostgresError, StoreError};

/// The number of looks. In one, another client of the pooler may take the session that a connection has just left.
const LOOKS: usize = 8;

/// A session of PostgreSQL. The number of a process alone may come again, also on another machine of the address. No
/// statement is prepared, since not every pooler keeps those.
const SESSION: &str =
    "SELECT pid || ' ' || backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Refuses a pooler in transaction or statement mode, by two connections to it.
pub(super) async fn check(one: &Client, other: &Client) -> Result<(), StoreError> {
    for _ in 0..LOOKS {
        let own = session(one).await?;
        // A pooler that gives out sessions in turn gives the next one here.
        let same = session(one).await?;
        // One that gives out the last one first gives it to the other connection, and keeps it there meanwhile.
        other.batch_execute("BEGIN").await.map_err(not_begun)?;
        let others = session(other).await?;
        let again = if others == own { None } else { Some(session(one).await?) };
        other.batch_execute("ROLLBACK").await.map_err(failed)?;
        if same != own || again != Some(own) {
            return Err(PostgresError::TransactionPooler.into());
        }
    }
    Ok(())
}

fn not_begun(error: tokio_postgres::Error) -> StoreError {
    if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) {
        return PostgresError::StatementPooler(error).into();
    }
    failed(error)
}

async fn session(client: &Client) -> Result<String, StoreError> {
    let answer = client.simple_query(SESSION).await.map_err(failed)?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        // The enum is not exhaustive.
        SimpleQueryMessage::CommandComplete(_) | SimpleQueryMessage::RowDescription(_) | _ => None,
    });
    let row = row.and_then(|row| row.get(0));
    Ok(row.unwrap_or_default().to_owned())
}
