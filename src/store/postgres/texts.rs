//! Texts, by PostgreSQL's own full text: a vector of words for each entry.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

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

/// Entries to be put by one statement: the last text of each.
#[derive(Default)]
struct Puts<'a>(BTreeMap<(Uuid, &'a str, i64), Put<'a>>);

struct Put<'a> {
    at: i64,
    agent: Option<&'a str>,
    vector: String,
}

impl Puts<'_> {
    async fn flush(&mut self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let puts = std::mem::take(&mut self.0);
        if puts.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO text_entry (session, log, seq, at, agent, words) \
            SELECT session, log, seq, at, agent, words::tsvector \
            FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]) \
                AS put (session, log, seq, at, agent, words) \
            ON CONFLICT (session, log, seq) DO UPDATE \
            SET at = excluded.at, agent = excluded.agent, words = excluded.words";
        let (mut sessions, mut logs, mut seqs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut times, mut agents, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for ((session, log, seq), Put { at, agent, vector }) in puts {
            sessions.push(session);
            logs.push(log);
            seqs.push(seq);
            times.push(at);
            agents.push(agent);
            words.push(vector);
        }
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&sessions, &logs, &seqs, &times, &agents, &words];
        transaction.execute(sql, &parameters).await.map_err(failed).map(drop)
    }
}

/// Makes a change that puts nothing.
async fn change_one(
    transaction: &Transaction<'_>,
    session: Uuid,
    change: &TextChange,
) -> Result<(), StoreError> {
    let session: &(dyn ToSql + Sync) = &session;
    let done = match change {
        TextChange::Put { .. } => return Ok(()),
        TextChange::Forget => {
            let entries = "DELETE FROM text_entry WHERE session = $1";
            transaction.execute(entries, &[session]).await.map_err(failed)?;
            transaction.execute("DELETE FROM text_position WHERE session = $1", &[session]).await
        }
        TextChange::ClearLog(log) => {
            let sql = "DELETE FROM text_entry WHERE session = $1 AND log = $2";
            transaction.execute(sql, &[session, log]).await
        }
        TextChange::Remove { log, first, last } => {
            let sql =
                "DELETE FROM text_entry WHERE session = $1 AND log = $2 AND seq BETWEEN $3 AND $4";
            let (first, last) = (first.cast_signed(), last.cast_signed());
            transaction.execute(sql, &[session, log, &first, &last]).await
        }
        TextChange::Reached(revision) => {
            let sql = "INSERT INTO text_position (session, revision) VALUES ($1, $2) \
                ON CONFLICT (session) DO UPDATE SET revision = excluded.revision";
            transaction.execute(sql, &[session, &revision.0.cast_signed()]).await
        }
    };
    done.map_err(failed).map(drop)
}

impl TextStore for PostgresStore {
    fn texts_behind(&self, max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let sql = "SELECT name FROM session LEFT JOIN text_position ON text_position.session = session.id \
            WHERE is_live AND text_position.revision IS DISTINCT FROM head \
                OR ended_at IS NOT NULL AND text_position.session IS NOT NULL LIMIT $1";
        self.connections.read(async |client| {
            let rows = client.query(sql, &[&count(max)]).await.map_err(failed)?;
            let names: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
            names.map_err(failed)
        })
    }

    fn texts_at(&self, sessions: &[SessionId]) -> Result<HashMap<SessionId, Revision>, StoreError> {
        let sql = "SELECT session, revision FROM text_position WHERE session = ANY ($1)";
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        self.connections.read(async |client| {
            let rows = client.query(sql, &[&ids]).await.map_err(failed)?;
            let read = |row: &tokio_postgres::Row| -> Result<_, tokio_postgres::Error> {
                let revision = row.try_get::<_, i64>(1)?.cast_unsigned();
                Ok((SessionId(row.try_get(0)?), Revision(revision)))
            };
            let found: Result<_, _> = rows.iter().map(read).collect();
            found.map_err(failed)
        })
    }

    fn change_texts(&self, changes: &[(SessionId, TextChange)]) -> Result<(), StoreError> {
        self.connections.read(async |mut client| {
            let transaction = client.transaction().await.map_err(failed)?;
            let mut puts = Puts::default();
            for (SessionId(session), change) in changes {
                if let TextChange::Put { log, seq, at, agent, words } = change {
                    let put = Put { at: at.0, agent: agent.as_deref(), vector: vector(words) };
                    puts.0.insert((*session, log, seq.cast_signed()), put);
                    continue;
                }
                puts.flush(&transaction).await?;
                change_one(&transaction, *session, change).await?;
            }
            puts.flush(&transaction).await?;
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
        self.connections.read(async |client| {
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
