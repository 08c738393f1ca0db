//! Lists of sessions, by their rows.

use deadpool_postgres::Object;
use tokio_postgres::types::ToSql;

use super::append::label;
use super::error::failed;
use super::sessions::count as limit;
use super::statement::Statement;
use crate::{Among, RowQuery, StoreError, SummaryRow};
use blackboard_board::{Revision, SessionId};

/// Returns the names and summaries of sessions, in the order of names.
pub(super) async fn rows(
    client: &Object,
    sought: &RowQuery<'_>,
) -> Result<Vec<(Vec<u8>, SummaryRow)>, StoreError> {
    let among = match sought.among {
        Among::All => "is_live",
        Among::Asking => "asks",
        Among::Requesting => "requests",
        Among::OverBudget => "over_budget",
    };
    // A prefix after the name is itself the first name that counts.
    let includes = sought.includes_from || sought.from < sought.prefix;
    let from = if includes { ">=" } else { ">" };
    let mut sql =
        format!("SELECT name, id, head, summary FROM session WHERE {among} AND name {from} $1");
    let end = end_of(sought.prefix);
    let labels: Vec<String> =
        sought.labels.iter().map(|(name, value)| label(name, value)).collect();
    let from = sought.from.max(sought.prefix);
    let max = limit(sought.limit);
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&from, &max];
    if let Some(end) = &end {
        parameters.push(end);
        sql.push_str(&format!(" AND name < ${}", parameters.len()));
    }
    if !labels.is_empty() {
        parameters.push(&labels);
        sql.push_str(&format!(" AND is_live AND labels @> ${}::text[]", parameters.len()));
    }
    sql.push_str(" ORDER BY name LIMIT $2");
    let statement = client.prepare_cached(&sql).await.map_err(failed)?;
    let rows = client.query(&statement, &parameters).await.map_err(failed)?;
    let read = |row: &tokio_postgres::Row| -> Result<_, tokio_postgres::Error> {
        let revision = Revision(row.try_get::<_, i64>(2)?.cast_unsigned());
        let frame = row.try_get::<_, Option<Vec<u8>>>(3)?.unwrap_or_default();
        Ok((row.try_get(0)?, SummaryRow { session: SessionId(row.try_get(1)?), revision, frame }))
    };
    rows.iter().map(|row| read(row).map_err(failed)).collect()
}

/// Returns the first name after all with this prefix; `None` if there is none.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// Returns the number of sessions.
pub(super) async fn count(client: &Object) -> Result<usize, StoreError> {
    let count = Statement::plain("SELECT count(*) FROM session WHERE is_live");
    let count = count.value_prepared::<i64>(client).await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_prefix_end_before_the_next_one() {
        assert_eq!(end_of(b""), None);
        assert_eq!(end_of(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end_of(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(end_of(b"\xff"), None);
    }
}
