//! The schema: made at the first start, migrated and checked at each.
//!
//! A server serves beside servers of the next version: a migration adds only what this version ignores.

use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::connection::set_path;
use super::statement::{Statement, statement};
use crate::types::signing_key::SigningKey;
use crate::{PostgresError, StoreError};
use blackboard_board::Epoch;

/// The steps that make the schema, each from the format before it. The format is the number of steps.
pub(super) const STEPS: &[&str] = &[include_str!("schema.sql")];

/// The store's key, and where it is.
pub(super) struct Meta {
    pub(super) signing_key: SigningKey,
    pub(super) schema: String,
}

/// Refuses a server that would lose commits, and makes or migrates the schema.
pub(super) async fn open(client: &mut Client, steps: &[&str]) -> Result<Meta, StoreError> {
    check(client).await?;
    let schema = schema(client).await?;
    set_path(client, &schema).await?;
    let transaction = client.transaction().await.map_err(PostgresError::Server)?;
    // Servers that start at the same time take turns.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('blackboard schema ' || current_schema(), 0))";
    transaction.execute(lock, &[]).await.map_err(PostgresError::Server)?;
    let format = i32::try_from(steps.len()).unwrap_or(i32::MAX);
    let found = found(&transaction).await?;
    // A server of the format before the last may be running: its successor must not change the schema under it.
    if found.is_some_and(|found| found < 1 || found.abs_diff(format) > 1) {
        return Err(PostgresError::Schema { found: found.unwrap_or(0), known: format }.into());
    }
    let made = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    for step in steps.iter().skip(made) {
        transaction.batch_execute(step).await.map_err(PostgresError::Server)?;
    }
    if found.is_none() {
        let epoch = Uuid::new_v4().as_bytes().to_vec();
        let key = SigningKey::random_bytes().to_vec();
        let insert = statement! {
            "INSERT INTO meta (id, format, epoch, signing_key) VALUES (1, {format}, {epoch}, {key})",
            format, epoch, key
        };
        let inserted = transaction.execute(insert.text, &insert.values).await;
        inserted.map_err(PostgresError::Server)?;
    } else if found.is_some_and(|found| found < format) {
        let update = statement!("UPDATE meta SET format = {format} WHERE id = 1", format);
        let updated = transaction.execute(update.text, &update.values).await;
        updated.map_err(PostgresError::Server)?;
    }
    let meta = "SELECT signing_key FROM meta WHERE id = 1";
    let row = transaction.query_one(meta, &[]).await.map_err(PostgresError::Server)?;
    let key: Vec<u8> = row.try_get(0).map_err(|_| PostgresError::NoMeta)?;
    transaction.commit().await.map_err(PostgresError::Server)?;
    Ok(Meta { signing_key: SigningKey::of(&key)?, schema })
}

/// Returns an epoch as it is stored.
pub(super) fn epoch_of(stored: Vec<u8>) -> Result<Epoch, PostgresError> {
    let bytes = stored.try_into().map_err(|_| PostgresError::NoMeta)?;
    Ok(Epoch(u128::from_be_bytes(bytes)))
}

/// Draws a new epoch unless another one than `known` holds, and returns the one that holds then.
pub(super) async fn draw_epoch(client: &Client, known: Epoch) -> Result<Epoch, StoreError> {
    let (new, known) = (Uuid::new_v4().as_bytes().to_vec(), known.0.to_be_bytes().to_vec());
    let draw =
        statement!("UPDATE meta SET epoch = {new} WHERE id = 1 AND epoch = {known}", new, known);
    draw.execute(client).await?;
    let epoch = Statement::plain("SELECT epoch FROM meta WHERE id = 1").value(client).await?;
    Ok(epoch_of(epoch)?)
}

/// Returns the format of the schema, or `None` if there is none.
async fn found(transaction: &Transaction<'_>) -> Result<Option<i32>, StoreError> {
    let made = "SELECT to_regclass('meta') IS NOT NULL, EXISTS (SELECT FROM pg_attribute \
        WHERE attrelid = to_regclass('meta') AND attname = 'format' AND NOT attisdropped)";
    let made = transaction.query_one(made, &[]).await.map_err(PostgresError::Server)?;
    let is = |column| made.try_get::<_, bool>(column).map_err(PostgresError::Server);
    match (is(0)?, is(1)?) {
        (false, _) => return Ok(None),
        // Those had a version there.
        (true, false) => return Err(PostgresError::BeforeRelease.into()),
        (true, true) => {}
    }
    let format = "SELECT format FROM meta WHERE id = 1";
    let row = transaction.query_opt(format, &[]).await.map_err(PostgresError::Server)?;
    let row = row.ok_or(PostgresError::NoMeta)?;
    Ok(Some(row.try_get(0).map_err(|_| PostgresError::NoMeta)?))
}

async fn check(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('server_encoding'), \
        current_setting('transaction_read_only') = 'on'";
    let row = client.query_one(sql, &[]).await.map_err(PostgresError::Server)?;
    let read = || -> Result<(bool, String, bool), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
    };
    let (is_standby, encoding, is_read_only) = read().map_err(PostgresError::Server)?;
    if is_standby {
        return Err(PostgresError::Standby.into());
    }
    if is_read_only {
        return Err(PostgresError::ReadOnly.into());
    }
    if encoding != "UTF8" {
        return Err(PostgresError::Encoding { found: encoding }.into());
    }
    Ok(())
}

/// Returns the schema of the search path in which a store is, or the first that exists; the first that it names is created
/// if none exists.
async fn schema(client: &Client) -> Result<String, StoreError> {
    let sql = "SELECT coalesce((SELECT nspname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
            WHERE pg_class.oid = to_regclass('meta')), current_schema()::text), current_setting('search_path')";
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
