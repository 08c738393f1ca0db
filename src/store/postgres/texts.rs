//! Texts, by PostgreSQL's own full text: a vector of words for each entry.

use std::fmt::Write as _;

use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::error::failed;
use super::sessions::count;
use crate::board::{Revision, SessionId};
use crate::store::{StoreError, TextChange, TextFound, TextQuery, TextStore};

/// The last place in a text that a vector of PostgreSQL tells.
const PLACE_MAX: u32 = 16_383;

/// Returns the words as PostgreSQL reads a vector.
fn vector(words: &[(String, u32)]) -> String {
    let mut out = String::new();
    for (word, place) in words {
        let space = if out.is_empty() { "" } else { " " };
        write!(out, "{space}{}:{}", quoted(word), place.min(&PLACE_MAX)).ok();
    }
    out
}

/// Returns the words as PostgreSQL reads a query.
fn query(wanted: &[(String, bool)], unwanted: &[(String, bool)]) -> String {
    let term = |(word, is_prefix): &(String, bool)| {
        format!("{}{}", quoted(word), if *is_prefix { ":*" } else { "" })
    };
    let excluded = unwanted.iter().map(|word| format!("!{}", term(word)));
    wanted.iter().map(term).chain(excluded).collect::<Vec<_>>().join(" & ")
}

/// Returns a word in quotation marks; within them only these two have a meaning.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

impl TextStore for PostgresStore {
    fn texts_behind(&self, max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let sql = "SELECT name FROM session LEFT JOIN text_position ON text_position.session = session.id \
            WHERE is_live AND text_position.revision IS DISTINCT FROM head \
                OR ended_at IS NOT NULL AND text_position.session IS NOT NULL LIMIT $1";
        self.connections.wait(async {
            let client = self.connections.reader().await?;
            let rows = client.query(sql, &[&count(max)]).await.map_err(failed)?;
            let names: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
            names.map_err(failed)
        })
    }

    fn texts_at(&self, session: SessionId) -> Result<Option<Revision>, StoreError> {
        let sql = "SELECT revision FROM text_position WHERE session = $1";
        self.connections.wait(async {
            let client = self.connections.reader().await?;
            let row = client.query_opt(sql, &[&session.0]).await.map_err(failed)?;
            let revision: Option<i64> =
                row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
            Ok(revision.map(|revision| Revision(revision.cast_unsigned())))
        })
    }

    fn change_texts(&self, changes: &[(SessionId, TextChange)]) -> Result<(), StoreError> {
        self.connections.wait(async {
            let mut client = self.connections.reader().await?;
            let transaction = client.transaction().await.map_err(failed)?;
            for (SessionId(session), change) in changes {
                match change {
                    TextChange::Forget => {
                        for table in ["text_entry", "text_position"] {
                            let sql = format!("DELETE FROM {table} WHERE session = $1");
                            transaction.execute(&sql, &[session]).await.map_err(failed)?;
                        }
                    }
                    TextChange::ClearLog(log) => {
                        let sql = "DELETE FROM text_entry WHERE session = $1 AND log = $2";
                        transaction.execute(sql, &[session, log]).await.map_err(failed)?;
                    }
                    TextChange::Remove { log, first, last } => {
                        let sql = "DELETE FROM text_entry \
                            WHERE session = $1 AND log = $2 AND seq BETWEEN $3 AND $4";
                        let (first, last) = (first.cast_signed(), last.cast_signed());
                        let parameters: [&(dyn ToSql + Sync); 4] = [session, log, &first, &last];
                        transaction.execute(sql, &parameters).await.map_err(failed)?;
                    }
                    TextChange::Put { log, seq, at, agent, words } => {
                        let sql = "INSERT INTO text_entry (session, log, seq, at, agent, words) \
                            VALUES ($1, $2, $3, $4, $5, $6::text::tsvector) \
                            ON CONFLICT (session, log, seq) DO UPDATE \
                            SET at = excluded.at, agent = excluded.agent, words = excluded.words";
                        let (seq, words) = (seq.cast_signed(), vector(words));
                        let parameters: [&(dyn ToSql + Sync); 6] =
                            [session, log, &seq, &at.0, agent, &words];
                        transaction.execute(sql, &parameters).await.map_err(failed)?;
                    }
                    TextChange::Reached(revision) => {
                        let sql = "INSERT INTO text_position (session, revision) VALUES ($1, $2) \
                            ON CONFLICT (session) DO UPDATE SET revision = excluded.revision";
                        let revision = revision.0.cast_signed();
                        transaction.execute(sql, &[session, &revision]).await.map_err(failed)?;
                    }
                }
            }
            transaction.commit().await.map_err(failed)
        })
    }

    fn find_texts(&self, sought: &TextQuery) -> Result<Vec<TextFound>, StoreError> {
        let words = query(&sought.wanted, &sought.unwanted);
        let since = sought.since.map(|since| since.0);
        let sql = "SELECT session.name, text_entry.log, text_entry.seq, \
                ts_rank(text_entry.words, $1::text::tsquery, 1)::float8 \
            FROM text_entry JOIN session ON session.id = text_entry.session \
            WHERE text_entry.words @@ $1::text::tsquery AND session.is_live \
                AND ($2::text IS NULL OR text_entry.agent = $2) AND ($3::bigint IS NULL OR text_entry.at >= $3) \
            ORDER BY text_entry.at DESC, text_entry.session, text_entry.log, text_entry.seq DESC LIMIT $4";
        self.connections.wait(async {
            let client = self.connections.reader().await?;
            let limit = count(sought.limit);
            let rows = client.query(sql, &[&words, &sought.agent, &since, &limit]).await;
            let read = |row: &tokio_postgres::Row| -> Result<TextFound, tokio_postgres::Error> {
                Ok(TextFound {
                    name: row.try_get(0)?,
                    log: row.try_get(1)?,
                    seq: row.try_get::<_, i64>(2)?.cast_unsigned(),
                    score: row.try_get(3)?,
                })
            };
            let found: Result<_, _> = rows.map_err(failed)?.iter().map(read).collect();
            found.map_err(failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        let words = [("it's".to_owned(), 1), ("a\\b".to_owned(), 20_000)];
        assert_eq!(vector(&words), r"'it''s':1 'a\\b':16383");
        let wanted = [("a".to_owned(), false), ("b".to_owned(), true)];
        assert_eq!(query(&wanted, &[("c".to_owned(), false)]), "'a' & 'b':* & !'c'");
    }
}
