//! Tests of pins: pinned histories stay readable, and nothing remains afterwards.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::tests::bases::{five, put};
use crate::tests::compaction::{compact, compact_all, count};
use crate::tests::sqlite::{ANNA, BERT, open, run};
use crate::{EmbeddedStore as _, Outcome, SqliteStore, Store as _};
use blackboard_board::Frame;

const PAGE: PageMax = PageMax { commits: 3, bytes: 1 << 20 };

/// The parts of a base, and commits.
type Read = (Vec<Vec<u8>>, Vec<(u64, Vec<u8>)>);

/// Reads all that a pin holds.
fn read(pin: &dyn Pinned) -> Result<Read, StoreError> {
    let (mut parts, mut at) = (Vec::new(), pin.base().unwrap_or_default());
    let session = pin.session();
    pin.read_base(&mut |frame| {
        parts.push(Frame::decode(session, at, frame).unwrap().to_vec());
        ControlFlow::Continue(())
    })?;
    let mut commits = Vec::new();
    loop {
        let page = pin.commits(at, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok((parts, commits)) };
        at = *last;
        commits.extend(page.into_iter().map(|(revision, frame)| {
            (revision.0, Frame::decode(session, revision, &frame).unwrap().to_vec())
        }));
    }
}

fn cut(store: &SqliteStore, session: SessionId, base: u64) {
    put(store, session, base, &[format!("base {base}"), "more".to_owned()]).unwrap();
    assert_eq!(store.set_base(session, Revision(base)), Outcome::Appended);
    while store.idle() {}
}

fn bodies(range: std::ops::RangeInclusive<u64>) -> Vec<(u64, Vec<u8>)> {
    range.map(|n| (n, format!("a{n}").into_bytes())).collect()
}

#[test]
fn a_pinned_history_is_read_until_its_pin_is_dropped() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let before = store.pin(ANNA).unwrap();
    cut(&store, ANNA, 2);
    let pin = store.pin(ANNA).unwrap();
    cut(&store, ANNA, 4);
    assert_eq!(read(&*before).unwrap(), (vec![], bodies(1..=5)));
    let base = vec![b"base 2".to_vec(), b"more".to_vec()];
    assert_eq!(read(&*pin).unwrap(), (base.clone(), bodies(3..=5)));
    let forgotten = store.commits(ANNA, Revision(3), PAGE).unwrap_err();
    assert!(matches!(forgotten, StoreError::Forgotten { base: Revision(4), .. }), "{forgotten}");

    // Cuts needed only by the older pin are released with it.
    assert!(!store.has_unpinned());
    drop(before);
    assert!(store.has_unpinned());
    while store.idle() {}
    assert!(!store.has_unpinned());
    assert_eq!(count(&dir, "journal WHERE session = x'0000000000000000000000000000000a'"), 3);
    assert_eq!(read(&*pin).unwrap(), (base, bodies(3..=5)));
    drop(pin);
    while store.idle() {}
    assert_eq!(count(&dir, "journal WHERE session = x'0000000000000000000000000000000a'"), 1);
    assert_eq!(count(&dir, "base"), 2);
}

#[test]
fn a_pin_holds_for_a_bounded_time() {
    let (mut pins, now) = (Pins::default(), Instant::now());
    let id = pins.pin(ANNA, Revision(2), now);
    let cut = Cut { session: ANNA, base: Revision(4), before: None, rows: Rows::default() };
    assert!(pins.keep(cut).is_none());
    let (last, over) = (now + PIN_TIME_MAX - Duration::from_nanos(1), now + PIN_TIME_MAX);
    assert_eq!(pins.base(ANNA, id, last), Some(Revision(2)));
    assert!(!pins.are_due(last) && pins.take_released(last).is_empty());
    assert_eq!(pins.base(ANNA, id, over), None);
    assert!(pins.are_due(over));
    assert_eq!(pins.take_released(over).len(), 1);
    assert!(pins.sessions.is_empty());
    pins.unpin(ANNA, id);
    assert!(!pins.are_due(over));
}

#[test]
fn nobody_pins_what_is_not_there_or_nobodys() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.stage(BERT).unwrap();
    for session in [ANNA, BERT] {
        assert!(matches!(store.pin(session), Err(StoreError::NoHistory { .. })));
    }
}

/// An operation on a store.
#[derive(Clone, Debug)]
enum Step {
    Append {
        bytes: usize,
        commits: u64,
    },
    Cut {
        back: u64,
    },
    Compact,
    CompactAll,
    /// Between reading and writing a piece, the history is cut.
    CutDuring {
        back: u64,
    },
    Idle,
    Pin,
    Unpin {
        which: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![9 => 0..3_000_usize, 1 => 100_000..300_000_usize];
    let step = prop_oneof![
        6 => (bytes, 1..6_u64).prop_map(|(bytes, commits)| Step::Append { bytes, commits }),
        3 => (0..5_u64).prop_map(|back| Step::Cut { back }),
        3 => Just(Step::Compact),
        1 => Just(Step::CompactAll),
        2 => (0..5_u64).prop_map(|back| Step::CutDuring { back }),
        2 => Just(Step::Idle),
        3 => Just(Step::Pin),
        2 => (0..4_usize).prop_map(|which| Step::Unpin { which }),
    ];
    proptest::collection::vec(step, 1..40)
}

struct Model<'a> {
    store: &'a SqliteStore,
    commits: BTreeMap<u64, Vec<u8>>,
    base: u64,
    pins: Vec<Box<dyn Pinned>>,
}

impl Model<'_> {
    fn head(&self) -> u64 {
        self.commits.last_key_value().map_or(0, |(revision, _)| *revision)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Append { bytes, commits } => {
                for _ in 0..commits {
                    let (head, body) = (self.head(), vec![b'x'; bytes]);
                    assert_eq!(
                        self.store.append(&[run(ANNA, head, &[&body])]),
                        [Outcome::Appended]
                    );
                    self.store.append(&[run(BERT, head, &["between"])]);
                    self.commits.insert(head + 1, body);
                }
            }
            Step::Cut { back } => self.cut(back),
            Step::Compact => drop(compact(self.store)),
            Step::CompactAll => while compact(self.store) {},
            Step::CutDuring { back } => {
                self.store
                    .compact(&mut |_| {
                        self.cut(back);
                        Vec::new()
                    })
                    .map(drop)
                    .unwrap();
            }
            Step::Idle => drop(self.store.idle()),
            Step::Pin => self.pins.extend(self.store.pin(ANNA).ok()),
            Step::Unpin { which } => {
                drop(self.pins.get(which).is_some().then(|| self.pins.remove(which)));
            }
        }
    }

    fn cut(&mut self, back: u64) {
        let base = self.head().saturating_sub(back);
        if base > self.base {
            self.base = base;
            cut(self.store, ANNA, base);
        }
    }

    fn check(&self) {
        for pin in &self.pins {
            let base = pin.base().unwrap_or_default().0;
            let (parts, commits) = read(&**pin).unwrap();
            let first = parts.first().map(|part| String::from_utf8_lossy(part).into_owned());
            assert_eq!(first, (base > 0).then(|| format!("base {base}")));
            let kept = self.commits.range(base + 1..).map(|(n, body)| (*n, body.clone()));
            assert_eq!(commits, kept.collect::<Vec<_>>());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_done_pins_read_what_was_and_leave_nothing(steps in steps()) {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let mut model = Model { store: &store, commits: BTreeMap::new(), base: 0, pins: Vec::new() };
        for step in &steps {
            model.take(step);
            model.check();
        }
        model.pins.clear();
        while store.idle() {}
        let base = model.base;
        let forgotten = |table: &str, column: &str| {
            count(&dir, &format!("{table} WHERE session = x'0000000000000000000000000000000a' AND {column} <= {base}"))
        };
        prop_assert_eq!(forgotten("journal", "revision") + forgotten("segment", "first"), 0);
        prop_assert_eq!(count(&dir, &format!("base WHERE revision != {base}")), 0);
        compact_all(&store);
    }
}
