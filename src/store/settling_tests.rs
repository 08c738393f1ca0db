//! Settling moves commits and changes nothing: at any moment each is there once, whatever else is done.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::bases_tests::{five, image, put};
use super::sqlite_tests::{ANNA, BERT, database, open, replayed, run, stored};
use super::*;
use crate::board::Frame;

/// Settles a piece, without summaries.
pub(super) fn settle(store: &SqliteStore) -> bool {
    store.settle(&mut |_| Vec::new()).unwrap()
}

/// Settles all that is there.
pub(super) fn settle_all(store: &SqliteStore) {
    while settle(store) {}
    assert_eq!(store.unsettled_bytes(), 0);
}

pub(super) fn count(dir: &TempDir, table: &str) -> i64 {
    let select = format!("SELECT count(*) FROM {table}");
    database(dir).query_one(&select, [], |row| row.get(0)).unwrap()
}

/// All of a session's commits after a revision, read in pages.
fn read(store: &SqliteStore, session: SessionId, after: u64, max: PageMax) -> Vec<(u64, Vec<u8>)> {
    let (mut read, mut after) = (Vec::new(), Revision(after));
    loop {
        let page = store.commits(session, after, max).unwrap();
        let Some((last, _)) = page.last() else { return read };
        after = *last;
        read.extend(page.into_iter().map(|(revision, frame)| {
            (revision.0, Frame::decode(session, revision, &frame).unwrap().to_vec())
        }));
    }
}

const PAGE: PageMax = PageMax { commits: 7, bytes: 100_000 };

#[test]
fn what_is_settled_is_read_as_before() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let before = (read(&store, ANNA, 0, PAGE), read(&store, BERT, 0, PAGE));
    assert!(store.unsettled_bytes() > 0);
    let mut asked = Vec::new();
    let more = store.settle(&mut |sessions| {
        // No lock is held.
        assert_eq!(store.append(&[run(BERT, 2, &["b3"])]), [Outcome::Appended]);
        asked.extend_from_slice(sessions);
        Vec::new()
    });
    assert!(more.unwrap(), "one came meanwhile");
    asked.sort();
    assert_eq!(asked, [ANNA, BERT]);
    assert_eq!((count(&dir, "journal"), count(&dir, "segment")), (1, 2));
    settle_all(&store);
    assert_eq!((count(&dir, "journal"), count(&dir, "segment")), (0, 2));
    let after =
        |store: &SqliteStore| {
            assert_eq!(read(store, ANNA, 0, PAGE), before.0);
            assert_eq!(read(store, BERT, 0, PAGE)[..2], before.1);
            assert_eq!(read(store, ANNA, 3, PAGE), before.0[3..]);
            let rows = stored(store);
            let rows: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
            let expected = [(ANNA, 1), (ANNA, 2), (ANNA, 3), (ANNA, 4), (ANNA, 5)]
                .into_iter()
                .chain([(BERT, 1), (BERT, 2), (BERT, 3)]);
            assert_eq!(rows, expected.map(|row| (0, row.0, row.1)).collect::<Vec<_>>());
            let mut sessions = store.sessions();
            sessions.sort_by_key(|found| found.session);
            let session = |session, head| StoredSession { session, head, settled: head };
            assert_eq!(sessions, [session(ANNA, Revision(5)), session(BERT, Revision(3))]);
            store.replay_unsettled(&mut |record| panic!("{record:?}")).unwrap();
        };
    after(&store);
    drop(store);
    let store = open(dir.path());
    after(&store);
    let conflict = Outcome::Conflict { head: Revision(5) };
    assert_eq!(store.append(&[run(ANNA, 4, &["no"])]), [conflict]);
    assert_eq!(store.append(&[run(ANNA, 5, &["a6"])]), [Outcome::Appended]);
    assert_eq!(stored(&store).last().unwrap().0, 9, "ids are not used again");
    assert_eq!(read(&store, ANNA, 0, PAGE).len(), 6);
    settle_all(&store);
    assert_eq!(count(&dir, "segment"), 2, "short segments are written anew");
}

#[test]
fn a_crash_at_any_step_of_settling_leaves_every_commit_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let body = vec![7; 900_000];
    let mut images = vec![];
    for head in 0..12 {
        let runs = [run(ANNA, head, &[&body]), run(BERT, head, &["b"])];
        assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
    }
    loop {
        images.push(image(&dir));
        let more = store.settle(&mut |_| {
            images.push(image(&dir));
            Vec::new()
        });
        if !more.unwrap() {
            break;
        }
    }
    images.push(image(&dir));
    assert!(images.len() > 6);
    for image in &images {
        // Twice, since the first has settled something.
        for _ in 0..2 {
            let store = open(image.path());
            let annas: Vec<_> = read(&store, ANNA, 0, PAGE).into_iter().map(|row| row.0).collect();
            assert_eq!(annas, (1..=12).collect::<Vec<_>>());
            assert_eq!(read(&store, BERT, 0, PAGE).len(), 12);
            assert_eq!(stored(&store).len(), 24);
            assert_eq!(store.sessions().len(), 2);
            settle(&store);
        }
    }
}

#[test]
fn whoever_reads_while_commits_are_settled_sees_each_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            for head in 0..600 {
                let runs = [run(ANNA, head, &["on"]), run(BERT, head, &[vec![1; 3_000]])];
                assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
            }
            done.store(true, Ordering::Release);
        });
        threads.spawn(|| {
            while !done.load(Ordering::Acquire) || settle(&store) {
                settle(&store);
            }
        });
        for session in [ANNA, BERT] {
            threads.spawn({
                let (store, done) = (&store, &done);
                move || loop {
                    let over = done.load(Ordering::Acquire);
                    let read = read(store, session, 0, PAGE);
                    assert!(read.iter().zip(1..).all(|(row, revision)| row.0 == revision));
                    if over {
                        assert_eq!(read.len(), 600);
                        return;
                    }
                }
            });
        }
    });
}

/// What is done to a store, with whom, and how much.
#[derive(Clone, Debug)]
enum Step {
    Append {
        who: usize,
        commits: usize,
        bytes: usize,
    },
    Stage {
        base: u64,
    },
    Adopt {
        who: usize,
        jump: u64,
    },
    Discard {
        who: usize,
    },
    Base {
        who: usize,
        back: u64,
    },
    Settle,
    SettleAll,
    /// Between reading and writing a piece, this happens.
    SettleDuring(Box<Step>),
    Idle,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes =
        prop_oneof![20 => 0..300_usize, 3 => 10_000..400_000_usize, 1 => Just(3_000_000_usize)];
    let append = (0..4_usize, 1..6_usize, bytes).prop_map(|(who, commits, bytes)| Step::Append {
        who,
        commits,
        bytes,
    });
    let base = (0..4_usize, 0..8_u64).prop_map(|(who, back)| Step::Base { who, back });
    let discard = (0..4_usize).prop_map(|who| Step::Discard { who });
    let adopt = (0..4_usize, 0..3_u64).prop_map(|(who, jump)| Step::Adopt { who, jump });
    let during = prop_oneof![append.clone(), base.clone(), discard.clone(), adopt.clone()];
    let step = prop_oneof![
        10 => append,
        2 => (0..5_u64).prop_map(|base| Step::Stage { base }),
        2 => adopt,
        1 => discard,
        3 => base,
        6 => Just(Step::Settle),
        1 => Just(Step::SettleAll),
        3 => during.prop_map(|step| Step::SettleDuring(Box::new(step))),
        2 => Just(Step::Idle),
        2 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..40)
}

/// A history as it should be.
#[derive(Clone, Debug, Default)]
struct History {
    commits: Vec<(u64, Vec<u8>)>,
    base: Option<u64>,
    put: Option<u64>,
    staged: bool,
}

impl History {
    fn head(&self) -> u64 {
        let base = self.base.or(self.put.filter(|_| self.staged));
        self.commits.last().map(|row| row.0).max(base).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct Model {
    histories: BTreeMap<SessionId, History>,
    made: u128,
}

impl Model {
    /// The session that is meant by a number.
    fn who(&self, who: usize) -> Option<SessionId> {
        self.histories.keys().nth(who % self.histories.len().max(1)).copied()
    }

    fn take(&mut self, store: &SqliteStore, step: &Step) {
        match *step {
            Step::Append { who, commits, bytes } => self.append(store, who, commits, bytes),
            Step::Stage { base } => self.stage(store, base),
            Step::Adopt { who, jump } => self.adopt(store, who, jump),
            Step::Discard { who } => {
                let Some(session) = self.who(who) else { return };
                store.discard(session).unwrap();
                if self.histories[&session].staged {
                    self.histories.remove(&session);
                }
            }
            Step::Base { who, back } => self.set_base(store, who, back),
            Step::Settle => drop(settle(store)),
            Step::SettleAll => settle_all(store),
            Step::SettleDuring(ref step) => {
                let during = &mut |_: &[SessionId]| {
                    self.take(store, step);
                    while store.idle() {}
                    Vec::new()
                };
                store.settle(during).unwrap();
            }
            Step::Idle => drop(store.idle()),
            Step::Reopen => unreachable!(),
        }
    }

    fn append(&mut self, store: &SqliteStore, who: usize, commits: usize, bytes: usize) {
        let session = [ANNA, BERT].get(who).copied().or_else(|| self.who(who)).unwrap_or(ANNA);
        let history = self.histories.entry(session).or_default();
        let (head, body) = (history.head(), vec![b'x'; bytes / commits]);
        let run = run(session, head, &vec![&body; commits]);
        assert_eq!(store.append(&[run]), [Outcome::Appended]);
        history.commits.extend((head + 1..).take(commits).map(|revision| (revision, body.clone())));
    }

    fn stage(&mut self, store: &SqliteStore, base: u64) {
        self.made += 1;
        let session = SessionId(Uuid::from_u128(0x100 + self.made));
        store.stage(session).unwrap();
        let mut history = History { staged: true, ..History::default() };
        if base > 0 {
            put(store, session, base, &["staged"]).unwrap();
            history.put = Some(base);
        }
        self.histories.insert(session, history);
    }

    fn adopt(&mut self, store: &SqliteStore, who: usize, jump: u64) {
        let Some(session) = self.who(who) else { return };
        let history = self.histories.get_mut(&session).unwrap();
        let expected = history.head() + jump;
        let run = Run { adopts: true, ..run(session, expected, &["adopted"]) };
        let [outcome] = store.append(&[run])[..] else { panic!() };
        assert_eq!(outcome == Outcome::Appended, history.staged);
        if history.staged {
            history.staged = false;
            history.base = history.put.take();
            let base = history.base.unwrap_or(0);
            history.commits.retain(|row| row.0 > base);
            history.commits.push((expected + 1, b"adopted".to_vec()));
        }
    }

    fn set_base(&mut self, store: &SqliteStore, who: usize, back: u64) {
        let Some(session) = self.who(who) else { return };
        let history = self.histories.get_mut(&session).unwrap();
        let base = history.head().saturating_sub(back);
        if base == 0 || history.base >= Some(base) || history.staged {
            return;
        }
        put(store, session, base, &["a base", "of two parts"]).unwrap();
        assert_eq!(store.set_base(session, Revision(base)), Outcome::Appended);
        history.base = Some(base);
        history.commits.retain(|row| row.0 > base);
    }

    fn check(&self, store: &SqliteStore) {
        let own = || self.histories.iter().filter(|(_, history)| !history.staged);
        let mut sessions: Vec<_> =
            store.sessions().into_iter().map(|found| (found.session, found.head.0)).collect();
        sessions.sort();
        let heads: Vec<_> = own().map(|(session, history)| (*session, history.head())).collect();
        assert_eq!(sessions, heads);
        for (session, history) in &self.histories {
            assert_eq!(store.base(*session).map(|base| base.0), history.base);
            let commits = read(store, *session, history.base.unwrap_or(0), PAGE);
            assert!(commits == history.commits, "{session}");
        }
        let (parts, rows) = replayed(store);
        let bases: Vec<_> =
            own().filter_map(|(session, history)| Some((*session, history.base?))).collect();
        let mut found: Vec<_> = parts.iter().map(|part| (part.0, part.1)).collect();
        found.dedup();
        assert_eq!(found, bases);
        let mut by_session: BTreeMap<SessionId, Vec<_>> = BTreeMap::new();
        for (_, session, revision, body) in rows {
            by_session.entry(session).or_default().push((revision, body.unwrap()));
        }
        let whole = own().filter(|(_, history)| !history.commits.is_empty());
        assert!(by_session == whole.map(|(id, history)| (*id, history.commits.clone())).collect());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_the_same_however_it_is_settled(steps in steps()) {
        let dir = TempDir::new().unwrap();
        let (mut store, mut model) = (open(dir.path()), Model::default());
        for step in &steps {
            if matches!(step, Step::Reopen) {
                model.check(&store);
                drop(store);
                store = open(dir.path());
                model.histories.retain(|_, history| !history.staged);
                model.check(&store);
            } else {
                model.take(&store, step);
            }
        }
        model.check(&store);
        settle_all(&store);
        model.check(&store);
        drop(store);
        model.histories.retain(|_, history| !history.staged);
        let store = open(dir.path());
        while store.idle() {}
        model.check(&store);
        prop_assert_eq!(count(&dir, "journal"), 0);
        // No more than what there is a history for, and nothing before its base.
        for segment in segments::ranges(&database(&dir)).unwrap() {
            let history = &model.histories[&segment.0];
            prop_assert!(Some(segment.1.0) > history.base);
        }
    }
}

#[test]
fn what_is_settled_and_forgotten_is_in_no_file_any_more() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    // Text that packing cannot hide.
    let bodies: Vec<String> =
        (0..300_u64).map(|n| format!("secret {n} {:x}", n * 7_919 * 7_919)).collect();
    for (body, head) in bodies.iter().zip(5..) {
        store.append(&[run(ANNA, head, &[body])]);
    }
    settle_all(&store);
    put(&store, ANNA, 200, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(200)), Outcome::Appended);
    drop(store);
    let store = open(dir.path());
    assert_eq!(read(&store, ANNA, 200, PAGE).len(), 105);
    let straddles = database(&dir);
    let before: Vec<u8> = straddles
        .query_one("SELECT body FROM segment WHERE session = ?1", [ANNA.0.as_bytes()], |row| {
            row.get(0)
        })
        .unwrap();
    drop(straddles);
    while store.idle() {}
    assert_eq!(read(&store, ANNA, 200, PAGE).len(), 105);
    let ranges = segments::ranges(&database(&dir)).unwrap();
    assert_eq!(ranges[0], (ANNA, Revision(201), Revision(305)));
    for file in ["blackboard.db", "blackboard.db-wal"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        let piece = &before[40..56];
        assert!(!bytes.windows(piece.len()).any(|window| window == piece), "{file}");
        assert!(!bytes.windows(9).any(|window| window == b"secret 10"), "{file}");
    }
}

#[test]
fn the_file_is_as_long_as_what_is_in_it() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for head in 0..40 {
        store.append(&[run(ANNA, head, &[vec![7; 100_000]])]);
    }
    settle_all(&store);
    while store.idle() {}
    let length = |file: &str| fs::metadata(dir.path().join(file)).unwrap().len();
    assert!(length("blackboard.db") < 500_000, "{}", length("blackboard.db"));
    assert_eq!(length("blackboard.db-wal"), 0);
}

#[test]
fn a_store_of_format_2_is_brought_to_the_present_one() {
    let dir = TempDir::new().unwrap();
    drop(five(&dir));
    database(&dir)
        .execute_batch(
            "DROP TABLE segment; DROP TABLE session; DROP TABLE snapshot; PRAGMA user_version = 2;
             PRAGMA auto_vacuum = NONE; VACUUM",
        )
        .unwrap();
    let store = open(dir.path());
    let mode = database(&dir).pragma_query_value(None, "auto_vacuum", |row| row.get(0));
    assert_eq!(mode, Ok(2));
    assert_eq!(stored(&store).len(), 7);
    settle_all(&store);
    assert_eq!(read(&store, ANNA, 0, PAGE).len(), 5);
}
