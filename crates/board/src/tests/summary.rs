//! Tests of summaries: equal to their board, and unchanged by storing.

use proptest::prelude::*;

use super::board::*;
use super::plan::{history, steps};
use crate::LogCommand;
use crate::stored::{Unreadable, decode_summary, encode_summary};
use crate::*;

fn summary(board: &Board) -> Summary {
    Summary::of(board, &"sess_1".parse().unwrap(), 77, 7)
}

fn again(summary: &Summary) -> Summary {
    decode_summary(ID, &encode_summary(summary).unwrap()).unwrap()
}

#[test]
fn a_summary_is_these_bytes() {
    let mut board = Board::absent(ID, Revision(2));
    let questions = items([r#"{"question":"?"}"#, r#"{"text" : "1.10"}"#]);
    let (ttl, default) = (ttl("1m"), None);
    carry_out(&mut board, Command::Ask { items: questions, ttl, default });
    carry_out(&mut board, append(LogName::Screenshots, vec![screenshot(b"x")]));
    let text = String::from_utf8(encode_summary(&summary(&board)).unwrap()).unwrap();
    let expected = concat!(
        r#"{"version":2,"name":"sess_1","revision":4,"oldest":2,"floor":0,"updated_at":1000,"#,
        r#""life":{"name":"sess_1","created_at":1000,"settings":{},"labels":{},"configured":3},"#,
        r#""counts":[2,0,0,1],"agents":0,"memory_entries":0,"state_bytes":0,"bytes":81,"image_bytes":1,"blobs":0,"history_bytes":77,"#,
        r#""snapshot_bytes":7,"next_due":61000,"questions":["#,
        r#"{"entry":{"seq":1,"revision":3,"at":1000,"item":{"question":"?"}},"expires_at":61000},"#,
        r#"{"entry":{"seq":2,"revision":3,"at":1000,"item":{"text" : "1.10"}},"expires_at":61000}],"claimable":0,"cost":0}"#,
    );
    assert_eq!(text, expected);
    assert_eq!(again(&summary(&board)), summary(&board));
}

#[test]
fn a_summary_of_another_form_is_refused() {
    let bytes = encode_summary(&summary(&Board::absent(ID, Revision(1)))).unwrap();
    let whole = String::from_utf8(bytes).unwrap();
    assert!(decode_summary(ID, whole.as_bytes()).is_ok());
    for (from, to) in [
        (r#""version":2"#, r#""version":2,"more":1"#),
        (r#""agents":0,"#, ""),
        (r#","claimable":0"#, ""),
        (r#","cost":0"#, ""),
        (r#""questions":[]"#, r#""questions":[{}]"#),
    ] {
        assert!(whole.contains(from), "{whole}");
        let changed = whole.replace(from, to);
        let refused = decode_summary(ID, changed.as_bytes()).unwrap_err();
        assert!(matches!(refused, Unreadable::Shape { .. }), "{changed}");
    }
}

#[test]
fn a_summary_of_another_version_is_known_as_such() {
    let bytes = encode_summary(&summary(&Board::absent(ID, Revision(1)))).unwrap();
    let whole = String::from_utf8(bytes).unwrap();
    for (version, lacking) in [(3, ""), (3, r#""blobs":0,"#), (1, r#""memory_entries":0,"#)] {
        let version = format!(r#""version":{version}"#);
        let other = whole.replace(lacking, "").replace(r#""version":2"#, &version);
        let refused = decode_summary(ID, other.as_bytes()).unwrap_err();
        assert!(matches!(refused, Unreadable::Summary), "{other}");
    }
}

#[test]
fn questions_that_are_too_large_together_are_not_in_a_summary() {
    let mut board = Board::absent(ID, Revision(0));
    let long = format!(r#"{{"question":"{}"}}"#, "?".repeat(9_000));
    carry_out(&mut board, append(LogName::Questions, items([long.as_str()])));
    assert!(
        matches!(&summary(&board).questions, Questions::All(questions) if questions.len() == 1)
    );
    carry_out(&mut board, append(LogName::Questions, items([long.as_str()])));
    assert_eq!(summary(&board).questions, Questions::TooLarge);
    assert_eq!(again(&summary(&board)), summary(&board));
    let (log, which) = (LogName::Questions, Which::All);
    carry_out(&mut board, Command::Log(log, LogCommand::Remove { which }));
    assert!(summary(&board).questions.are_none());
}

#[test]
fn a_history_that_is_cut_begins_where_that_of_its_board_does() {
    let mut board = Board::absent(ID, Revision(3));
    carry_out(&mut board, append(LogName::Requests, items(["{}"])));
    board.floor = Revision(2);
    let cut = summary(&board).beginning_at(Revision(4), 7);
    assert_eq!(cut, Summary::of(&board.beginning_at(Revision(4)), &cut.name, 7, 0));
    assert_eq!(cut.extent.oldest_cursor(), Revision(4));
    assert_eq!(summary(&board).extent.oldest_cursor(), board.oldest_cursor());
}

proptest! {
    #[test]
    fn a_summary_says_what_its_board_says(steps in steps(40)) {
        for (board, _) in history(&steps) {
            let summary = summary(&board);
            let bytes = encode_summary(&summary).unwrap();
            prop_assert_eq!(&decode_summary(board.id(), &bytes).unwrap(), &summary);
            prop_assert_eq!(summary.extent.oldest_cursor(), board.oldest_cursor());
            prop_assert_eq!(summary.is_empty(), board.is_empty());
            prop_assert_eq!(summary.next_due, board.next_due());
            let open: Vec<Seq> = board.asked().open().iter().copied().collect();
            if let Questions::All(questions) = &summary.questions {
                let told: Vec<Seq> = questions.iter().map(|question| question.entry.seq).collect();
                prop_assert_eq!(told, open);
            }
        }
    }
}
