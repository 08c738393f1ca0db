//! Events of each kind as lines.

use super::*;

fn shown(changes: &str) -> String {
    let data = format!(
        r#"{{"revision":7,"at":"2026-11-21T07:03:11.123Z","agent":"A","changes":[{changes}]}}"#
    );
    let commit = Commit::read(&data).unwrap();
    commit_line(Paint::Plain, "kind", &commit, &sentences(&commit))
}

fn said(change: &str) -> String {
    let whole = shown(change);
    let head = "     7 07:03:11 A            kind           ";
    whole.strip_prefix(head).unwrap_or_else(|| panic!("{whole}")).to_owned()
}

#[test]
fn each_kind_of_change_says_what_and_where() {
    for (change, expected) in [
        (
            r#"{"kind":"appended","log":"requests","entries":[{"seq":3,"item":{"n": 1.0}}]}"#,
            r#"requests/3 {"n": 1.0}"#,
        ),
        (
            r#"{"kind":"appended","log":"requests","entries":[{"seq":3,"item":{"a":1}},{"seq":5,"item":{}}]}"#,
            r#"requests/3-5 {"a":1} …"#,
        ),
        (
            r#"{"kind":"appended","log":"screenshots","first":3,"count":2,"url":"/x"}"#,
            "screenshots/3-4 large",
        ),
        (r#"{"kind":"cleared","log":"requests"}"#, "requests cleared"),
        (
            r#"{"kind":"removed","log":"requests","ranges":[[1,1],[3,5]]}"#,
            "requests/1, 3-5 removed",
        ),
        (r#"{"kind":"updated","log":"requests","seq":3,"item":{"a":1}}"#, r#"requests/3 {"a":1}"#),
        (
            r#"{"kind":"updated","log":"questions","seq":3,"item":{"question":"q?","answer":"yes"}}"#,
            r#"questions/3 "q?" → "yes""#,
        ),
        (
            r#"{"kind":"updated","log":"questions","seq":3,"item":{"text":"q?","answer":null,"skipped":true}}"#,
            r#"questions/3 "q?" → skipped"#,
        ),
        (
            r#"{"kind":"acked","log":"agents/B/messages","seq":3}"#,
            "agents/B/messages/3 acknowledged",
        ),
        (r#"{"kind":"state_put","path":"a/b","value":{"c": 1}}"#, r#"state/a/b = {"c": 1}"#),
        (r#"{"kind":"state_put","path":"","value":{}}"#, "state = {}"),
        (r#"{"kind":"state_merged","path":"a","patch":{}}"#, "state/a merged {}"),
        (r#"{"kind":"state_appended","path":"a","elements":[1]}"#, "state/a appended [1]"),
        (r#"{"kind":"state_removed","path":"a"}"#, "state/a removed"),
        (r#"{"kind":"state_expired","path":"a"}"#, "state/a expired"),
        (r#"{"kind":"state_put","path":"a","url":"/x"}"#, "state/a changed, large"),
        (
            r#"{"kind":"agent_put","agent":"B","value":{"status":"FAIL"}}"#,
            r#"agents/B {"status":"FAIL"}"#,
        ),
        (r#"{"kind":"agent_removed","agent":"B"}"#, "agents/B removed"),
        (
            r#"{"kind":"claimed","request":4,"agent":"B","fence":12,"expires_at":"x"}"#,
            "requests/4 claimed by B, fence 12",
        ),
        (r#"{"kind":"finished","request":4,"fence":12,"result":[1]}"#, "requests/4 done: [1]"),
        (r#"{"kind":"failed","request":4,"reason":"r"}"#, r#"requests/4 failed: "r""#),
        (r#"{"kind":"released","request":4}"#, "requests/4 released"),
        (r#"{"kind":"claim_expired","request":4}"#, "requests/4 claim expired"),
        (
            r#"{"kind":"cancel_requested","request":4,"reason":"r"}"#,
            r#"requests/4 cancel requested: "r""#,
        ),
        (r#"{"kind":"deadline_passed","request":4}"#, "requests/4 deadline passed"),
        (r#"{"kind":"verdict","request":4,"accept":true}"#, "requests/4 accepted"),
        (r#"{"kind":"verdict","request":4,"accept":false,"reason":1}"#, "requests/4 rejected: 1"),
        (r#"{"kind":"due","requests":[[1,4],[7,7]]}"#, "requests/1-4, 7 due"),
        (r#"{"kind":"question_expired","question":4}"#, "questions/4 expired"),
        (r#"{"kind":"planned","first":3,"last":3,"attempts":2}"#, "requests/3 planned"),
        (r#"{"kind":"awaited","first":3,"last":4,"expires_at":"x"}"#, "questions/3-4 expire"),
        (r#"{"kind":"checkpoint_put","name":"v1"}"#, "checkpoint v1"),
        (
            r#"{"kind":"restored","to":3,"logs":[],"state":[],"agents":[]}"#,
            "restored to revision 3",
        ),
        (r#"{"kind":"adopted","after":0,"fork_of":"demo"}"#, "forked from demo"),
        (r#"{"kind":"budget_exhausted"}"#, "budget exhausted"),
        (r#"{"kind":"created","settings":{},"labels":{}}"#, "created"),
        (r#"{"kind":"of_tomorrow","thing":3}"#, "of tomorrow"),
    ] {
        assert_eq!(said(change), expected, "{change}");
    }
}

#[test]
fn an_event_is_one_bounded_line_whatever_is_in_it() {
    let hostile = r#"{"kind":"agent_put","agent":"\u001b[2J\u202e","value":{}}"#;
    assert_eq!(said(hostile), "agents/\\u001b[2J\\u202e {}");
    let long = format!(r#"{{"kind":"state_put","path":"a","value":"{}"}}"#, "x".repeat(5_000));
    assert!(said(&long).len() < 220 && said(&long).ends_with('…'));
    let many = vec![r#"{"kind":"cleared","log":"requests"}"#; 50].join(",");
    assert!(said(&many).ends_with("requests cleared; and 42 more"), "{}", said(&many));
}

#[test]
fn an_agent_of_wide_characters_keeps_the_columns() {
    let line = |agent: &str| {
        let data = format!(
            r#"{{"revision":7,"at":"2026-11-21T07:03:11.123Z","agent":"{agent}","changes":[]}}"#
        );
        commit_line(Paint::Plain, "kind", &Commit::read(&data).unwrap(), &[])
    };
    assert_eq!(line("北京🚀"), "     7 07:03:11 北京🚀       kind           ");
    assert_eq!(line("שלום"), "     7 07:03:11 שלום         kind           ");
}
