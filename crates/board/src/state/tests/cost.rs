//! Tests of the cost of the state: bytes allocated by a change and by a document.

use allocation_counter::{AllocationInfo, measure};

use crate::state::*;

fn path(text: &str) -> StatePath {
    let names = text.split('/').filter(|name| !name.is_empty());
    StatePath::from_segments(names).unwrap()
}

fn state(document: &str) -> State {
    let mut state = State::default();
    state.put(&StatePath::root(), document, None, Revision(1));
    assert!(!state.is_empty());
    state
}

fn wide(leaves: usize) -> String {
    let members: Vec<_> = (0..leaves).map(|i| format!("\"leaf {i}\":{i}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Nested objects, each with fifteen leaves besides the next object.
fn deep(levels: usize) -> String {
    let leaves: String = (0..15).map(|i| format!("\"leaf {i}\":{i},")).collect();
    format!("{}0{}", format!("{{{leaves}\"d\":").repeat(levels), "}".repeat(levels))
}

/// Measures the allocations of a change while the document before it is still in use.
fn cost(before: &State, change: impl FnOnce(&mut State)) -> AllocationInfo {
    let mut after = before.clone();
    let copied = measure(|| change(&mut after));
    assert!(after != *before);
    copied
}

fn assert_shared(before: &State, after: &State, paths: &[&str]) {
    for at in paths {
        let (before, after) = (before.node(&path(at)).unwrap(), after.node(&path(at)).unwrap());
        assert!(before.same(after), "{at}");
    }
}

#[test]
fn setting_one_leaf_copies_little_however_many_there_are() {
    for (leaves, bytes_max) in [(10, 1_024), (1_000, 3_072), (100_000, 4_096)] {
        let before = state(&wide(leaves));
        let leaf = path(&format!("leaf {}", leaves / 2));
        let patch = format!("{{\"{leaf}\":-1}}");
        for copied in [
            cost(&before, |state| state.put(&leaf, "-1", None, Revision(2))),
            cost(&before, |state| state.set(&leaf, "-1", Revision(2))),
            cost(&before, |state| state.merge(&path(""), &patch, Revision(2))),
        ] {
            assert!(copied.bytes_total <= bytes_max, "{leaves} leaves: {copied:?}");
            assert!(copied.count_total <= 32, "{leaves} leaves: {copied:?}");
        }
        for copied in [
            cost(&before, |state| state.put(&path("one more"), "1", None, Revision(2))),
            cost(&before, |state| state.remove(&leaf, Revision(2))),
        ] {
            assert!(copied.bytes_total <= 2 * bytes_max, "{leaves} leaves: {copied:?}");
        }
    }
}

#[test]
fn setting_a_deep_leaf_copies_the_objects_above_it() {
    let levels = 64;
    let before = state(&deep(levels));
    let leaf = path(&"d/".repeat(levels));
    let copied = cost(&before, |state| state.put(&leaf, "1", None, Revision(2)));
    assert!(copied.bytes_total <= levels as u64 * 1_024, "{copied:?}");
    assert!(copied.count_total <= levels as u64 * 3, "{copied:?}");
    let higher = path("d/d/leaf 7");
    let copied = cost(&before, |state| state.put(&higher, "1", None, Revision(2)));
    assert!(copied.bytes_total <= 4 * 1_024, "{copied:?}");
}

#[test]
fn what_did_not_change_is_shared() {
    let document =
        format!(r#"{{"wide":{},"a":{{"x":[1,2],"y":{{"z":1}}}},"b":{{"c":{{}}}}}}"#, wide(1_000));
    let before = state(&document);
    let mut after = before.clone();
    after.put(&path("a/y/z"), "2", None, Revision(2));
    assert_shared(&before, &after, &["wide", "a/x", "b", "b/c"]);
    assert!(!before.node(&path("a")).unwrap().same(after.node(&path("a")).unwrap()));
    // A whole document that is put shares what is equal, even in another order.
    let mut after = before.clone();
    let reordered = format!(
        r#"{{"b":{{"c":{{}}}}, "a":{{"y":{{"z":1}}, "x":[1, 2]}}, "wide":{}}}"#,
        wide(1_000)
    );
    after.put(&path(""), &reordered, None, Revision(2));
    assert_shared(&before, &after, &["wide", "a/x", "a/y", "b"]);
    assert_eq!(after.value(&path("a")).unwrap().changed(), Revision(2));
    // A changed leaf of a wide object leaves the others.
    let mut after = before.clone();
    after.put(&path("wide/leaf 5"), "{}", None, Revision(2));
    assert_shared(&before, &after, &["wide/leaf 4", "wide/leaf 6", "a"]);
}

#[test]
fn what_changes_nothing_copies_nothing_that_stays() {
    let before = state(&deep(64));
    let mut after = before.clone();
    let leaf = path(&"d/".repeat(64));
    let copied = measure(|| {
        after.put(&leaf, "0", None, Revision(2));
        after.set(&leaf, " 0 ", Revision(2));
        after.merge(&leaf, "0", Revision(2));
        after.remove(&path("absent/too"), Revision(2));
    });
    assert!(copied.bytes_total <= 1_024, "{copied:?}");
    assert_shared(&before, &after, &[""]);
}

#[test]
fn appending_copies_what_is_appended_however_long_the_array() {
    let array = |elements: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(elements));
    for elements in [30, 1_000, 100_000] {
        let before = state(&array(elements));
        let copied = cost(&before, |state| state.append(&path("a"), ["1", "2"], Revision(2)));
        assert!(copied.bytes_total <= 4 * 1_024, "{elements} elements: {copied:?}");
    }
}

#[test]
fn a_document_that_nobody_else_has_is_changed_in_place() {
    let mut state = state(&format!("{{\"w\":{},\"a\":[{}0]}}", wide(10_000), "0,".repeat(10_000)));
    let copied = measure(|| {
        state.put(&path("w/leaf 77"), "-1", None, Revision(2));
        state.append(&path("a"), ["1"], Revision(2));
    });
    assert!(copied.bytes_total <= 3 * 1_024, "{copied:?}");
}

#[test]
fn many_tiny_objects_take_little_memory() {
    let members: Vec<_> = (0..10_000).map(|i| format!("\"k{i}\":{{\"a\":1}}")).collect();
    let document = format!("{{{}}}", members.join(","));
    let held = |info: AllocationInfo| u64::try_from(info.bytes_current).unwrap() / 10_000;
    let mut state = State::default();
    let whole = held(measure(|| state.put(&path(""), &document, None, Revision(1))));
    assert!(whole <= 260, "{whole} bytes each");
    let mut state = State::default();
    let singly = held(measure(|| {
        for i in 0..10_000 {
            state.put(&path(&format!("k{i}/a")), "1", None, Revision(i));
        }
    }));
    assert!(singly <= 340, "{singly} bytes each");
    let arrays = format!("[{}0]", "0,".repeat(99_999));
    let long = measure(|| state.put(&path("arrays"), &arrays, None, Revision(1)));
    assert!(long.bytes_current <= 30 * 100_000, "{long:?}");
}

#[test]
fn a_hundred_thousand_members_take_little_memory() {
    let document = wide(100_000);
    let mut state = State::default();
    let held = measure(|| state.put(&path(""), &document, None, Revision(1)));
    assert!(held.bytes_current <= 160 * 100_000, "{held:?}");
    let text = state.text();
    assert_eq!(text, document);
    let nulls: Vec<_> = (0..99_990).map(|i| format!("\"leaf {i}\":null")).collect();
    state.merge(&path(""), &format!("{{{}}}", nulls.join(",")), Revision(2));
    let rest = document.find("\"leaf 99990\"").map(|at| format!("{{{}", &document[at..])).unwrap();
    let revisions = [&[Revision(2)], &[Revision(1); 10][..]].concat();
    assert_eq!(Some(state), State::restore(&rest, &revisions));
}

#[test]
fn ten_thousand_deadlines_are_kept_in_good_time() {
    let mut state = State::default();
    for i in 0..10_000 {
        state.put(&path(&format!("tasks/{i}")), "{}", Some(Timestamp(i)), Revision(1));
    }
    assert_eq!(state.due(Timestamp(4_999), usize::MAX).len(), 5_000);
    for i in 0..5_000 {
        state.remove(&path(&format!("tasks/{i}")), Revision(2));
    }
    assert_eq!(state.next_expiry(), Some(Timestamp(5_000)));
    let nulls: Vec<_> = (5_000..10_000).map(|i| format!("\"{i}\":null")).collect();
    state.merge(&path("tasks"), &format!("{{{}}}", nulls.join(",")), Revision(3));
    assert_eq!(state.next_expiry(), None);
}
