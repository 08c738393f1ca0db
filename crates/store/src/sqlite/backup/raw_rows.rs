//! Raw rows, damaged ones too, copied between databases of one schema.

use std::ops::ControlFlow;

use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row, params_from_iter};

/// The columns of a row.
#[derive(Debug)]
pub(crate) struct RawRow(Vec<Value>);

impl RawRow {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let columns = row.as_ref().column_count();
        (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the row's length in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |value: &Value| match value {
            Value::Blob(bytes) => bytes.len(),
            Value::Text(text) => text.len(),
            Value::Null | Value::Integer(_) | Value::Real(_) => 8,
        };
        self.0.iter().map(bytes).sum()
    }

    /// Returns the number in a column, 0 if it has none.
    pub(crate) fn number(&self, column: usize) -> u64 {
        match self.0.get(column) {
            Some(Value::Integer(number)) => number.cast_unsigned(),
            Some(Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_)) | None => 0,
        }
    }

    /// Returns the bytes in a column, empty if it has none.
    pub(crate) fn blob(&self, column: usize) -> &[u8] {
        match self.0.get(column) {
            Some(Value::Blob(bytes)) => bytes,
            Some(Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_)) | None => &[],
        }
    }

    pub(crate) fn write(&self, connection: &Connection, table: &str) -> rusqlite::Result<()> {
        let places = vec!["?"; self.0.len()].join(", ");
        connection
            .prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?
            .execute(params_from_iter(&self.0))
            .map(drop)
    }
}

/// Selects rows unchanged, until `take` breaks.
pub(crate) fn select(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    take: &mut dyn FnMut(RawRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    while let Some(row) = rows.next()? {
        if take(RawRow::read(row)?).is_break() {
            break;
        }
    }
    Ok(())
}
