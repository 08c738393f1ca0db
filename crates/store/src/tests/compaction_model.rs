//! Tests of compaction against a plain list of commits, with any sequence of operations.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::bases::put;
use super::compaction::{PAGE, compact, compact_all, count, read};
use super::sqlite::{ANNA, BERT, database, open, replayed, run};
use crate::sqlite::segments;
use crate::*;

/// An operation on a store, its session and its size.
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
    Compact,
    CompactAll,
    /// A step between reading and writing a piece.
    CompactDuring(Box<Step>),
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
        6 => Just(Step::Compact),
        1 => Just(Step::CompactAll),
        3 => during.prop_map(|step| Step::CompactDuring(Box::new(step))),
        2 => Just(Step::Idle),
        2 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..40)
}

/// The expected history.
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
    /// The session with this number.
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
            Step::Compact => drop(compact(store)),
            Step::CompactAll => compact_all(store),
            Step::CompactDuring(ref step) => {
                let during = &mut |_: &[SessionId]| {
                    self.take(store, step);
                    while store.idle() {}
                    Vec::new()
                };
                store.compact(during).unwrap();
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
            assert_eq!(store.base(*session).unwrap().map(|base| base.0), history.base);
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
    fn any_history_is_the_same_however_it_is_compacted(steps in steps()) {
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
        compact_all(&store);
        model.check(&store);
        drop(store);
        model.histories.retain(|_, history| !history.staged);
        let store = open(dir.path());
        while store.idle() {}
        model.check(&store);
        prop_assert_eq!(count(&dir, "journal"), 0);
        // No segment without a history or before its base.
        for segment in segments::ranges(&database(&dir)).unwrap() {
            let history = &model.histories[&segment.0];
            prop_assert!(Some(segment.1.0) > history.base);
        }
    }
}
