//! Tests of refused bases, with their reasons.

use super::base::*;
use crate::stored::Unreadable;
use crate::stored::base::read::BaseReader;
use crate::stored::base::unsound::Unsound;
use crate::tests::board::*;
use crate::*;

const DIGEST: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

fn unsound(text: &str) -> Unsound {
    match read_text(text) {
        Err(Unreadable::Base(unsound)) => unsound,
        other => panic!("{other:?} of {text}"),
    }
}

/// Returns the fault of the golden base after this replacement.
fn changed(from: &str, to: &str) -> Unsound {
    assert!(golden().contains(from), "{from}");
    unsound(&golden().replacen(from, to, 1))
}

#[test]
fn counters_are_within_their_bounds() {
    let max = REVISION_MAX - (1 << 32);
    for (from, to, found, max) in [
        (r#""revision":41,"upd"#, r#""revision":9007194959773697,"upd"#, max + 1, max),
        (r#""last_seq":9"#, r#""last_seq":18446744073709551615"#, u64::MAX, max),
        (r#""last_seq":3"#, r#""last_seq":18446744073709551615"#, u64::MAX, max),
        (r#""changed":41"#, r#""changed":42"#, 42, 41),
        (r#""changed":12"#, r#""changed":42"#, 42, 41),
        (r#""configured":5"#, r#""configured":42"#, 42, 41),
        (r#""agents_changed":36"#, r#""agents_changed":42"#, 42, 41),
        (r#""checkpoints_changed":20"#, r#""checkpoints_changed":42"#, 42, 41),
        (r#""floor":2"#, r#""floor":42"#, 42, 41),
        (r#""fences_after":26"#, r#""fences_after":42"#, 42, 41),
        (r#""revision":3,"#, r#""revision":42,"#, 42, 41),
        (r#""fence":29"#, r#""fence":42"#, 42, 41),
        (r#""fence":28"#, r#""fence":42"#, 42, 41),
        ("[39,38,37,36,39]", "[39,38,42,36,39]", 42, 41),
        (r#""changed":35"#, r#""changed":42"#, 42, 41),
        (r#""name":"v1","revision":11"#, r#""name":"v1","revision":42"#, 42, 41),
        (r#"4881",1]]"#, r#"4881",18446744073709551615]]"#, u64::MAX, max),
    ] {
        assert_eq!(changed(from, to), Unsound::Count { found, max }, "{to}");
    }
}

#[test]
fn nothing_happened_before_1970() {
    for (from, to) in [
        (r#""updated_at":2000,"w"#, r#""updated_at":-1,"w"#),
        (r#""written_at":1999"#, r#""written_at":-1"#),
        (r#""created_at":999"#, r#""created_at":-1"#),
        (r#""at":1000,"item""#, r#""at":-1,"item""#),
        (r#""updated_at":2000,"updated_by""#, r#""updated_at":-1,"updated_by""#),
        (r#""done":{"agent":"A","at":1999"#, r#""done":{"agent":"A","at":-1"#),
        (r#""registered_at":1000"#, r#""registered_at":-1"#),
        (r#""updated_at":1500"#, r#""updated_at":-9223372036854775808"#),
        (r#""last_seen":2000"#, r#""last_seen":-1"#),
        (r#""at":1100"#, r#""at":-1"#),
        (r#""at":1001}]"#, r#""at":-1}]"#),
    ] {
        assert_eq!(changed(from, to), Unsound::Time, "{to}");
    }
}

#[test]
fn seqs_ascend_to_the_last_that_was_given() {
    let seq = |log, found| Unsound::Seq { log, found: Seq(found) };
    let questions = |found| seq(LogName::Questions, found);
    assert_eq!(changed(r#"{"seq":4,"#, r#"{"seq":2,"#), questions(2));
    assert_eq!(changed(r#"{"seq":4,"#, r#"{"seq":1,"#), questions(1));
    assert_eq!(changed(r#"{"seq":2,"#, r#"{"seq":0,"#), questions(0));
    assert_eq!(changed(r#"{"seq":5,"#, r#"{"seq":10,"#), questions(10));
    assert_eq!(changed(r#""last_seq":9"#, r#""last_seq":4"#), questions(5));
    assert_eq!(changed(r#"本","last_seq":1"#, r#"本","last_seq":0"#), seq(memory("日 本"), 1));
}

#[test]
fn an_entry_is_one_of_its_log() {
    let entry = |log, seq| Unsound::Entry { log, seq: Seq(seq) };
    let work = r#""work":{"lapsed":{"fence":1}},"item":"#;
    assert_eq!(changed(r#""item":"#, work), entry(LogName::Questions, 2));
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(ITEM_BYTES_MAX * 2));
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(128), "]".repeat(128));
    for item in
        ["[]", "1", "null", "\"text\"", r#"{"x":1e999}"#, r#"{"x":"\ud800"}"#, &large, &deep]
    {
        let unsound = changed(r#""item":{"question":"?"}"#, &format!("\"item\":{item}"));
        assert_eq!(unsound, entry(LogName::Questions, 2), "{item:.40}");
    }
    for (from, to) in [
        (r#""at":14"#, r#""at":13"#),
        (r#""at":14"#, r#""at":15"#),
        (r#""at":14"#, r#""at":18446744073709551615"#),
        ("data:image/png;base64,", r#"data:image/png;base64,\",\"x\":\""#),
        ("data:image/png;base64,", ""),
    ] {
        assert_eq!(changed(from, to), entry(LogName::Screenshots, 1), "{to}");
    }
}

#[test]
fn an_image_is_one_of_the_session() {
    let sha256 = Digest::from_hex(DIGEST).unwrap();
    let two = golden().replace(r#"4881",1]]"#, r#"4881",2]]"#);
    assert_eq!(unsound(&two), Unsound::Image { sha256 });
    let none: Vec<_> =
        golden().lines().filter(|l| !l.contains("\"images\"")).map(str::to_owned).collect();
    let none = none.join("\n").replace(r#""parts":14"#, r#""parts":13"#);
    assert_eq!(unsound(&none), Unsound::Image { sha256 });
    let other = golden().replace("{\"blobs\":[{\"sha256\":\"2d", "{\"blobs\":[{\"sha256\":\"2e");
    let sha256 = Digest::from_hex(&DIGEST.replacen("2d", "2e", 1)).unwrap();
    assert_eq!(unsound(&other), Unsound::Image { sha256 });
    assert_eq!(changed(r#""uploaded_at":1500"#, r#""uploaded_at":-1"#), Unsound::Time);
}

#[test]
fn nothing_comes_twice() {
    let of_a = Unsound::Owned { log: LogName::Memory(agent("a")) };
    let again = |part: &str, element: &str| {
        let line = golden().lines().find(|line| line.starts_with(part)).unwrap().to_owned();
        changed(&line, &line.replacen(element, &format!("{element},{element}"), 1))
    };
    let agent = r#"{"name":"日本","profile":{"status":"CONTINUE","type":"T"},"registered_at":1001,"updated_at":1001,"changed":9}"#;
    assert_eq!(again("{\"agents\"", agent), Unsound::Repeated { of: "agents" });
    let checkpoint = r#"{"name":"v1","revision":11,"at":1050}"#;
    assert_eq!(again("{\"checkpoints\"", checkpoint), Unsound::Repeated { of: "checkpoints" });
    let awaited = r#"{"seq":5,"expires_at":66000}"#;
    assert_eq!(again("{\"awaited\"", awaited), Unsound::Awaited { question: Seq(5) });
    let key = format!(r#"{{"key":"a","fingerprint":"{DIGEST}","answer":null,"at":1001}}"#);
    assert_eq!(again("{\"keys\"", &key), Unsound::Repeated { of: "keys" });
    assert_eq!(
        again("{\"images\"", &format!("[\"{DIGEST}\",1]")),
        Unsound::Repeated { of: "images" }
    );
    let blob = format!(r#"{{"sha256":"{DIGEST}","media_type":"a/b; c=\"d\"","uploaded_at":1500}}"#);
    assert_eq!(again("{\"blobs\"", &blob), Unsound::Repeated { of: "blobs" });
    let memory = r#"{"agent":"a","last_seq":3,"changed":12}"#;
    assert_eq!(again("{\"memories\"", memory), of_a);
    let lifetime = r#"[["a"],63000]"#;
    assert_eq!(again("{\"expiries\"", lifetime), Unsound::Lifetime { path: path("a") });
}

#[test]
fn keys_and_checkpoints_are_bounded() {
    let with = |part: &str, elements: Vec<String>| {
        let line = golden().lines().find(|line| line.starts_with(part)).unwrap().to_owned();
        golden().replace(&line, &format!("{part}:[{}]}}", elements.join(",")))
    };
    let keys = |count: usize| {
        let key = |i| format!(r#"{{"key":"{i}","fingerprint":"{DIGEST}","answer":1,"at":1}}"#);
        with("{\"keys\"", (0..count).map(key).collect())
    };
    assert_eq!(read_text(&keys(10_000)).unwrap().keys().len(), 10_000);
    assert_eq!(unsound(&keys(10_001)), Unsound::Repeated { of: "keys" });
    let checkpoints = |count: usize| {
        let checkpoint = |i| format!(r#"{{"name":"c{i}","revision":1,"at":1}}"#);
        with("{\"checkpoints\"", (0..count).map(checkpoint).collect())
    };
    assert_eq!(read_text(&checkpoints(1_000)).unwrap().checkpoints().len(), 1_000);
    assert_eq!(unsound(&checkpoints(1_001)), Unsound::Repeated { of: "checkpoints" });
}

#[test]
fn only_an_open_question_waits_and_only_what_is_there_ends() {
    let question = |seq| Unsound::Awaited { question: Seq(seq) };
    assert_eq!(changed(r#"[{"seq":2,"exp"#, r#"[{"seq":4,"exp"#), question(4));
    assert_eq!(changed(r#"[{"seq":2,"exp"#, r#"[{"seq":3,"exp"#), question(3));
    assert_eq!(changed(r#"{"question":"?"}"#, r#"{"question":"?","answer":null}"#), question(2));
    assert_eq!(changed(r#"{"question":"?"}"#, r#"{"question":1}"#), question(2));
    let lifetime = |at| Unsound::Lifetime { path: path(at) };
    assert_eq!(changed(r#"["a","b"]"#, r#"["a","x"]"#), lifetime("a/x"));
    assert_eq!(changed(r#"["a","b"]"#, r#"["a","c","0"]"#), lifetime("a/c/0"));
    let unknown = r#"{"log":{"memory":"b"},"#;
    let memory = Unsound::Owned { log: LogName::Memory(agent("b")) };
    assert_eq!(changed(r#"{"log":{"memory":"日 本"},"#, unknown), memory);
}

#[test]
fn a_state_has_its_revisions_and_is_no_deeper_than_the_bound() {
    let state = |document: &str, changed: &str| {
        let lines = golden().replace(r#"{"a":{"b":1.50,"c":[1,{"x":2}]},"d/e":null}"#, document);
        let lines = lines.replace("39,38,37,36,39", changed);
        let expiries = r#"{"expiries":[[["a"],63000],[["a","b"],64000]]}"#;
        read_text(&lines.replace(expiries, r#"{"expiries":[]}"#))
    };
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(state("{}", "39").is_ok());
    assert!(state(&nested(128), &["1"; 129].join(",")).is_ok());
    for (document, changed) in [
        ("{}", ""),
        ("{}", "39,39"),
        (r#"{"a":1}"#, "39"),
        (r#"{"a":1,"\u0061":2}"#, "39,39,39"),
        ("[]", "39"),
        ("1", "39"),
        ("null", "39"),
        (r#"{"a":"\ud800"}"#, "39,39"),
        (r#"{"a":-1e999}"#, "39,39"),
        (&nested(129), &["1"; 130].join(",")),
    ] {
        let read = state(document, changed);
        assert!(matches!(read, Err(Unreadable::State)), "{document:.40}: {read:?}");
    }
}

#[test]
fn an_agent_has_a_profile_with_a_status() {
    for profile in ["{}", r#"{"status":1}"#, "[]", "1", r#"{"status":"A","x":"\udc00"}"#] {
        let text = golden().replace(r#"{"status" : "PENDING"}"#, profile);
        assert!(matches!(read_text(&text), Err(Unreadable::Profile)), "{profile}");
    }
}

#[test]
fn what_does_not_exist_has_nothing() {
    let board = Board::absent(ID, Revision(9));
    let text = text_of(&board);
    for (from, to) in [
        (r#""last_seq":0"#, r#""last_seq":1"#),
        (r#""changed":0"#, r#""changed":1"#),
        (r#""agents_changed":0"#, r#""agents_changed":1"#),
        (r#""checkpoints_changed":0"#, r#""checkpoints_changed":1"#),
        (r#""floor":0"#, r#""floor":1"#),
        (r#""fences_after":0"#, r#""fences_after":1"#),
        (r#""document":{},"changed":[0]"#, r#""document":{},"changed":[1]"#),
        (r#""document":{},"changed":[0]"#, r#""document":{"a":1},"changed":[0,0]"#),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(unsound(&text.replacen(from, to, 1)), Unsound::Lifeless, "{to}");
    }
    let life = golden().lines().next().unwrap().find("\"life\"").unwrap();
    let logs = golden().find(r#""logs""#).unwrap();
    let lifeless = [&golden()[..life], &golden()[logs..]].concat();
    assert_eq!(unsound(&lifeless), Unsound::Lifeless);
}

#[test]
fn parts_come_in_their_order_and_all_of_them() {
    let golden = golden();
    let lines: Vec<&str> = golden.lines().collect();
    for at in 0..lines.len() {
        let mut cut = lines.clone();
        cut.remove(at);
        let found = unsound(&cut.join("\n"));
        let needed = [0, 6, lines.len() - 1].contains(&at);
        let fits = match at {
            1 => matches!(found, Unsound::Owned { .. }),
            2 => matches!(found, Unsound::Awaited { .. }),
            12 => matches!(found, Unsound::Image { .. }),
            _ if needed => found == Unsound::Order,
            _ => found == Unsound::Parts { declared: 14, found: 13 },
        };
        assert!(fits, "{at}: {found}");
        assert_eq!(unsound(&lines[..at].join("\n")), Unsound::Order);
    }
    for (a, b) in
        [(0, 1), (1, 2), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11), (11, 12), (13, 14)]
    {
        let mut swapped = lines.clone();
        swapped.swap(a, b);
        let found = unsound(&swapped.join("\n"));
        let known = matches!(found, Unsound::Order | Unsound::Parts { .. });
        assert!(known, "{a} {b}: {found}");
    }
    let end = r#"{"end":{"parts":14}}"#;
    assert_eq!(unsound(&format!("{golden}\n{end}")), Unsound::Order);
    assert_eq!(changed("\"version\":1", "\"version\":2"), Unsound::Version { found: 2 });
    assert!(matches!(read([]), Err(Unreadable::Base(Unsound::Order))));
    let part = lines[0].replace("{\"head\":", "{\"head\":\n");
    let taken = BaseReader::new(ID).take(part.as_bytes());
    assert!(matches!(taken, Err(Unreadable::Base(Unsound::LineBreak))), "{taken:?}");
}

#[test]
fn nothing_is_taken_after_a_part_that_was_refused() {
    let mut reader = BaseReader::new(ID);
    for line in golden().lines() {
        if line.contains("\"keys\"") {
            reader.take(b"{}").unwrap_err();
        }
        assert_eq!(
            reader.take(line.as_bytes()).is_ok(),
            golden().find(line) < golden().find("{\"keys\"")
        );
    }
    assert!(matches!(reader.finish(), Err(Unreadable::Base(Unsound::Order))));
}
