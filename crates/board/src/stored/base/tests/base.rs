//! Tests of bases: exact bytes, and round trips of any board in parts of limited size.

use proptest::prelude::*;

use crate::stored::Unreadable;
use crate::stored::base::read::BaseReader;
use crate::stored::base::unsound::Unsound;
use crate::stored::base::write::base_parts;
use crate::tests::board::*;
use crate::tests::plan::{Step, steps};
use crate::*;

const DIGEST: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

/// The parts of a board that has some of everything, one a line.
pub(crate) fn golden() -> String {
    [
        concat!(
            r#"{"head":{"version":1,"revision":41,"updated_at":2000,"written_at":1999,"#,
            r#""life":{"name":"sess_1","created_at":999,"settings":{"screenshot_to_memory":true,"max_items":{"memory":7},"ttl":"1h"},"labels":{"k":"v"},"configured":5},"#,
            r#""logs":[{"last_seq":9,"changed":41},{"last_seq":5,"changed":40},{"last_seq":0,"changed":0},{"last_seq":1,"changed":7}],"#,
            r#""agents_changed":36,"checkpoints_changed":20,"floor":2,"fences_after":26}}"#
        ),
        r#"{"memories":[{"agent":"a","last_seq":3,"changed":12},{"agent":"日 本","last_seq":1,"changed":13}]}"#,
        concat!(
            r#"{"entries":{"log":"questions","entries":["#,
            r#"{"seq":2,"revision":3,"at":1000,"item":{"question":"?"}},"#,
            r#"{"seq":4,"revision":41,"at":1000,"agent":"A","updated_at":2000,"updated_by":"B","item":{}},"#,
            r#"{"seq":5,"revision":40,"at":1001,"updated_at":1999,"item":{"text" : "1.10"}}]}}"#
        ),
        concat!(
            r#"{"entries":{"log":"requests","entries":["#,
            r#"{"seq":1,"revision":30,"at":1000,"updated_at":1999,"updated_by":"A","work":{"claimed":{"agent":"A","fence":29,"since":1500,"expires_at":62000}},"item":{}},"#,
            r#"{"seq":2,"revision":31,"at":1000,"updated_at":1999,"work":{"lapsed":{"fence":28}},"task":{"attempts":3,"priority":-7,"not_before":70000,"deadline":80000,"review":true,"failures":1,"past_attempts":[{"agent":"A","from":1000,"to":1999,"outcome":"lapsed"},{"from":1000,"to":1500,"outcome":"refused"}]},"item":{}},"#,
            r#"{"seq":3,"revision":32,"at":1000,"updated_at":1999,"work":{"done":{"agent":"A","at":1999,"fence":27,"result":[1, 2]}},"item":{}},"#,
            r#"{"seq":4,"revision":33,"at":1000,"updated_at":1999,"work":{"done":{"at":1999}},"item":{}},"#,
            r#"{"seq":5,"revision":34,"at":1000,"updated_at":1999,"work":{"done":{"at":1999,"result":null}},"item":{}}]}}"#
        ),
        &format!(
            r#"{{"entries":{{"log":"screenshots","entries":[{{"seq":1,"revision":7,"at":1000,"item":{{"image_str":""}},"image":{{"at":14,"head":"data:image/png;base64,","sha256":"{DIGEST}","bytes":1,"size":[5,3]}}}}]}}}}"#
        ),
        r#"{"entries":{"log":{"memory":"日 本"},"entries":[{"seq":1,"revision":13,"at":1000,"item":{"step":1}}]}}"#,
        r#"{"state":{"document":{"a":{"b":1.50,"c":[1,{"x":2}]},"d/e":null},"changed":[39,38,37,36,39]}}"#,
        r#"{"expiries":[[["a"],63000],[["a","b"],64000]]}"#,
        concat!(
            r#"{"agents":[{"name":"A","profile":{"status" : "PENDING"},"registered_at":1000,"updated_at":1500,"changed":35,"last_seen":2000},"#,
            r#"{"name":"日本","profile":{"status":"CONTINUE","type":"T"},"registered_at":1001,"updated_at":1001,"changed":9}]}"#
        ),
        r#"{"checkpoints":[{"name":"before","revision":20,"at":1100,"agent":"A"},{"name":"v1","revision":11,"at":1050}]}"#,
        r#"{"awaited":[{"seq":2,"expires_at":65000,"default":"no \"answer\""},{"seq":5,"expires_at":66000}]}"#,
        &format!(
            r#"{{"keys":[{{"key":"z \"1\"","fingerprint":"{DIGEST}","answer":{{"status" : 200}},"at":1000}},{{"key":"a","fingerprint":"{DIGEST}","answer":null,"at":1001}}]}}"#
        ),
        &format!(r#"{{"images":[["{DIGEST}",1]]}}"#),
        &format!(r#"{{"blobs":[{{"sha256":"{DIGEST}","media_type":"a/b; c=\"d\"","uploaded_at":1500}}]}}"#),
        r#"{"end":{"parts":14}}"#,
    ]
    .join("\n")
}

pub(crate) fn parts_of(board: &Board) -> Vec<Vec<u8>> {
    base_parts(board).collect::<Result<_, _>>().unwrap()
}

pub(crate) fn text_of(board: &Board) -> String {
    String::from_utf8(parts_of(board).join(&b'\n')).unwrap()
}

pub(crate) fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Board, Unreadable> {
    let mut reader = BaseReader::new(ID);
    parts.into_iter().try_for_each(|part| reader.take(part))?;
    reader.finish()
}

pub(crate) fn read_text(text: &str) -> Result<Board, Unreadable> {
    read(text.lines().map(str::as_bytes))
}

#[test]
fn a_base_is_these_bytes_and_stays_so() {
    let board = read_text(&golden()).unwrap();
    assert_eq!(text_of(&board), golden());
    let items = [r#"{"question":"?"}"#, "{}", r#"{"text" : "1.10"}"#].join("").len() as u64;
    let profiles = r#"{"status" : "PENDING"}{"status":"CONTINUE","type":"T"}"#.len() as u64;
    let state = r#""a":{"b":1.50,"c":[1,{"x":2}]},"d/e":null"#.len() as u64;
    let work = (5 * 2 + 6 + 4) + r#"{"image_str":""}{"step":1}"#.len() as u64;
    assert_eq!((board.id(), board.oldest()), (ID, Revision(41)));
    assert_eq!((board.bytes(), board.image_bytes()), (items + work + profiles + state, 1));
    let questions = board.log(&LogName::Questions).unwrap();
    assert_eq!((questions.len(), questions.next_seq(), questions.bytes()), (3, Seq(10), items));
    let by = Some("B".parse().unwrap());
    let updated = Some(Box::new(Updated { at: Timestamp(2_000), by }));
    assert_eq!(questions.get(Seq(4)).unwrap().updated, updated);
    assert_eq!((board.agents().len(), board.checkpoints().len()), (2, 2));
    assert!(board.asked().open().iter().eq(&[Seq(2), Seq(5)]), "told by the items");
    let claim_deadlines: Vec<_> = board.tasks().leases().iter().copied().collect();
    assert_eq!(claim_deadlines, [(Timestamp(62_000), Seq(1))], "each claim has its deadline");
    let times = [board.tasks().early(), board.tasks().deadlines()];
    assert!(times.into_iter().flatten().eq(&[70_000, 80_000].map(|at| (Timestamp(at), Seq(2)))));
    let default = board.asked().awaited(Seq(2)).unwrap().default.as_deref();
    assert_eq!((default, board.asked().awaited(Seq(4))), (Some("no \"answer\""), None));
    let keys: Vec<_> = board.keys().iter().map(|(key, _)| &**key).collect();
    assert_eq!((keys, board.keys().bytes()), (vec!["z \"1\"", "a"], 26));
}

#[test]
fn a_claim_without_its_begin_began_at_the_last_change() {
    let board = read_text(&golden().replace("\"since\":1500,", "")).unwrap();
    let since = board.work(Seq(1)).and_then(Work::claim).map(|claim| claim.since);
    assert_eq!(since, Some(Timestamp(1_999)));
}

#[test]
fn a_base_of_a_deleted_session_has_no_life() {
    let board = Board::absent(ID, Revision(9));
    let text = text_of(&board);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains("life"), "{text}");
    assert_eq!(read_text(&text).unwrap(), board);
}

#[test]
fn an_unknown_member_of_a_base_is_refused_in_each_object() {
    let whole = golden();
    for object in [
        r#"{"head""#,
        r#"{"version""#,
        r#"{"name":"sess_1""#,
        r#"{"screenshot_to_memory""#,
        r#"{"memory":7"#,
        r#"{"last_seq":9"#,
        r#"{"memories""#,
        r#"{"agent":"a","last_seq""#,
        r#"{"entries":{"log":"questions""#,
        r#"{"log":"questions""#,
        r#"{"memory":"日 本""#,
        r#"{"seq":2"#,
        r#"{"claimed""#,
        r#"{"agent":"A","fence""#,
        r#"{"lapsed""#,
        r#"{"fence":28"#,
        r#"{"done""#,
        r#"{"agent":"A","at""#,
        r#"{"at":14"#,
        r#"{"state""#,
        r#"{"document""#,
        r#"{"expiries""#,
        r#"{"agents""#,
        r#"{"name":"A""#,
        r#"{"checkpoints""#,
        r#"{"name":"before""#,
        r#"{"awaited""#,
        r#"{"seq":2,"expires_at""#,
        r#"{"keys""#,
        r#"{"key":"z"#,
        r#"{"images""#,
        r#"{"blobs""#,
        r#"{"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","media_type""#,
        r#"{"end""#,
        r#"{"parts""#,
    ] {
        assert!(whole.contains(object), "{object}");
        let more = object.replacen('{', r#"{"zz":1,"#, 1);
        let read = read_text(&whole.replacen(object, &more, 1));
        assert!(matches!(read, Err(Unreadable::Shape { .. })), "{object}: {read:?}");
    }
}

#[test]
fn what_came_from_elsewhere_has_lower_counters() {
    let whole = golden().replace(r#""last_seq":9,"#, r#""last_seq":4503599627370497,"#);
    assert!(read_text(&whole).is_ok());
    let mut reader = BaseReader::of_foreign(ID);
    let taken = reader.take(whole.lines().next().unwrap().as_bytes());
    let Err(Unreadable::Base(Unsound::Count { found, max })) = taken else { panic!("{taken:?}") };
    assert_eq!((found, max), ((1 << 52) + 1, 1 << 52));
}

#[test]
fn a_large_board_comes_in_parts_of_a_bounded_size() {
    let long = |i: usize| item(&format!("{{\"question\":\"{}\",\"i\":{i}}}", "x".repeat(300_000)));
    let put = |at: &str, value: &str| {
        Command::State(path(at), Edit::Put { value: json(value), ttl: Some(ttl("9s")) })
    };
    let commands = [
        append(LogName::Questions, (0..10).map(long).collect()),
        append(memory("a"), (0..4).map(long).collect()),
        put("a", &format!("[{}1]", "1,".repeat(600_000))),
        append(LogName::Requests, vec![item("{}"); 30_000]),
    ];
    let board = board_of(commands);
    let parts = parts_of(&board);
    let long: Vec<_> = parts.iter().filter(|part| part.len() > 1 << 20).collect();
    assert!(matches!(long[..], [state] if state.starts_with(b"{\"state\"")), "one part is larger");
    let of = |open: &str| parts.iter().filter(|part| part.starts_with(open.as_bytes())).count();
    assert_eq!(of(r#"{"entries":{"log":"questions""#), 4);
    assert_eq!(of(r#"{"entries":{"log":{"memory""#), 2);
    assert_eq!(of(r#"{"entries":{"log":"requests""#), 2);
    assert!(parts.iter().all(|part| !part.contains(&b'\n')));
    assert_eq!(rebased(&board), Board { oldest: board.revision(), ..board });
}

/// The board that these writes leave, and those of the moments in between.
pub(crate) fn boards(steps: &[Step]) -> Vec<Board> {
    let (mut board, mut clock, mut boards) = (absent(), 0, Vec::new());
    for (nonce, step) in (0..).zip(steps) {
        let moment = step.moment(&mut clock, nonce);
        if let Some(commit) = expire(&board, moment.now, moment.nonce) {
            apply(&mut board, &commit);
        }
        if let Ok(decision) = decide_and_keep(&board, &step.write(&board), moment) {
            board = decision.board;
        }
        boards.push(board.clone());
    }
    boards
}

proptest! {
    #[test]
    fn any_board_survives_and_equal_boards_give_equal_bytes(steps in steps(40)) {
        for board in boards(&steps) {
            let parts = parts_of(&board);
            let again = read(parts.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(again.oldest(), board.revision());
            prop_assert_eq!(&Board { oldest: board.oldest(), ..again.clone() }, &board);
            prop_assert_eq!(parts_of(&again), parts);
        }
    }
}
