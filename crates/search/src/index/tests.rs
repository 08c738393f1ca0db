//! Tests of the index: what it finds, beside a model; and that nothing out of reach changes an answer or the work for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{Document, Logs, Names, Phrase, Snippets};
use blackboard_board::{AgentName, Timestamp};

fn open(dir: &TempDir) -> Index {
    Index::open(&dir.path().join("search.db"), Epoch(1)).unwrap()
}

fn name(text: &str) -> SessionName {
    text.parse().unwrap()
}

fn log(number: u8) -> LogName {
    match number {
        0 => LogName::Requests,
        1 => LogName::Trajectories,
        other => LogName::Memory(format!("agent{other}").parse().unwrap()),
    }
}

fn put(index: &Index, session: &str, log: &LogName, seq: u64, text: &str) {
    put_all(index, session, log, [(seq, text.to_owned())]);
}

fn put_all(
    index: &Index,
    session: &str,
    log: &LogName,
    texts: impl IntoIterator<Item = (u64, String)>,
) {
    index
        .write(|batch| {
            let key = batch.session(&name(session))?;
            for (seq, text) in texts {
                let at = Timestamp(i64::try_from(seq).unwrap());
                let value = json(&text);
                let values = &[value.as_str()];
                batch.put(key, Document { log, seq: Seq(seq), at, agent: None, values })?;
            }
            Ok::<_, SearchError>(())
        })
        .unwrap();
}

fn json(text: &str) -> String {
    let mut out = String::new();
    exact_json::quote(text, &mut out);
    out
}

fn everything() -> Reach {
    let names = vec![Names::From(String::new())];
    Reach::new(names, Arc::new(|_| true), vec![Logs::Board, Logs::Memories])
}

fn search(index: &Index, query: &str, reach: &Reach) -> Matches {
    index.search(&query.parse().unwrap(), reach, &|| true).unwrap()
}

type Place = (String, LogName, u64);

fn places(found: &Matches) -> Vec<Place> {
    let place = |one: &Ranked| (one.session.to_string(), one.log.clone(), one.seq.0);
    found.ranked.iter().map(place).collect()
}

#[test]
fn the_better_match_comes_first_and_of_equals_the_newest() {
    let dir = TempDir::new().unwrap();
    let index = open(&dir);
    let requests = LogName::Requests;
    let long = format!("disk {}", "filler ".repeat(300));
    for (seq, text) in [(1, "disk full"), (2, "disk disk full"), (3, &long), (4, "disk full")] {
        put(&index, "s", &requests, seq, text);
    }
    let found = search(&index, "disk", &everything());
    let seqs: Vec<u64> = found.ranked.iter().map(|one| one.seq.0).collect();
    assert_eq!(seqs, [2, 4, 1, 3]);
    assert!(!found.is_cut);
    // A score is the text's own: what other entries have, here or elsewhere, does not matter.
    let scores: Vec<f64> = found.ranked.iter().map(|one| one.score).collect();
    assert_eq!(scores[1].to_bits(), scores[2].to_bits());
    put_all(&index, "other", &requests, (1..500).map(|seq| (seq, "disk ".repeat(9))));
    let reach = Reach::new(vec![Names::One("s".to_owned())], Arc::new(|_| true), vec![Logs::Board]);
    assert_eq!(search(&index, "disk", &reach), found);
}

#[test]
fn more_matches_than_are_ranked_are_cut_to_the_best() {
    let dir = TempDir::new().unwrap();
    let index = open(&dir);
    let last = RANKED_MAX as u64 + 3;
    put_all(&index, "s", &LogName::Requests, (1..=last).map(|seq| (seq, format!("w{seq} disk"))));
    put(&index, "s", &LogName::Questions, 1, "disk disk disk");
    let found = search(&index, "disk", &everything());
    assert!(found.is_cut);
    assert_eq!(found.ranked.len(), RANKED_MAX);
    assert_eq!(found.ranked[0].log, LogName::Questions);
    assert_eq!(found.ranked[1].seq, Seq(last));
    // A word with many documents has blocks of its own, and all of them are read.
    for (query, found) in
        [("disk w17", 1), ("w17 -disk", 0), ("w17 -w18 disk", 1), ("disk -disk", 0)]
    {
        assert_eq!(places(&search(&index, query, &everything())).len(), found, "{query}");
    }
    assert!(!search(&index, "w1*", &everything()).is_cut);
}

#[test]
fn a_merge_writes_into_the_rows_of_its_segments() {
    let dir = TempDir::new().unwrap();
    let index = open(&dir);
    for seq in 1..=20 {
        put(&index, "s", &LogName::Requests, seq, "disk full");
    }
    assert_eq!(search(&index, "disk", &everything()).ranked.len(), 20);
    let rows = "SELECT count(*), max(id) FROM blocks";
    let rows = index
        .writer
        .lock()
        .connection
        .query_row(rows, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    assert_eq!(rows.unwrap(), (1, 1));
}

#[test]
fn a_search_that_does_not_go_on_ends() {
    let dir = TempDir::new().unwrap();
    let index = open(&dir);
    put(&index, "s", &LogName::Requests, 1, "disk");
    let ended = index.search(&"disk".parse().unwrap(), &everything(), &|| false);
    assert!(matches!(ended, Err(SearchError::Ended)));
}

#[test]
fn a_changed_byte_of_a_row_is_damage() {
    for table in ["blocks", "documents"] {
        let dir = TempDir::new().unwrap();
        let index = open(&dir);
        put(&index, "s", &LogName::Requests, 1, "disk full");
        let sql = format!("UPDATE {table} SET data = CAST(x'7E' || substr(data, 2) AS BLOB)");
        assert_eq!(index.writer.lock().connection.execute(&sql, []).unwrap(), 1);
        let found = index.search(&"disk".parse().unwrap(), &everything(), &|| true);
        assert!(matches!(found, Err(SearchError::Damaged)), "{table}");
    }
}

/// The bytes of a page. What the thread reads of its own counters is less.
#[cfg(target_os = "linux")]
const PAGE: u64 = 4096;

/// The bytes that the calling thread has read from files.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Makes an index of five sessions in reach and 200 hidden ones. `hidden` are the first letters of the words that these
/// have, and that the memory of another agent in each session in reach has.
#[cfg(target_os = "linux")]
fn world(dir: &TempDir, hidden: &str) -> Index {
    let index = open(dir);
    let text = |letters: &str, from: u64| {
        (0..12).fold(String::new(), |mut text, n| {
            write!(text, "{letters}{:02} ", (from * 7 + n * n) % 100).unwrap();
            text
        })
    };
    for round in 0..3 {
        for session in 0..200_u64 {
            let name = format!("out{session:03}");
            let texts = (1..=4).map(|n| (round * 4 + n, text(hidden, session * n + round)));
            put_all(&index, &name, &LogName::Requests, texts);
        }
        for session in 0..5_u64 {
            let name = format!("in{session}");
            let texts = (1..=40).map(|n| (round * 40 + n, text("wa", session * 13 + n + round)));
            put_all(&index, &name, &LogName::Trajectories, texts);
            let texts = (1..=40).map(|n| (round * 40 + n, text(hidden, session + n)));
            put_all(&index, &name, &log(3), texts);
        }
        while index.tidy().unwrap() {}
    }
    index
        .writer
        .lock()
        .connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    index
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_out_of_reach_changes_no_answer_and_no_work() {
    let worlds = ["wa", "wb"].map(|hidden| {
        let dir = TempDir::new().unwrap();
        drop(world(&dir, hidden));
        dir
    });
    let size = |dir: &TempDir| fs::metadata(dir.path().join("search.db")).unwrap().len();
    assert_eq!(size(&worlds[0]), size(&worlds[1]), "else the work differs with the size");
    let queries = (0..50_u64).map(|n| match n % 5 {
        0 => format!("wa{:02}", n * 2),
        1 => format!("wa{:02} wa{:02}", n, n * 2),
        2 => format!("wa{}*", n / 6),
        3 => format!("wb{n:02}"),
        _ => format!("\"wa{:02} wa{:02}\" -wa99", n, (n + 1) % 100),
    });
    let names = vec![Names::From("in".to_owned())];
    let logs = vec![Logs::Board, Logs::One(log(2))];
    let (mut hits, reach) = (0, Reach::new(names, Arc::new(|_| true), logs));
    for query in queries {
        let [one, other] = worlds.each_ref().map(|dir| {
            // Opened anew, so that each page is read from the file.
            let index = open(dir);
            let before = bytes_read();
            let found = search(&index, &query, &reach);
            (found, (bytes_read() - before) / PAGE)
        });
        assert_eq!(one, other, "{query}");
        hits += one.0.ranked.len();
    }
    assert!(hits > 500, "{hits}");
}

/// A change of an index.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, u64, Vec<u8>),
    Remove(u8, u8, u64, u64),
    ClearLog(u8, u8),
    Forget(u8),
    Tidy,
    /// The batch breaks off here.
    Broken,
    /// The server is killed after the batch, and opens the file again.
    Restart,
}

fn text(words: &[u8]) -> String {
    let vocabulary = ["disk", "disks", "full", "DÍSK", "is", "日本", "a-b", "x1"];
    let words = words.iter().map(|word| vocabulary[usize::from(*word) % vocabulary.len()]);
    words.collect::<Vec<_>>().join(" ")
}

fn step() -> impl Strategy<Value = Step> {
    let (session, log) = (0..3_u8, 0..4_u8);
    let words = prop::collection::vec(0..8_u8, 0..12);
    prop_oneof![
        8 => (session.clone(), log.clone(), 1..30_u64, words)
            .prop_map(|(session, log, seq, words)| Step::Put(session, log, seq, words)),
        2 => (session.clone(), log.clone(), 1..30_u64, 0..9_u64)
            .prop_map(|(session, log, first, more)| Step::Remove(session, log, first, first + more)),
        1 => (session.clone(), log).prop_map(|(session, log)| Step::ClearLog(session, log)),
        1 => session.prop_map(Step::Forget),
        1 => Just(Step::Tidy),
        1 => Just(Step::Broken),
        1 => Just(Step::Restart),
    ]
}

/// Carries out steps, several in a batch; returns the texts that are there.
fn carried_out(dir: &TempDir, batches: &[Vec<Step>]) -> BTreeMap<Place, String> {
    let (mut index, mut model) = (open(dir), BTreeMap::new());
    let session = |number: u8| format!("s{number}");
    for steps in batches {
        let before = model.clone();
        let change = |batch: &mut Batch<'_>| {
            for step in steps {
                match step {
                    Step::Put(at, of, seq, words) => {
                        let (text, log) = (text(words), log(*of));
                        let key = batch.session(&name(&session(*at)))?;
                        let (seq, at_time) = (Seq(*seq), Timestamp(5));
                        let agent: Option<&AgentName> = None;
                        let value = json(&text);
                        let values = &[value.as_str()];
                        let document = Document { log: &log, seq, at: at_time, agent, values };
                        batch.put(key, document)?;
                        model.insert((session(*at), log, seq.0), text);
                    }
                    Step::Remove(at, of, first, last) => {
                        let key = batch.session(&name(&session(*at)))?;
                        batch.remove(key, &log(*of), Seq(*first), Seq(*last))?;
                        model.retain(|(session_name, in_log, seq), _| {
                            let is_there = *session_name == session(*at) && *in_log == log(*of);
                            !(is_there && (first..=last).contains(&seq))
                        });
                    }
                    Step::ClearLog(at, of) => {
                        let key = batch.session(&name(&session(*at)))?;
                        batch.clear_log(key, &log(*of))?;
                        model.retain(|(name, in_log, _), _| {
                            !(*name == session(*at) && *in_log == log(*of))
                        });
                    }
                    Step::Forget(at) => {
                        batch.forget(&name(&session(*at)))?;
                        model.retain(|(name, ..), _| *name != session(*at));
                    }
                    Step::Broken => return Err(SearchError::Ended),
                    Step::Tidy | Step::Restart => {}
                }
            }
            Ok::<_, SearchError>(())
        };
        if index.write(change).is_err() {
            model = before;
        }
        if steps.iter().any(|step| matches!(step, Step::Restart)) {
            drop(index);
            index = open(dir);
        }
        if steps.iter().any(|step| matches!(step, Step::Tidy)) {
            while index.tidy().unwrap() {}
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn it_finds_the_entries_that_a_query_matches(
        batches in prop::collection::vec(prop::collection::vec(step(), 1..12), 1..12),
    ) {
        let dir = TempDir::new().unwrap();
        let model = carried_out(&dir, &batches);
        let index = open(&dir);
        for query in ["disk", "dis*", "\"disk is\"", "disk -full", "full -\"is full\"", "本", "\"日 本\"", "a-b x1", "\"is dis\"*", "is disk \"is full\""] {
            let parsed: Query = query.parse().unwrap();
            let matching = Snippets::default().of(&parsed, model.values().cloned(), &|| true).unwrap();
            let matching: Vec<(Place, &String)> = model
                .iter()
                .zip(matching)
                .filter_map(|((place, text), found)| found.map(|_| (place.clone(), text)))
                .collect();
            let found: Vec<(Place, f64)> = search(&index, query, &everything())
                .ranked
                .into_iter()
                .map(|one| ((one.session.to_string(), one.log, one.seq.0), one.score))
                .collect();
            prop_assert_eq!(found, ranked(&parsed, matching), "{}", query);
        }
    }
}

/// Ranks matching texts by what stands in them alone, best first.
fn ranked(query: &Query, matching: Vec<(Place, &String)>) -> Vec<(Place, f64)> {
    let words = Words::new().unwrap();
    let wanted = words.query(query).unwrap().wanted;
    let score = |text: &str| {
        let all: Vec<String> = words.of(text).unwrap().into_iter().map(|word| word.text).collect();
        // Lengths count by halves of a factor of two.
        let mut length = 1.0;
        while length * 2_f64.sqrt() <= all.len() as f64 + 1e-9 {
            length *= 2_f64.sqrt();
        }
        let weight = |phrase: &Phrase| {
            let last = phrase.words.len() - 1;
            let is_there = |some: &[String]| {
                let mut pairs = some.iter().zip(&phrase.words).enumerate();
                pairs.all(|(at, (word, wanted))| {
                    word == wanted || phrase.is_prefix && at == last && word.starts_with(wanted)
                })
            };
            let count = all.windows(last + 1).filter(|some| is_there(some)).count() as f64;
            let weight = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 100.0));
            (weight * 1_048_576.0).round() / 1_048_576.0
        };
        wanted.iter().map(weight).sum::<f64>()
    };
    let mut all: Vec<_> = matching.into_iter().map(|(place, text)| (place, score(text))).collect();
    all.sort_by(|((a, a_log, a_seq), a_score), ((b, b_log, b_seq), b_score)| {
        let place = (a, a_log).cmp(&(b, b_log));
        b_score.total_cmp(a_score).then(place).then(b_seq.cmp(a_seq))
    });
    all
}
