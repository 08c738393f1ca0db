//! The schema: made at the first start, and checked at each.
//!
//! A server serves beside servers of the next version: a migration adds only what this version ignores.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::board::Epoch;
use crate::store::types::signing_key::SigningKey;
use crate::store::{PostgresError, StoreError};

/// The version that this program writes.
pub(super) const VERSION: i32 = 1;

const TABLES: &str = include_str!("schema.sql");

/// The store's identity and its key.
pub(super) struct Meta {
    pub(super) epoch: Epoch,
    pub(super) signing_key: SigningKey,
    pub(super) schema: String,
}

/// Refuses a server that would lose commits, and makes the schema if there is none.
pub(super) async fn open(client: &mut Client) -> Result<Meta, StoreError> {
    check(client).await?;
    let schema = schema(client).await?;
    let transaction = client.transaction().await.map_err(PostgresError::Server)?;
    // Servers that start at the same time take turns.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('blackboard schema ' || current_schema(), 0))";
    transaction.execute(lock, &[]).await.map_err(PostgresError::Server)?;
    let made = "SELECT to_regclass('meta') IS NOT NULL";
    let made: bool = transaction
        .query_one(made, &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(PostgresError::Server)?;
    if !made {
        transaction.batch_execute(TABLES).await.map_err(PostgresError::Server)?;
        let epoch = Uuid::new_v4().as_bytes().to_vec();
        let key = SigningKey::random_bytes().to_vec();
        let insert = "INSERT INTO meta (id, version, epoch, signing_key) VALUES (1, $1, $2, $3)";
        let insert = transaction.execute(insert, &[&VERSION, &epoch, &key]).await;
        insert.map_err(PostgresError::Server)?;
    }
    let meta = "SELECT version, epoch, signing_key FROM meta WHERE id = 1";
    let row = transaction.query_opt(meta, &[]).await.map_err(PostgresError::Server)?;
    let row = row.ok_or(StoreError::DamagedMeta)?;
    let read = || -> Result<(i32, Vec<u8>, Vec<u8>), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
    };
    let (found, epoch, key) = read().map_err(|_| StoreError::DamagedMeta)?;
    if !(VERSION..=VERSION + 1).contains(&found) {
        return Err(PostgresError::Schema { found, known: VERSION }.into());
    }
    transaction.commit().await.map_err(PostgresError::Server)?;
    let epoch = epoch.try_into().map_err(|_| StoreError::DamagedMeta)?;
    let signing_key = SigningKey::of(&key)?;
    Ok(Meta { epoch: Epoch(u128::from_be_bytes(epoch)), signing_key, schema })
}

async fn check(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('fsync') = 'on', pg_is_in_recovery(), \
        current_setting('server_encoding'), current_setting('transaction_read_only') = 'on'";
    let row = client.query_one(sql, &[]).await.map_err(PostgresError::Server)?;
    let read = || -> Result<(bool, bool, String, bool), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
    };
    let (syncs, is_standby, encoding, is_read_only) = read().map_err(PostgresError::Server)?;
    if !syncs {
        return Err(PostgresError::FsyncOff.into());
    }
    if is_standby || is_read_only {
        return Err(PostgresError::Standby.into());
    }
    if encoding != "UTF8" {
        return Err(PostgresError::Encoding { found: encoding }.into());
    }
    Ok(())
}

/// Returns the schema of the search path; the first that it names is created if none exists.
async fn schema(client: &Client) -> Result<String, StoreError> {
    let sql = "SELECT current_schema(), current_setting('search_path')";
    let row = client.query_one(sql, &[]).await.map_err(PostgresError::Server)?;
    let present: Option<String> = row.try_get(0).map_err(PostgresError::Server)?;
    if let Some(schema) = present {
        return Ok(schema);
    }
    let path: String = row.try_get(1).map_err(PostgresError::Server)?;
    let first = path.split(',').next().unwrap_or_default().trim().trim_matches('"').to_owned();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if first.is_empty() || !first.chars().all(is_plain) {
        return Err(PostgresError::NoSchema { schema: first }.into());
    }
    let create = format!("CREATE SCHEMA IF NOT EXISTS {first}");
    match client.batch_execute(&create).await {
        Ok(()) => Ok(first),
        // Two servers that start at the same time may both try.
        Err(error) if error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION) => {
            Ok(first)
        }
        Err(_) => Err(PostgresError::NoSchema { schema: first }.into()),
    }
}
