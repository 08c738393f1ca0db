//! Tests of selections: filters of entries, and the order of a walk.

use std::sync::Arc;

use super::board::*;
use crate::json::Exact;
use crate::*;

use crate::{BoardCommand, LogCommand};
use LogName::{Questions, Requests, Screenshots, Trajectories};

fn entry(author: Option<&str>, item: Item) -> Entry {
    let agent = author.map(agent);
    let (seq, revision, at) = (Seq(1), Revision(1), Timestamp(0));
    let (updated, work, task, acked_at) = Default::default();
    Entry { seq, revision, at, agent, updated, work, task, acked_at, item }
}

fn matches(filter: &Filter, text: &str) -> bool {
    filter.matches(&Trajectories, &entry(None, item(text)))
}

fn has(texts: &[(Field, &str)]) -> Filter {
    Filter::of_texts(texts.iter().map(|(field, text)| (*field, Some((*text).to_owned()))))
}

fn contains(text: &str) -> Filter {
    Filter { contains: Some(Contains::new(text)), ..Default::default() }
}

#[track_caller]
fn check_contains(wanted: &str, text: &str, expected: bool) {
    assert_eq!(matches(&contains(wanted), text), expected, "{wanted:?} in {text}");
}

#[test]
fn a_text_is_found_in_any_string_value() {
    for text in [
        r#"{"a":"an error here"}"#,
        r#"{"a":{"b":[1,[{"c":"ERROR"}]]}}"#,
        r#"{"a":"","b":"\u0065rror"}"#,
        r#"{"a":"error","a":1}"#,
    ] {
        check_contains("error", text, true);
    }
    for text in ["{}", r#"{"error":1}"#, r#"{"a":{"error":"x"}}"#, r#"{"a":"err","b":"or"}"#] {
        check_contains("error", text, false);
    }
}

#[test]
fn numbers_and_words_are_no_text() {
    check_contains("1", r#"{"a":1,"b":[11]}"#, false);
    check_contains("true", r#"{"a":true,"b":null}"#, false);
    check_contains("1", r#"{"a":"1"}"#, true);
}

#[test]
fn normal_forms_are_one_and_accents_are_not() {
    for (wanted, value, expected) in [
        ("café", "CAFE\u{301}", true),
        ("cafe\u{301}", "CAFÉS", true),
        ("cafe", "cafe\u{301}", false),
        ("cafe", "café", false),
        ("한글", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}.docx", true),
        ("하", "\u{1112}\u{1161}\u{11AB}", false),
        ("\u{212B}", "a\u{30A}", true),
    ] {
        check_contains(wanted, &format!(r#"{{"a":"{value}"}}"#), expected);
    }
}

#[test]
fn letter_case_is_folded_as_unicode_has_it() {
    for (wanted, value, expected) in [
        ("STRASSE", "Straße", true),
        ("straße", "STRASSE", true),
        ("ß", "SS", true),
        ("ẞ", "ß", true),
        ("ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς", true),
        ("σ", "ς", true),
        ("ς", "Σ", true),
        ("ﬁ", "FI", true),
        ("K", "k", true),
        ("ı", "I", false),
        ("i", "İ", true),
        ("i\u{307}", "İ", true),
        ("istanbul", "İstanbul", false),
        ("I", "i", true),
        ("é", "e\u{301}", true),
        ("日本", "日本語", true),
        ("\n", "a\\nb", true),
        ("\\", "a\\\\b", true),
    ] {
        check_contains(wanted, &format!(r#"{{"a":"{value}"}}"#), expected);
    }
}

#[test]
fn an_empty_text_is_in_every_string_and_in_nothing_else() {
    check_contains("", r#"{"a":""}"#, true);
    check_contains("", r#"{"a":1}"#, false);
}

#[test]
fn a_screenshots_image_is_not_looked_into() {
    let text = r#"{"metadata":{"image_str":"inner"},"image_str":"outer"}"#;
    let found = |log, wanted| contains(wanted).matches(&log, &entry(None, item(text)));
    assert!(found(Screenshots, "inner"));
    assert!(!found(Screenshots, "outer"));
    assert!(found(Requests, "outer"));
}

#[test]
fn a_status_is_the_items_or_that_of_one_of_its_results() {
    let fail = has(&[(Field::Status, "FAIL")]);
    for text in [
        r#"{"status":"FAIL"}"#,
        r#"{"status":"\u0046AIL"}"#,
        r#"{"status":"OK","results":[{"status":"OK"},{"status":"FAIL"}]}"#,
        r#"{"results":["FAIL",{"status":1,"status":"FAIL"}]}"#,
        r#"{"status":"OK","status":"FAIL"}"#,
    ] {
        assert!(matches(&fail, text), "{text}");
    }
    for text in [
        "{}",
        r#"{"status":"fail"}"#,
        r#"{"status":["FAIL"]}"#,
        r#"{"status":"FAIL","status":"OK"}"#,
        r#"{"results":{"status":"FAIL"}}"#,
        r#"{"results":[[{"status":"FAIL"}],"FAIL"]}"#,
        r#"{"result":{"status":"FAIL"}}"#,
    ] {
        assert!(!matches(&fail, text), "{text}");
    }
    let true_word = has(&[(Field::Status, "true")]);
    assert!(!matches(&true_word, r#"{"status":true}"#));
}

#[test]
fn an_agent_is_the_author_or_else_the_items_member() {
    let filter = has(&[(Field::Agent, "A")]);
    for (author, text, expected) in [
        (Some("A"), "{}", true),
        (Some("A"), r#"{"agent":"B"}"#, true),
        (Some("B"), r#"{"agent":"A"}"#, false),
        (None, r#"{"agent":"A"}"#, true),
        (None, r#"{"agent":["A"]}"#, false),
        (None, "{}", false),
    ] {
        let found = filter.matches(&Trajectories, &entry(author, item(text)));
        assert_eq!(found, expected, "{author:?} {text}");
    }
}

#[test]
fn steps_are_compared_by_exact_value() {
    let steps = |all: &[&str]| Filter {
        steps: Some(all.iter().filter_map(|s| Exact::parse(s)).collect()),
        ..Default::default()
    };
    for (wanted, step, expected) in [
        ("2", "2.0", true),
        ("2.0", "2", true),
        ("2", "2e0", true),
        ("0", "-0.0", true),
        ("0.1", "1e-1", true),
        ("9007199254740993", "9007199254740992", false),
        ("9007199254740993", "9007199254740993.0", false),
        ("1e22", "10000000000000000000000", true),
        ("2", "\"2\"", false),
        ("1", "true", false),
        ("0", "null", false),
        ("0", "[]", false),
    ] {
        let text = format!(r#"{{"step":{step}}}"#);
        assert_eq!(matches(&steps(&[wanted]), &text), expected, "{wanted} {step}");
    }
    assert!(matches(&steps(&["1", "2"]), r#"{"step":3,"step":2}"#));
    assert!(!matches(&steps(&["2"]), r#"{"steps":2}"#));
    assert!(!matches(&steps(&[]), r#"{"step":2}"#));
}

const PENDING: Filter = Filter {
    steps: None,
    texts: Vec::new(),
    contains: None,
    pending: true,
    in_review: false,
    unacked: false,
};

#[test]
fn a_question_is_pending_until_it_has_an_answer_of_any_kind() {
    for (text, expected) in [
        (r#"{"question":"q"}"#, true),
        (r#"{"text":"q"}"#, true),
        (r#"{"question":1,"text":"q"}"#, true),
        (r#"{"question":"q","answers":"a"}"#, true),
        (r#"{"question":"q","answer":"a"}"#, false),
        (r#"{"text":"q","answer":""}"#, false),
        (r#"{"question":"q","\u0061nswer":null}"#, false),
        (r#"{"question":1}"#, false),
        (r#"{"question":"q","question":1}"#, false),
        ("{}", false),
    ] {
        let question = entry(None, item(text));
        assert_eq!(PENDING.matches(&Questions, &question), expected, "{text}");
        assert!(
            PENDING.matches(&Trajectories, &question) && PENDING.matches(&memory("a"), &question)
        );
    }
}

#[test]
fn a_request_is_pending_while_it_is_neither_claimed_nor_done() {
    let (since, expires_at) = (Timestamp(0), Timestamp(9));
    let claim = Claim { agent: agent("A"), fence: Revision(2), since, expires_at };
    let done = Done { agent: None, at: Timestamp(0), fence: None, result: None, verdict: None };
    for (work, expected) in [
        (None, true),
        (Some(Work::Lapsed { fence: Revision(2) }), true),
        (Some(Work::Claimed(claim)), false),
        (Some(Work::Done(done)), false),
    ] {
        let request = Entry { work: work.map(Box::new), ..entry(None, item(r#"{"answer":1}"#)) };
        assert_eq!(PENDING.matches(&Requests, &request), expected, "{request:?}");
        assert!(Filter::default().matches(&Requests, &request));
        assert!(PENDING.matches(&Screenshots, &request));
    }
    assert!(!PENDING.is_empty());
}

#[test]
fn every_part_of_a_filter_must_hold() {
    let filter = Filter {
        contains: Some(Contains::new("x")),
        ..has(&[(Field::Status, "OK"), (Field::Key, "k")])
    };
    assert!(matches(&filter, r#"{"key":"k","status":"OK","a":"x"}"#));
    assert!(!matches(&filter, r#"{"key":"k","status":"OK"}"#));
    assert!(!matches(&filter, r#"{"key":"l","status":"OK","a":"x"}"#));
    assert!(!matches(&filter, r#"{"key":"k","status":"NO","a":"x"}"#));
    assert!(matches(&Filter::default(), "{}") && Filter::default().is_empty());
    assert!(!filter.is_empty());
}

/// A log of the seqs 2, 3, 5, 6 and 9.
fn gaps() -> Arc<Board> {
    let mut board = board_of([append(Requests, vec![item("{}"); 10])]);
    for seq in [1, 4, 7, 8, 10].map(Seq) {
        carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq }));
    }
    Arc::new(board)
}

fn walked(after: Option<u64>, before: Option<u64>, order: Order) -> Vec<u64> {
    let (after, before) = (after.map(Seq), before.map(Seq));
    let selection = Selection { after, before, order, filter: Filter::default() };
    selection.walk(&gaps(), &Requests).map(|entry| entry.seq.0).collect()
}

#[test]
fn a_walk_keeps_its_bounds_with_or_without_entries_there() {
    let all = [2, 3, 5, 6, 9];
    let bounds: Vec<_> = std::iter::once(None).chain((0..12).map(Some)).collect();
    for &after in bounds.iter().chain([&Some(u64::MAX)]) {
        for &before in bounds.iter().chain([&Some(u64::MAX)]) {
            let inside =
                |seq: &u64| after.is_none_or(|a| *seq > a) && before.is_none_or(|b| *seq < b);
            let mut expected: Vec<_> = all.into_iter().filter(inside).collect();
            assert_eq!(walked(after, before, Order::Ascending), expected, "{after:?} {before:?}");
            expected.reverse();
            assert_eq!(walked(after, before, Order::Descending), expected, "{after:?} {before:?}");
        }
    }
}

#[test]
fn a_walk_along_nothing_is_over_at_once() {
    let empty = Arc::new(board_of([
        append(Requests, items(["{}"])),
        Command::Board(BoardCommand::Clear { state: false }),
    ]));
    for (board, log) in [
        (gaps(), Trajectories),
        (gaps(), memory("a")),
        (Arc::clone(&empty), Requests),
        (Arc::new(absent()), Requests),
    ] {
        let mut walk = Selection::default().walk(&board, &log);
        assert!(walk.is_over());
        assert_eq!(walk.next(), None);
        assert_eq!(walk.log(), &log);
    }
}

#[test]
fn a_walk_goes_on_where_it_stood_on_the_board_where_it_began() {
    let mut board = gaps();
    let mut walk = Selection::default().walk(&board, &Requests);
    assert_eq!(walk.next().unwrap().seq, Seq(2));
    carry_out(Arc::make_mut(&mut board), Command::Board(BoardCommand::Clear { state: false }));
    let rest: Vec<_> = walk.clone().map(|entry| entry.seq.0).collect();
    assert_eq!((rest, walk.is_over()), (vec![3, 5, 6, 9], false));
    assert_eq!(walk.board().revision(), Revision(6));
}

/// A log of 3,000 steps, of which each thousandth stands out, and two were changed since.
fn long() -> Arc<Board> {
    let step = |n: usize| match n {
        _ if n.is_multiple_of(1_000) => {
            format!(r#"{{"step":{n}.0,"results":[{{"status":"FAIL"}}],"key":"k{n}","agent":"B"}}"#)
        }
        _ => format!(r#"{{"step":{n},"status":"OK","pad":"{}"}}"#, "x".repeat(200)),
    };
    let steps = |range: std::ops::RangeInclusive<usize>| range.map(|n| item(&step(n))).collect();
    let mut board = board_of([append(Trajectories, steps(1..=1_500))]);
    carry_out(&mut board, append(Trajectories, steps(1_501..=3_000)));
    for (seq, text) in [(7, r#"{"status":"FAIL"}"#), (1_000, "{}")] {
        let (item, log, seq) = (item(text), Trajectories, Seq(seq));
        carry_out(&mut board, Command::Log(log, LogCommand::PutEntry { seq, item, basis: None }));
    }
    Arc::new(board)
}

#[test]
fn a_walk_passes_over_what_has_no_match_and_misses_none() {
    let board = long();
    let log = board.log(&Trajectories).unwrap();
    let steps = |steps: &[&str]| Some(steps.iter().map(|s| Exact::parse(s).unwrap()).collect());
    for (filter, count) in [
        (has(&[(Field::Status, "FAIL")]), 3),
        (has(&[(Field::Status, "NEVER")]), 0),
        (has(&[(Field::Agent, "B")]), 2),
        (has(&[(Field::Agent, "C")]), 0),
        (has(&[(Field::Key, "k2000")]), 1),
        (Filter { steps: steps(&["1.5e1", "2000", "9999"]), ..Filter::default() }, 2),
        (Filter { steps: steps(&["7"]), ..has(&[(Field::Status, "OK")]) }, 0),
        (has(&[(Field::Status, "FAIL"), (Field::Agent, "B")]), 2),
    ] {
        for (after, before) in
            [(None, None), (Some(Seq(6)), None), (Some(Seq(1)), Some(Seq(2_990)))]
        {
            let inside = |entry: &&Arc<Entry>| {
                after.is_none_or(|after| entry.seq > after)
                    && before.is_none_or(|before| entry.seq < before)
            };
            let mut all: Vec<_> = log.iter().filter(inside).map(|entry| entry.seq).collect();
            for order in [Order::Ascending, Order::Descending] {
                let selection = Selection { after, before, order, filter: filter.clone() };
                let walked: Vec<_> = selection.walk(&board, &Trajectories).collect();
                let is_match = |entry: &&Arc<Entry>| filter.matches(&Trajectories, entry);
                let matched: Vec<_> = walked.iter().filter(is_match).map(|e| e.seq).collect();
                let expected = all.iter().filter(|seq| is_match(&log.get(**seq).unwrap()));
                assert!(matched.iter().eq(expected), "{filter:?} {after:?} {before:?} {order:?}");
                assert_eq!(walked.last().map(|entry| entry.seq), all.last().copied());
                assert!(
                    walked.len() <= (2 + count) * CHUNK_ENTRIES,
                    "{} of {filter:?}",
                    walked.len()
                );
                all.reverse();
            }
        }
    }
}
