//! Statements: a text that names its parameters, and their values.

use std::fmt;

use deadpool_postgres::Object;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Client, Error, Row};

use super::error::failed;
use crate::StoreError;

/// The database's time in milliseconds since 1970.
pub(super) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Makes a [`Statement`] of a text, with `{name}` for each parameter, and of the names with their values: `name = value`,
/// or `name` alone for the variable. A name without a value does not compile, nor a value that the text does not name.
macro_rules! statement {
    (@value $name:ident) => { &$name };
    (@value $name:ident = $value:expr) => { &$value };
    ($text:expr $(, $name:ident $(= $value:expr)?)* $(,)?) => {
        $crate::postgres::statement::Statement {
            text: {
                static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                    let mut _numbers = 1..;
                    format!($text $(, $name = $crate::postgres::statement::Place::next(&mut _numbers))*)
                });
                TEXT.as_str()
            },
            values: vec![$(statement!(@value $name $(= $value)?)),*],
        }
    };
}
pub(super) use statement;

/// A statement with the values of its parameters.
pub(super) struct Statement<'a> {
    /// The text, with the number of each parameter.
    pub(super) text: &'static str,
    /// The values, in the order of the numbers.
    pub(super) values: Vec<&'a (dyn ToSql + Sync)>,
}

/// The place of a value, as a text of PostgreSQL names it.
pub(super) struct Place(Option<u32>);

impl Place {
    pub(super) fn next(numbers: &mut impl Iterator<Item = u32>) -> Self {
        Self(numbers.next())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.0.unwrap_or_default())
    }
}

impl Statement<'_> {
    /// A statement without parameters.
    pub(super) const fn plain(text: &'static str) -> Self {
        Self { text, values: Vec::new() }
    }

    /// Carries it out, and returns the number of rows that it touched.
    pub(super) async fn execute(&self, client: &Client) -> Result<u64, StoreError> {
        client.execute(self.text, &self.values).await.map_err(failed)
    }

    /// Returns its rows.
    pub(super) async fn rows(&self, client: &Client) -> Result<Vec<Row>, StoreError> {
        client.query(self.text, &self.values).await.map_err(failed)
    }

    /// Returns what `read` makes of each of its rows.
    pub(super) async fn read<T>(
        &self,
        client: &Client,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.rows(client).await?.iter().map(|row| read(row).map_err(failed)).collect()
    }

    /// Returns the only column of its only row.
    pub(super) async fn value<T: FromSqlOwned>(&self, client: &Client) -> Result<T, StoreError> {
        client.query_one_scalar(self.text, &self.values).await.map_err(failed)
    }

    /// Returns the only column of its row, if there is one.
    pub(super) async fn value_if_any<T: FromSqlOwned>(
        &self,
        client: &Client,
    ) -> Result<Option<T>, StoreError> {
        client.query_opt_scalar(self.text, &self.values).await.map_err(failed)
    }

    /// Returns its only row.
    pub(super) async fn row(&self, client: &Client) -> Result<Row, StoreError> {
        client.query_one(self.text, &self.values).await.map_err(failed)
    }

    /// Returns its row, if there is one.
    pub(super) async fn row_if_any(&self, client: &Client) -> Result<Option<Row>, StoreError> {
        client.query_opt(self.text, &self.values).await.map_err(failed)
    }

    /// Returns the only column of its only row; the connection prepares it once.
    pub(super) async fn value_prepared<T: FromSqlOwned>(
        &self,
        client: &Object,
    ) -> Result<T, StoreError> {
        let prepared = client.prepare_cached(self.text).await.map_err(failed)?;
        client.query_one_scalar(&prepared, &self.values).await.map_err(failed)
    }

    /// Carries it out as [`execute`](Self::execute) does; the connection prepares it once.
    pub(super) async fn execute_prepared(&self, client: &Object) -> Result<u64, StoreError> {
        let prepared = client.prepare_cached(self.text).await.map_err(failed)?;
        client.execute(&prepared, &self.values).await.map_err(failed)
    }

    /// Returns what `read` makes of each of its rows; the connection prepares it once.
    pub(super) async fn read_prepared<T>(
        &self,
        client: &Object,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.rows_prepared(client).await?;
        rows.iter().map(|row| read(row).map_err(failed)).collect()
    }

    /// Returns its rows; the connection prepares it once.
    pub(super) async fn rows_prepared(&self, client: &Object) -> Result<Vec<Row>, StoreError> {
        let prepared = client.prepare_cached(self.text).await.map_err(failed)?;
        client.query(&prepared, &self.values).await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_statement_numbers_its_parameters_by_their_names() {
        let (log, place) = ("a", 2_i64);
        let statement = statement!("x = {seq} OR {seq} = y AND z = {log}", log, seq = place);
        assert_eq!(statement.text, "x = $2 OR $2 = y AND z = $1");
        assert_eq!(format!("{:?}", statement.values), "[\"a\", 2]");
    }
}
