//! Texts, by PostgreSQL's own full text: a vector of words for each entry.
//!
//! Each word stands behind a mark of its session and log. So the index keeps the words of each log apart, and a query reads
//! those of its logs alone: neither its answer nor its work depends on other logs.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use deadpool_postgres::Transaction;
use sha2::{Digest as _, Sha256};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::PostgresStore;
use super::error::failed;
use super::sessions::count;
use super::statement::statement;
use crate::{StoreError, TextChange, TextFound, TextLog, TextQuery, TextStore};
use blackboard_board::{Revision, SessionId};

/// The last place in a text that a vector of PostgreSQL tells.
const PLACE_MAX: u32 = 16_383;

/// The maximum size of a vector in bytes: PostgreSQL rejects one of 1 MiB. Further words are not found.
const VECTOR_BYTES_MAX: usize = 1_000_000;

/// The bytes that a vector has of a word besides its letters, and of each of its places, at most.
const WORD_BYTES: usize = 3;
const PLACE_BYTES: usize = 2;

/// The number of places of a word that a vector keeps: the first ones.
const PLACES_MAX: usize = 255;

/// The bits of a position that have the revision. Those above have the version of the words, so that a server of another version,
/// which may lead before or after, finds that it has to make them anew.
const REVISION_BITS: u32 = 48;

/// The characters of a mark, of 6 bits each. Two logs with one mark cost each other time, but find nothing of each other.
const MARK_LETTERS: usize = 11;

/// Stands for the mark in a query. No word has it.
const MARK: char = '\u{1}';

/// Returns the mark of a log of a session.
fn mark(session: Uuid, log: &str) -> String {
    let mut digest = Sha256::new_with_prefix(session.as_bytes());
    digest.update(log);
    let mut out = URL_SAFE_NO_PAD.encode(digest.finalize());
    out.truncate(MARK_LETTERS);
    out.push(' ');
    out
}

/// Returns a position as it is stored.
const fn position(revision: u64, version: i64) -> i64 {
    revision.cast_signed() + (version << REVISION_BITS)
}

/// Returns the revision of a stored position; 0 if its words are of another version.
const fn revision_at(position: i64, version: i64) -> Revision {
    let is_of_it = position >> REVISION_BITS == version;
    Revision(if is_of_it { (position - (version << REVISION_BITS)).cast_unsigned() } else { 0 })
}

/// Returns the words as PostgreSQL reads a vector, each once: it counts what it reads against the size.
fn vector(mark: &str, words: &[(String, u32)]) -> String {
    let (mut known, mut bytes) = (BTreeMap::<&str, Vec<u32>>::new(), 0);
    for (word, place) in words {
        let is_new = !known.contains_key(word.as_str());
        let more = PLACE_BYTES + if is_new { mark.len() + word.len() + WORD_BYTES } else { 0 };
        if bytes + more > VECTOR_BYTES_MAX {
            break;
        }
        let (places, place) = (known.entry(word).or_default(), *place.min(&PLACE_MAX));
        if places.len() < PLACES_MAX && places.last() != Some(&place) {
            places.push(place);
            bytes += more;
        }
    }
    let mut out = String::new();
    for (word, places) in known {
        let space = if out.is_empty() { "" } else { " " };
        write!(out, "{space}{}", quoted(mark, word)).ok();
        for (at, place) in places.iter().enumerate() {
            write!(out, "{}{place}", if at == 0 { ':' } else { ',' }).ok();
        }
    }
    out
}

/// Returns the words as PostgreSQL reads a query, with [`MARK`] for the mark of a log.
fn query(wanted: &[(String, bool)], unwanted: &[(String, bool)]) -> String {
    let mark = String::from(MARK);
    let term = |(word, is_prefix): &(String, bool)| {
        format!("{}{}", quoted(&mark, word), if *is_prefix { ":*" } else { "" })
    };
    let excluded = unwanted.iter().map(|word| format!("!{}", term(word)));
    wanted.iter().map(term).chain(excluded).collect::<Vec<_>>().join(" & ")
}

/// Returns a word behind a mark, in quotation marks; within them only these two have a meaning.
fn quoted(mark: &str, word: &str) -> String {
    format!("'{mark}{}'", word.replace('\\', "\\\\").replace('\'', "''"))
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
        let put_entries = statement! {
            "INSERT INTO text_entry (session, log, seq, at, agent, words) \
             SELECT session, log, seq, at, agent, words::tsvector \
             FROM unnest({sessions}::uuid[], {logs}::text[], {seqs}::bigint[], {times}::bigint[], {agents}::text[], \
                {words}::text[]) AS put (session, log, seq, at, agent, words) \
             ON CONFLICT (session, log, seq) DO UPDATE \
             SET at = excluded.at, agent = excluded.agent, words = excluded.words",
            sessions, logs, seqs, times, agents, words
        };
        put_entries.execute(transaction.client()).await?;
        let put_logs = statement! {
            "INSERT INTO text_log (session, log) SELECT DISTINCT session, log \
             FROM unnest({sessions}::uuid[], {logs}::text[]) AS put (session, log) ON CONFLICT DO NOTHING",
            sessions, logs
        };
        put_logs.execute(transaction.client()).await.map(drop)
    }
}

/// Makes a change that puts nothing.
async fn change_one(
    transaction: &Transaction<'_>,
    session: Uuid,
    change: &TextChange,
) -> Result<(), StoreError> {
    let client = transaction.client();
    let change = match change {
        TextChange::Put { .. } => return Ok(()),
        TextChange::Forget => {
            for delete in [
                statement!("DELETE FROM text_entry WHERE session = {session}", session),
                statement!("DELETE FROM text_log WHERE session = {session}", session),
            ] {
                delete.execute(client).await?;
            }
            statement!("DELETE FROM text_position WHERE session = {session}", session)
                .execute(client)
                .await
        }
        TextChange::ClearLog(log) => {
            let clear = statement! {
                "DELETE FROM text_entry WHERE session = {session} AND log = {log}",
                session, log = *log
            };
            clear.execute(client).await
        }
        TextChange::Remove { log, first, last } => {
            let (first, last) = (first.cast_signed(), last.cast_signed());
            let remove = statement! {
                "DELETE FROM text_entry \
                 WHERE session = {session} AND log = {log} AND seq BETWEEN {first} AND {last}",
                session, log = *log, first, last
            };
            remove.execute(client).await
        }
        TextChange::Reached { revision, version } => {
            let position = position(revision.0, *version);
            let reached = statement! {
                "INSERT INTO text_position (session, revision) VALUES ({session}, {position}) \
                 ON CONFLICT (session) DO UPDATE SET revision = excluded.revision",
                session, position
            };
            reached.execute(client).await
        }
    };
    change.map(drop)
}

impl TextStore for PostgresStore {
    fn texts_behind(&self, version: i64, max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let (version, max) = (position(0, version), count(max));
        let behind = statement! {
            "SELECT name FROM session LEFT JOIN text_position ON text_position.session = session.id \
             WHERE is_live AND text_position.revision IS DISTINCT FROM head + {version} \
                OR ended_at IS NOT NULL AND text_position.session IS NOT NULL LIMIT {max}",
            version, max
        };
        self.connections.read(async |client| behind.read(&client, |row| row.try_get(0)).await)
    }

    fn texts_at(
        &self,
        version: i64,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, Revision>, StoreError> {
        let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        let positions = statement! {
            "SELECT session, revision FROM text_position WHERE session = ANY ({ids})",
            ids
        };
        let found = self.connections.read(async |client| {
            let read = positions.read(&client, |row| {
                Ok((SessionId(row.try_get(0)?), revision_at(row.try_get(1)?, version)))
            });
            read.await
        });
        found.map(HashMap::from_iter)
    }

    fn change_texts(&self, changes: &[(SessionId, TextChange)]) -> Result<(), StoreError> {
        self.connections.read(async |mut client| {
            let transaction = client.transaction().await.map_err(failed)?;
            let mut puts = Puts::default();
            for (SessionId(session), change) in changes {
                if let TextChange::Put { log, seq, at, agent, words } = change {
                    let vector = vector(&mark(*session, log), words);
                    let put = Put { at: at.0, agent: agent.as_deref(), vector };
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

    fn text_logs(
        &self,
        names: &[(Vec<u8>, Vec<u8>)],
        logs: &[(String, String)],
    ) -> Result<Vec<TextLog>, StoreError> {
        let (first_names, behind_names): (Vec<_>, Vec<_>) = names.iter().cloned().unzip();
        let (first_logs, behind_logs): (Vec<_>, Vec<_>) = logs.iter().cloned().unzip();
        let in_ranges = statement! {
            "SELECT session.id, session.name, text_log.log \
             FROM unnest({first_names}::bytea[], {behind_names}::bytea[]) AS names (first, behind) \
             JOIN session ON session.name >= names.first AND session.name < names.behind \
             CROSS JOIN unnest({first_logs}::text[], {behind_logs}::text[]) AS logs (first, behind) \
             JOIN text_log ON text_log.session = session.id \
                AND text_log.log >= logs.first AND text_log.log < logs.behind \
             WHERE session.is_live ORDER BY session.name, text_log.log",
            first_names, behind_names, first_logs, behind_logs
        };
        self.connections.read(async |client| {
            let logs = in_ranges.read(&client, |row| {
                let session = SessionId(row.try_get(0)?);
                Ok(TextLog { session, name: row.try_get(1)?, log: row.try_get(2)? })
            });
            logs.await
        })
    }

    fn find_texts(&self, sought: &TextQuery) -> Result<Option<Vec<TextFound>>, StoreError> {
        let words = query(&sought.wanted, &sought.unwanted);
        let since = sought.since.map(|since| since.0);
        let (mut sessions, mut logs) = (Vec::new(), Vec::new());
        let (mut authors, mut queries) = (Vec::new(), Vec::new());
        for (SessionId(session), log, author) in &sought.logs {
            sessions.push(*session);
            logs.push(log);
            authors.push(author.as_deref());
            queries.push(words.replace(MARK, &mark(*session, log)));
        }
        let limit = count(sought.limit);
        // Compared in a way that no other index serves, so that the words' own is used in every case.
        let best = statement! {
            "SELECT logs.place, entry.seq, entry.score \
             FROM unnest({sessions}::uuid[], {logs}::text[], {authors}::text[], {queries}::text[]) WITH ORDINALITY \
                AS logs (session, log, author, words, place) \
             CROSS JOIN LATERAL ( \
                SELECT seq, at, ts_rank(text_entry.words, logs.words::tsquery, 1)::float8 AS score \
                FROM text_entry WHERE text_entry.words @@ logs.words::tsquery \
                    AND text_entry.session IS NOT DISTINCT FROM logs.session \
                    AND text_entry.log IS NOT DISTINCT FROM logs.log \
                    AND (logs.author IS NULL OR text_entry.agent = logs.author) \
                    AND ({since}::bigint IS NULL OR text_entry.at >= {since})) AS entry \
             ORDER BY entry.score DESC, entry.at DESC, logs.place, entry.seq DESC LIMIT {limit}",
            sessions, logs, authors, queries, since, limit
        };
        self.connections.read(async |mut client| {
            let transaction = client.transaction().await.map_err(failed)?;
            let settings = format!(
                "SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL statement_timeout = {}",
                sought.time_max.as_millis()
            );
            transaction.batch_execute(&settings).await.map_err(failed)?;
            let rows = match transaction.query(best.text, &best.values).await {
                Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => return Ok(None),
                rows => rows.map_err(failed)?,
            };
            let read = |row: &tokio_postgres::Row| -> Result<TextFound, tokio_postgres::Error> {
                // Places count from 1.
                let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
                let seq = row.try_get::<_, i64>(1)?.cast_unsigned();
                Ok(TextFound { log: place, seq, score: row.try_get(2)? })
            };
            let found: Result<_, _> = rows.iter().map(read).collect();
            found.map(Some).map_err(failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_quoted_behind_their_mark() {
        let words = [("it's".to_owned(), 1), ("a\\b".to_owned(), 20_000)];
        assert_eq!(vector("m ", &words), r"'m a\\b':16383 'm it''s':1");
        let wanted = [("a".to_owned(), false), ("b".to_owned(), true)];
        let query = query(&wanted, &[("c".to_owned(), false)]);
        assert_eq!(query.replace(MARK, "m "), "'m a' & 'm b':* & !'m c'");
    }

    #[test]
    fn a_vector_has_each_word_once_and_ends_at_its_bound() {
        let words = ["b", "a", "b"].map(str::to_owned).into_iter().zip(1..).collect::<Vec<_>>();
        assert_eq!(vector("m ", &words), "'m a':2 'm b':1,3");
        let places = |words: &[_]| vector("mark ", words).matches([':', ',']).count();
        let different: Vec<_> = (0..100_000).map(|n| (format!("{n:06}"), 1)).collect();
        assert_eq!(places(&different), VECTOR_BYTES_MAX / 16);
        let same: Vec<_> = (1..100_000).map(|place| ("same".to_owned(), place)).collect();
        assert_eq!(places(&same), PLACES_MAX);
    }

    #[test]
    fn words_of_another_version_are_at_no_revision() {
        assert_eq!(position(7, 0), 7);
        assert_eq!(revision_at(position(7, 3), 3), Revision(7));
        for (stored, wanted) in [(0, 1), (1, 0), (2, 1)] {
            assert_eq!(revision_at(position(7, stored), wanted), Revision(0));
        }
    }

    #[test]
    fn a_mark_is_that_of_one_log_of_one_session() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(mark(one, "requests"), mark(one, "requests"));
        assert_ne!(mark(one, "requests"), mark(other, "requests"));
        assert_ne!(mark(one, "requests"), mark(one, "questions"));
    }
}
