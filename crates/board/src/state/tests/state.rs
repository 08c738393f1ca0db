//! Tests of the state's guarantees, by example.

use crate::state::*;

fn path(text: &str) -> StatePath {
    let names = text.split('/').filter(|name| !name.is_empty());
    StatePath::from_segments(names).unwrap()
}

fn state(document: &str) -> State {
    let mut state = State::default();
    state.put(&StatePath::root(), document, None, Revision(1));
    state
}

fn text(state: &State) -> String {
    let text = state.text();
    assert_eq!(state.bytes(), text.len() as u64);
    text
}

fn changed(state: &State, at: &str) -> u64 {
    state.value(&path(at)).unwrap().changed().0
}

fn expiring(state: &State) -> Vec<String> {
    state.expiries().map(|(path, _)| path.to_string()).collect()
}

#[test]
fn a_new_state_is_an_empty_object() {
    let state = State::default();
    assert!(state.is_empty());
    assert_eq!((text(&state).as_str(), state.changed()), ("{}", Revision(0)));
    assert_eq!(state.place(&path("a/b")), Ok(None));
    assert_eq!(state.value(&path("a")), None);
}

#[test]
fn every_value_keeps_its_text_but_for_the_white_space() {
    let state = state(
        "{ \"z\" : 1.50, \"\\u0061\": [ 1E5 , {\"\\u0062\" : -0 } ],\n\"s\":\"\\/\", \"z\": {\"q\\n\":null} }",
    );
    assert_eq!(text(&state), r#"{"z":{"q\n":null},"a":[1E5,{"\u0062":-0}],"s":"\/"}"#);
    assert_eq!(state.value(&path("a")).unwrap().kind(), Kind::Array);
    assert_eq!(state.value(&path("s")).unwrap().kind(), Kind::String);
    assert_eq!(state.value(&path("s")).unwrap().number(), None);
}

#[test]
fn a_write_makes_the_objects_above_it() {
    let mut state = state(r#"{"b":1}"#);
    state.put(&path("a/b/c"), "[1]", None, Revision(2));
    state.append(&path("a/d"), ["2", "{ }"], Revision(3));
    state.merge(&path("m/n"), r#"{"x":null,"y":{"z":null}}"#, Revision(4));
    assert_eq!(text(&state), r#"{"b":1,"a":{"b":{"c":[1]},"d":[2,{}]},"m":{"n":{"y":{}}}}"#);
    assert_eq!((changed(&state, "a"), changed(&state, "a/b"), changed(&state, "b")), (3, 2, 1));
}

#[test]
fn a_write_does_not_go_through_what_is_no_object() {
    let mut state = state(r#"{"a":{"n":[{"x":1}]}}"#);
    let before = state.clone();
    let through = path("a/n/0/x");
    assert_eq!(state.place(&through), Err(NotAnObject { at: path("a/n"), kind: Kind::Array }));
    assert_eq!(
        state.place(&through).unwrap_err().to_string(),
        "the value at 'a/n' is an array, not an object"
    );
    assert_eq!(state.value(&through), None);
    state.put(&through, "1", Some(Timestamp(1)), Revision(2));
    state.set(&through, "1", Revision(2));
    state.merge(&through, "{}", Revision(2));
    state.append(&through, ["1"], Revision(2));
    state.append(&path("a"), ["1"], Revision(2));
    state.remove(&through, Revision(2));
    state.put(&path(""), "[]", None, Revision(2));
    state.merge(&path(""), "1", Revision(2));
    assert_eq!(state, before);
}

#[test]
fn a_revision_moves_only_with_its_value() {
    let mut state = state(r#"{"a":{"x":1,"y":{"z":[1,2]}},"b":2}"#);
    state.put(&path(""), r#" {"a" : {"x":1, "y":{"z":[ 1, 2]}}, "b":2 }"#, None, Revision(2));
    assert_eq!(state.changed(), Revision(1));
    state.put(&path("a"), r#"{"x":1.0,"y":{"z":[1,2]}}"#, None, Revision(3));
    assert_eq!(["", "a", "a/x", "a/y", "b"].map(|at| changed(&state, at)), [3, 3, 3, 1, 1]);
    state.put(&path("a"), r#"{"y":{"z":[1,2]},"x":1.0}"#, None, Revision(4));
    assert_eq!(["", "a", "a/x", "a/y", "b"].map(|at| changed(&state, at)), [4, 4, 3, 1, 1]);
    state.put(&path("b"), "2", Some(Timestamp(9)), Revision(5));
    state.append(&path("a/y/z"), [], Revision(5));
    state.merge(&path(""), r#"{"a":{"none":null},"b":2}"#, Revision(5));
    let expiries: Vec<_> = state.expiries().map(|(path, at)| (path.clone(), at)).collect();
    assert_eq!((state.changed(), expiries), (Revision(4), vec![(path("b"), Timestamp(9))]));
    state.remove(&path("a/y/z"), Revision(6));
    assert_eq!(["", "a", "a/x", "a/y", "b"].map(|at| changed(&state, at)), [6, 6, 3, 6, 1]);
}

#[test]
fn two_changes_of_one_revision_are_both_made() {
    let mut state = State::default();
    for document in [r#"{"a":1}"#, r#"{"b":1}"#, r#"{"b":[]}"#, r#"{"b":{}}"#, r#"{"b":{"b":1}}"#] {
        state.put(&path(""), document, None, Revision(1));
        assert_eq!(text(&state), document);
    }
    state.put(&path("b"), "[]", None, Revision(1));
    state.append(&path("b"), ["1", "2"], Revision(1));
    state.append(&path("b"), ["3"], Revision(1));
    assert_eq!(text(&state), r#"{"b":[1,2,3]}"#);
}

#[test]
fn of_a_repeated_name_in_a_patch_the_last_value_counts() {
    let mut state = state(r#"{"a":{"x":1},"b":2}"#);
    state.merge(&path(""), r#"{"a":null,"a":{"y":1},"b":{"z":1},"\u0062":{}}"#, Revision(2));
    assert_eq!(text(&state), r#"{"a":{"x":1,"y":1},"b":{}}"#);
}

#[test]
fn a_put_or_a_removal_ends_the_deadlines_at_and_below_it() {
    let mut state = State::default();
    for (at, time) in [("a/b/c", 1), ("a/b", 2), ("a/b!", 3), ("b", 4)] {
        state.put(&path(at), "{}", Some(Timestamp(time)), Revision(1));
    }
    assert_eq!(expiring(&state), ["a/b", "a/b!", "b"]);
    state.put(&path("a/b/c"), "1", Some(Timestamp(9)), Revision(2));
    assert_eq!(expiring(&state), ["a/b", "a/b/c", "a/b!", "b"]);
    state.put(&path("a/b"), "{}", None, Revision(2));
    assert_eq!(expiring(&state), ["a/b!", "b"]);
    state.remove(&path("b"), Revision(2));
    state.remove(&path("b"), Revision(3));
    assert_eq!((expiring(&state), state.changed()), (vec!["a/b!".to_owned()], Revision(2)));
    state.put(&path(""), "{}", Some(Timestamp(5)), Revision(4));
    assert_eq!(
        (state.next_expiry(), state.due(Timestamp(5), usize::MAX)),
        (Some(Timestamp(5)), vec![path("")])
    );
    state.remove(&path(""), Revision(5));
    assert_eq!((state.changed(), state.next_expiry()), (Revision(4), None));
}

#[test]
fn a_patch_keeps_the_deadlines_of_what_is_still_there() {
    let mut state = State::default();
    for at in ["a", "a/b", "a/c", "a/c/d", "e"] {
        state.put(&path(at), "{}", Some(Timestamp(1)), Revision(1));
    }
    state.merge(&path(""), r#"{"a":{"b":{"x":1},"c":{"d":null}}}"#, Revision(2));
    assert_eq!(expiring(&state), ["a", "a/b", "a/c", "e"]);
    state.merge(&path("a"), "[]", Revision(3));
    state.set(&path("e"), "5", Revision(3));
    assert_eq!(expiring(&state), ["a", "e"]);
    state.append(&path("a"), ["1"], Revision(4));
    assert_eq!(expiring(&state), ["a", "e"]);
}

#[test]
fn what_is_due_comes_in_order_of_time_without_what_goes_with_it() {
    let mut state = State::default();
    for (at, time) in [("z", 1), ("a", 3), ("a/b", 2), ("m", 2), ("n", 4), ("n/o", 1)] {
        state.put(&path(at), "{}", Some(Timestamp(time)), Revision(1));
    }
    let due = |now| {
        state.due(Timestamp(now), usize::MAX).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(state.next_expiry(), Some(Timestamp(1)));
    assert_eq!(due(0), [""; 0]);
    assert_eq!(due(1), ["n/o", "z"]);
    assert_eq!(due(2), ["n/o", "z", "a/b", "m"]);
    assert_eq!(due(4), ["z", "m", "a", "n"]);
}

#[test]
fn a_value_that_was_read_stays_as_it_was() {
    let mut state = state(r#"{"a":{"x":1,"n":2.50}}"#);
    let read = state.value(&path("a")).unwrap();
    state.put(&path("a/x"), "2", None, Revision(2));
    let mut out = "> ".to_owned();
    read.write(&mut out);
    assert_eq!((out.as_str(), read.bytes()), (r#"> {"x":1,"n":2.50}"#, 16));
    assert!(read.equals(r#" {"n":25e-1, "x":1.0} "#) && !read.equals(r#"{"n":2.5}"#));
    assert!(read != state.value(&path("a")).unwrap());
    assert_eq!(state.value(&path("a/n")).unwrap().number(), Some("2.50"));
}

#[test]
fn a_state_is_restored_only_from_what_fits_together() {
    let mut state = state(r#"{"a":{"x":[{}]},"b":2}"#);
    state.put(&path("a/y"), "{}", Some(Timestamp(7)), Revision(2));
    let (document, revisions) = (text(&state), state.revisions());
    assert_eq!(revisions, [2, 2, 1, 2, 1].map(Revision));
    let restore = |document: &str, revisions: &[Revision], at: &str| {
        let mut restored = State::restore(document, revisions)?;
        restored.restore_expiry(&path(at), Timestamp(7)).then_some(restored)
    };
    assert_eq!(restore(&document, &revisions, "a/y"), Some(state));
    assert_eq!(restore(&document, &revisions[..4], "a/y"), None);
    assert_eq!(restore(&document, &[&revisions[..], &[Revision(1)]].concat(), "a/y"), None);
    assert_eq!(restore(&document, &revisions, "a/z"), None);
    assert_eq!(State::restore("[]", &[Revision(1)]), None);
    let mut once = State::restore("{}", &[Revision(1)]).unwrap();
    assert!(once.restore_expiry(&path(""), Timestamp(1)));
    assert!(!once.restore_expiry(&path(""), Timestamp(2)));
    assert_eq!(once.next_expiry(), Some(Timestamp(1)));
}

#[test]
fn no_depth_is_too_much() {
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let arrays = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let deepest = StatePath::from_segments(["a"; 128]).unwrap();
    let mut state = state(&nested(128));
    assert_eq!(state.value(&deepest).unwrap().number(), Some("1"));
    let before = state.clone();
    for at in ["", "a", "a/a"] {
        for text in [nested(200_000), arrays(200_000), "[".repeat(200_000), nested(129)] {
            state.put(&path(at), &text, Some(Timestamp(1)), Revision(2));
            state.set(&path(at), &text, Revision(2));
            state.merge(&path(at), &text, Revision(2));
            state.append(&path("list"), [text.as_str()], Revision(2));
            assert!(!state.value(&StatePath::root()).unwrap().equals(&text));
            assert_eq!(State::restore(&text, &[]), None);
        }
    }
    // A path and a value together are no deeper than a value alone.
    state.put(&deepest, "{}", None, Revision(2));
    state.append(&path("list"), [&*arrays(127)], Revision(2));
    assert_eq!(state, before);
    state.put(&deepest, "2", None, Revision(2));
    state.append(&path("list"), [&*arrays(126)], Revision(2));
    assert!(state != before);
    assert_eq!(State::restore(&text(&state), &state.revisions()), Some(state));
}
