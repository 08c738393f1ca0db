//! Two databases that differ in what a caller may not search: equal answers, and as many pages read for them.

use std::ops::Range;

use super::*;
use crate::{TextChange, TextFound, TextLog, TextQuery};

/// The sessions in reach; the others are hidden.
const IN_REACH: Range<u128> = 0..5;

const SESSIONS: u128 = 205;

/// Twelve words that begin with these letters.
fn words(letters: &str, from: u64) -> Vec<(String, u32)> {
    (0..12).map(|n| (format!("{letters}{:02}", (from * 7 + n * n) % 100), 1)).collect()
}

/// Entries of a log, numbered from 1.
fn put(log: &str, letters: &str, from: u64, entries: u64) -> impl Iterator<Item = TextChange> {
    (1..=entries).map(move |n| TextChange::Put {
        log: log.to_owned(),
        seq: n,
        at: Timestamp(1),
        agent: None,
        words: words(letters, from + n),
    })
}

/// Makes a database in which hidden sessions, and another agent's memory in those in reach, have words that begin with
/// `hidden`.
fn world(hidden: &str) -> PostgresStore {
    let store = PostgresStore::open(&url()).unwrap();
    for number in 0..SESSIONS {
        let id = SessionId(Uuid::from_u128(number));
        let (is_in_reach, from) = (IN_REACH.contains(&number), u64::try_from(number).unwrap());
        let name = if is_in_reach { format!("in{number}") } else { format!("out{number:03}") };
        assert_eq!(store.append(&[run(&name, id, 0, vec![])]), [Outcome::Appended]);
        let changes: Vec<_> = if is_in_reach {
            let own = put("requests", "wa", from * 13, 120);
            own.chain(put("memory/B", hidden, from, 120)).collect()
        } else {
            put("requests", hidden, from, 12).collect()
        };
        let changes: Vec<_> = changes.into_iter().map(|change| (id, change)).collect();
        store.change_texts(&changes).unwrap();
    }
    // So that plans may follow what the tables hold.
    execute(&store, "ANALYZE");
    // A connection reports its pages up to ten seconds later, but at its end at the latest.
    let writers = store.connections.writer_name();
    let sql = "SELECT bool_and(pg_terminate_backend(pid, 30000))::text FROM pg_stat_activity \
        WHERE application_name = ";
    assert_eq!(text(&store, &format!("{sql}'{writers}'")), "true");
    store
}

/// The pages that searches have read: those of the texts, of the sessions, and of their indexes. Nothing else of an idle
/// store reads these.
fn pages(store: &PostgresStore) -> u64 {
    let sql = "SELECT sum(pg_stat_get_blocks_fetched(oid) + pg_stat_get_xact_blocks_fetched(oid))::text \
        FROM (VALUES ('text_entry'::regclass), ('text_log'), ('session')) AS of (relation), \
            LATERAL (SELECT relation UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = relation) \
                AS read (oid)";
    text(store, sql).parse().unwrap()
}

/// The answer to a query of those in reach, and the pages read for it.
fn answer(
    store: &PostgresStore,
    wanted: &[(String, bool)],
    unwanted: &[(String, bool)],
) -> (Vec<TextFound>, u64) {
    let before = pages(store);
    let names = [(b"in".to_vec(), b"io".to_vec())];
    let logs = [("requests".to_owned(), "requests!".to_owned())];
    let logs = store.text_logs(&names, &logs).unwrap().into_iter();
    let found = store.find_texts(&TextQuery {
        wanted: wanted.to_vec(),
        unwanted: unwanted.to_vec(),
        logs: logs.map(|TextLog { session, log, .. }| (session, log, None)).collect(),
        since: None,
        limit: 50,
        time_max: Duration::from_secs(30),
    });
    (found.unwrap().unwrap(), pages(store) - before)
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn what_is_out_of_reach_changes_no_answer_and_no_page() {
    let worlds = ["wa", "wb"].map(world);
    let size = |store| text(store, "SELECT pg_relation_size('text_words')::text");
    assert_eq!(size(&worlds[0]), size(&worlds[1]), "else the work differs with the size");
    let word = |letters: &str, n: u64| (format!("{letters}{:02}", n % 100), false);
    let mut hits = 0;
    for n in 0..50_u64 {
        let (wanted, unwanted) = match n % 5 {
            0 => (vec![word("wa", n * 2)], vec![]),
            1 => (vec![word("wa", n), word("wa", n * 2)], vec![]),
            2 => (vec![(format!("wa{}", n / 6), true)], vec![]),
            3 => (vec![word("wb", n)], vec![]),
            _ => (vec![word("wa", n)], vec![word("wa", n + 1)]),
        };
        let [one, other] = worlds.each_ref().map(|store| answer(store, &wanted, &unwanted));
        assert_eq!(one.0, other.0, "{wanted:?} without {unwanted:?}");
        assert_eq!(one.1, other.1, "pages for {wanted:?} without {unwanted:?}");
        hits += one.0.len();
    }
    assert!(hits > 500, "{hits}");
}
