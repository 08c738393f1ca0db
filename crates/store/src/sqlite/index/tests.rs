//! Tests of the index against a plain list of rows.

use proptest::prelude::*;

use super::{Base, Histories};
use crate::tests::sqlite::{ANNA, BERT};
use crate::*;

/// All places after a revision, in pages of `max`.
fn after(histories: &Histories, after: u64, max: usize) -> Vec<(u64, u64)> {
    let (mut found, mut after) = (Vec::new(), Revision(after));
    loop {
        let page = histories.page(ANNA, after, max, None).unwrap();
        let Some((last, _)) = page.last() else { return found };
        after = *last;
        found.extend(page.iter().map(|(revision, id)| (revision.0, id.0)));
    }
}

fn naive(rows: &[(u64, u64)], after: u64) -> Vec<(u64, u64)> {
    rows.iter().copied().filter(|(revision, _)| *revision > after).collect()
}

proptest! {
    #[test]
    fn any_revisions_are_found_and_forgotten(
        steps in proptest::collection::vec((prop_oneof![9 => Just(1_u64), 1 => 1..9_u64], 1..4_u64), 0..40),
        cut in 0..60_u64,
        from in 0..60_u64,
        max in 1..5_usize,
    ) {
        let (mut histories, mut rows) = (Histories::default(), Vec::new());
        let (mut revision, mut id) = (0, 0);
        for (step, gap) in steps {
            (revision, id) = (revision + step, id + gap);
            rows.push((revision, id));
            histories.append(ANNA, Revision(revision), JournalId(id));
            histories.append(BERT, Revision(revision), JournalId(id + 1));
        }
        prop_assert_eq!(after(&histories, from, max), naive(&rows, from));

        histories.put(ANNA, Base { revision: Revision(cut), parts: 1, ends: false });
        let forgotten = histories.beginning(ANNA).forgotten;
        let ids = histories.set_beginning(ANNA).unwrap().rows.into_ids();
        let gone: Vec<_> =
            rows.iter().filter(|row| row.0 <= cut).map(|row| JournalId(row.1)).collect();
        prop_assert_eq!(forgotten, gone.last().copied().unwrap_or_default());
        prop_assert_eq!(ids, gone);
        let from = from.max(cut);
        prop_assert_eq!(after(&histories, from, max), naive(&rows, from));

        let next = revision.max(cut) + 1;
        histories.append(ANNA, Revision(next), JournalId(id + 5));
        rows.push((next, id + 5));
        prop_assert_eq!(after(&histories, from, max), naive(&rows, from));
    }
}

#[test]
fn a_row_that_does_not_ascend_has_no_place() {
    let mut histories = Histories::default();
    for (revision, id) in [(1, 1), (2, 2), (2, 3), (u64::MAX, 4), (3, 5)] {
        assert!(histories.find(ANNA, Revision(revision), JournalId(id)));
    }
    assert_eq!(after(&histories, 0, 9), [(1, 1), (2, 2), (u64::MAX, 4)]);
}
