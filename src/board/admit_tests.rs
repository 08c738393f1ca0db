//! What does not follow its board is refused, and whatever is let through can be applied.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::board_tests::*;
use super::plan_tests::{Step, steps};
use super::*;

use LogName::{Requests, Screenshots};

/// A board at revision 1, with two entries in one log.
fn board() -> Board {
    board_of([append(Requests, items(["{}", "{}"]))])
}

fn commit(changes: Vec<Change>) -> Commit {
    let (revision, at) = (Revision(2), Timestamp(1_000));
    Commit { revision, at, agent: None, nonce: Nonce(0), changes }
}

fn created() -> Change {
    let name = "sess_1".parse().unwrap();
    Change::Created { name, settings: Default::default(), labels: Default::default() }
}

fn appended(log: LogName, first: u64, items: Vec<Item>) -> Change {
    Change::Appended { log, first: Seq(first), items }
}

fn removed(ranges: &[(u64, u64)]) -> Change {
    let range = |&(first, last): &(u64, u64)| SeqRange { first: Seq(first), last: Seq(last) };
    Change::Removed { log: Requests, ranges: ranges.iter().map(range).collect() }
}

fn updated(seq: u64) -> Change {
    Change::Updated { log: Requests, seq: Seq(seq), item: item("{}") }
}

fn misfit(changes: Vec<Change>) -> Misfit {
    admit(&board(), &commit(changes)).unwrap_err()
}

fn no_entry(seq: u64) -> Misfit {
    Misfit::Entry { log: Requests, seq: Seq(seq) }
}

#[test]
fn a_commit_makes_the_next_revision() {
    for found in [0, 1, 3, u64::MAX].map(Revision) {
        let commit = Commit { revision: found, ..commit(vec![updated(1)]) };
        let misfit = Misfit::Revision { head: Revision(1), found };
        assert_eq!(admit(&board(), &commit), Err(misfit));
    }
    assert_eq!(admit(&board(), &commit(vec![updated(1)])), Ok(()));
}

#[test]
fn a_commit_is_not_before_the_one_before_it() {
    let at = |at| Commit { at: Timestamp(at), ..commit(vec![updated(1)]) };
    assert_eq!(admit(&board(), &at(999)), Err(Misfit::Time));
    assert_eq!(admit(&board(), &at(i64::MAX)), Ok(()));
}

#[test]
fn a_commit_changes_something() {
    assert_eq!(misfit(vec![]), Misfit::Nothing);
}

#[test]
fn a_session_is_made_once_and_changed_only_while_it_exists() {
    let life = |change, exists| Misfit::Life { change, exists };
    assert_eq!(misfit(vec![created()]), life(0, true));
    assert_eq!(misfit(vec![updated(1), created()]), life(1, true));
    assert_eq!(misfit(vec![Change::Deleted, updated(1)]), life(1, false));
    assert_eq!(misfit(vec![Change::Deleted, Change::Deleted]), life(1, false));
    let first = |changes| Commit { revision: Revision(1), ..commit(changes) };
    let settings = Default::default();
    let configured = Change::Configured { settings, labels: Default::default() };
    let cleared = Change::Cleared { log: Requests };
    let appended = appended(Requests, 1, vec![]);
    for change in [configured, cleared, appended, removed(&[]), updated(1), Change::Deleted] {
        assert_eq!(admit(&absent(), &first(vec![change.clone()])), Err(life(0, false)));
        let misfit = admit(&absent(), &first(vec![created(), change]));
        assert!(!matches!(misfit, Err(Misfit::Life { .. })));
    }
}

#[test]
fn seqs_go_on_from_the_last() {
    let seq = |log, next, found| Misfit::Seq { log, next: Seq(next), found: Seq(found) };
    for found in [0, 1, 2, 4, u64::MAX] {
        assert_eq!(misfit(vec![appended(Requests, found, vec![])]), seq(Requests, 3, found));
    }
    assert_eq!(misfit(vec![appended(memory("a"), 2, vec![])]), seq(memory("a"), 1, 2));
    let one = |first| appended(Requests, first, items(["{}"]));
    assert_eq!(misfit(vec![one(3), one(3)]), seq(Requests, 4, 3));
    let cleared = Change::Cleared { log: Requests };
    assert_eq!(misfit(vec![cleared.clone(), one(1)]), seq(Requests, 3, 1));
    assert_eq!(admit(&board(), &commit(vec![one(3), cleared, one(4)])), Ok(()));
}

#[test]
fn only_what_is_there_is_changed_or_removed() {
    for seq in [0, 3, u64::MAX] {
        assert_eq!(misfit(vec![updated(seq)]), no_entry(seq));
    }
    for (ranges, culprit) in [
        (&[(0, 1)][..], 0),
        (&[(3, 3)], 3),
        (&[(1, 3)], 3),
        (&[(1, u64::MAX)], u64::MAX),
        (&[(2, 1)], 2),
        (&[(2, 2), (1, 1)], 1),
        (&[(1, 1), (1, 2)], 1),
        (&[(1, 2), (2, 2)], 2),
    ] {
        assert_eq!(misfit(vec![removed(ranges)]), no_entry(culprit), "{ranges:?}");
    }
    assert_eq!(misfit(vec![removed(&[(1, 1)]), updated(1)]), no_entry(1));
    assert_eq!(admit(&board(), &commit(vec![removed(&[(1, 1), (2, 2)])])), Ok(()));
}

#[test]
fn an_image_stands_between_two_quotes() {
    let shot = |text: &str, at| {
        let image = Image { at, ..screenshot(b"x").image().unwrap().clone() };
        appended(Screenshots, 1, vec![Item::from_object(text, Some(image)).unwrap()])
    };
    for (text, at) in [
        (r#"{"a":""}"#, 0),
        (r#"{"a":""}"#, 5),
        (r#"{"a":""}"#, 7),
        (r#"{"a":""}"#, 8),
        (r#"{"a":""}"#, 9),
        (r#"{"a":""}"#, usize::MAX),
        (r#"{"é":""}"#, 3),
    ] {
        assert_eq!(misfit(vec![shot(text, at)]), Misfit::ImagePlace { at }, "{text} {at}");
    }
    assert_eq!(admit(&board(), &commit(vec![shot(r#"{"a":""}"#, 6)])), Ok(()));
}

#[test]
fn an_image_has_the_bytes_that_it_had_before_and_not_more_than_can_be_counted() {
    let shot = |contents: &[u8], bytes| {
        let item = screenshot(contents);
        let image = Image { bytes, ..item.image().unwrap().clone() };
        Item::from_object(item.text(), Some(image)).unwrap()
    };
    let sha256 = Digest::of(b"x");
    let wrong = |bytes| Misfit::ImageBytes { sha256, bytes };
    let shots = |items| vec![appended(Screenshots, 1, items)];
    assert_eq!(misfit(shots(vec![shot(b"x", 1), shot(b"x", 2)])), wrong(2));
    assert_eq!(misfit(shots(vec![shot(b"y", 1), shot(b"x", u64::MAX)])), wrong(u64::MAX));
    let mut board = board();
    carry_out(&mut board, append(Screenshots, vec![shot(b"x", 1)]));
    let again = |bytes| Commit {
        revision: Revision(3),
        ..commit(vec![appended(Screenshots, 2, vec![shot(b"x", bytes)])])
    };
    assert_eq!(admit(&board, &again(2)), Err(wrong(2)));
    assert_eq!(admit(&board, &again(1)), Ok(()));
}

fn edits() -> impl Strategy<Value = Vec<(Index, u8)>> {
    vec((any::<Index>(), select(&b"0123456789-.eabdlnrstu_\"\\{}[]:, "[..])), 1..4)
}

/// The commits of these writes, each with the board that it follows.
fn commits(steps: &[Step]) -> Vec<(Board, Commit)> {
    let (mut board, mut clock, mut commits) = (absent(), 0, Vec::new());
    for (nonce, step) in (0..).zip(steps) {
        let write = step.write(&board);
        let decided = decide(&board, &write, step.moment(&mut clock, nonce));
        if let Ok(Decision { commit: Some(commit), .. }) = decided {
            let before = board.clone();
            apply(&mut board, &commit);
            commits.push((before, commit));
        }
    }
    commits
}

proptest! {
    #[test]
    fn a_changed_body_is_refused_or_keeps_the_board_sound(
        steps in steps(12),
        edits in vec(edits(), 24),
    ) {
        for (board, commit) in commits(&steps) {
            let body = stored::encode_commit(&commit).unwrap();
            for edits in &edits {
                let mut body = body.clone();
                for (index, byte) in edits {
                    let at = index.index(body.len());
                    body[at] = *byte;
                }
                let Ok(commit) = stored::decode_commit(&body) else { continue };
                if admit(&board, &commit).is_ok() {
                    let mut board = board.clone();
                    apply(&mut board, &commit);
                    let base = stored::encode_base(&board).unwrap();
                    let again = stored::decode_base(&base).unwrap();
                    prop_assert_eq!(Board { oldest: board.oldest, ..again }, board);
                }
            }
        }
    }
}
