//! Tests of open questions: permitted answers, deadlines, and defaults.

use super::board::*;
use crate::*;

use crate::{BoardCommand, LogCommand, QuestionCommand, SessionCommand};
use LogName::{Questions, Requests};

fn ask(texts: &[&str], time: &str, default: Option<&str>) -> Command {
    let items = texts.iter().map(|text| item(text)).collect();
    Command::Ask { items, ttl: ttl(time), default: default.map(str::to_owned) }
}

fn answer_to(question: u64) -> Command {
    Command::Question(Seq(question), QuestionCommand::Answer { answer: "so".to_owned() })
}

fn skip(question: u64) -> Command {
    Command::Question(Seq(question), QuestionCommand::Skip)
}

fn put(seq: u64, text: &str) -> Command {
    Command::Log(Questions, LogCommand::PutEntry { seq: Seq(seq), item: item(text), basis: None })
}

fn open(board: &Board) -> Vec<u64> {
    check_asked(board);
    board.asked().open().iter().map(|seq| seq.0).collect()
}

/// The questions that wait until a moment, with it.
fn awaited(board: &Board) -> Vec<(u64, i64)> {
    board.asked().awaited.iter().map(|(seq, until)| (seq.0, until.expires_at.0)).collect()
}

fn lapse(board: &mut Board, now: i64) -> Commit {
    let commit = expire(board, Timestamp(now), Nonce(9)).unwrap();
    assert!(commit.is_system() && commit.only_removes());
    admit(board, &commit).unwrap();
    apply(board, &commit);
    commit
}

#[test]
fn a_question_is_open_while_it_has_a_text_and_no_answer() {
    let texts = [
        r#"{"question":"q"}"#,
        r#"{"text":""}"#,
        r#"{"question":1}"#,
        r#"{"question":"q","answer":null}"#,
        r#"{"question":1,"text":"t"}"#,
        "{}",
        r#"{"question":"q"}"#,
    ];
    let mut board = board_of([append(Questions, items(texts))]);
    assert_eq!(open(&board), [1, 2, 5, 7]);
    for (command, expected) in [
        (answer_to(1), &[2, 5, 7][..]),
        (put(2, "{}"), &[5, 7]),
        (put(1, r#"{"question":"again"}"#), &[1, 5, 7]),
        (put(6, r#"{"text":"t"}"#), &[1, 5, 6, 7]),
        (Command::Log(Questions, LogCommand::DeleteEntry { seq: Seq(5) }), &[1, 6, 7]),
        (Command::Log(Questions, LogCommand::Remove { which: Which::AllButNewest(2) }), &[6, 7]),
        (append(Questions, items([r#"{"text":"t"}"#])), &[6, 7, 8]),
        (Command::Log(Questions, LogCommand::Replace { items: items([r#"{"text":"t"}"#]) }), &[9]),
        (append(Requests, items([r#"{"text":"t"}"#])), &[9]),
        (Command::Board(BoardCommand::Clear { state: false }), &[]),
    ] {
        carry_out(&mut board, command);
        assert_eq!(open(&board), expected);
    }
}

#[test]
fn questions_that_wait_until_a_moment_are_one_commit_with_it() {
    let mut board = absent();
    let decision =
        carry_out(&mut board, ask(&[r#"{"text":"a"}"#, "{}", r#"{"text":"b"}"#], "10s", Some("d")));
    assert_eq!(changes(&decision), ["created", "appended", "awaited"]);
    let Answer::Added { first: Seq(1), count: 3, dropped: 0 } = decision.answer else { panic!() };
    assert_eq!(awaited(&board), [(1, 11_000), (3, 11_000)]);
    assert_eq!((board.asked().bytes(), board.next_due()), (2, Some(Timestamp(11_000))));
    let until = board.asked().awaited(Seq(3)).unwrap();
    assert_eq!(until.default.as_deref(), Some("d"));
    assert_eq!(board.due(Timestamp(10_999), 9), []);
    assert_eq!(board.due(Timestamp(11_000), 1), [Due::Question(Seq(1))]);
    let answered = carry_out(&mut board, ask(&["{}"], "10s", None));
    assert_eq!(changes(&answered), ["appended"], "there is nothing to wait for");
    assert_eq!(carry_out(&mut absent(), ask(&[], "10s", None)).commit, None);
}

#[test]
fn an_answer_ends_the_waiting_and_another_text_does_not() {
    let mut board = absent();
    let three = [r#"{"text":"a"}"#, r#"{"text":"b"}"#, r#"{"text":"c"}"#];
    carry_out(&mut board, ask(&three, "10s", None));
    for (command, expected) in [
        (put(1, r#"{"text":"other"}"#), &[1, 2, 3][..]),
        (answer_to(1), &[2, 3]),
        (put(1, r#"{"text":"lost"}"#), &[2, 3]),
        (skip(2), &[3]),
        (Command::Log(Questions, LogCommand::DeleteEntry { seq: Seq(3) }), &[]),
    ] {
        carry_out(&mut board, command);
        assert_eq!(awaited(&board).iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), expected);
        check_asked(&board);
    }
    assert_eq!((open(&board), board.next_due(), board.asked().bytes()), (vec![1], None, 0));
}

#[test]
fn the_first_answer_stands() {
    let texts = [r#"{"text":"a"}"#, "{}", r#"{"text":"b","answer":null}"#];
    let mut board = board_of([append(Questions, items(texts))]);
    carry_out(&mut board, answer_to(1));
    carry_out(&mut board, skip(2));
    for question in 1..=3 {
        let already = Rejected::AlreadyAnswered { question: Seq(question) };
        assert_eq!(refused(&board, answer_to(question)), already);
        assert_eq!(refused(&board, skip(question)), already);
    }
    let gone = Rejected::NoEntry { log: Questions, seq: Seq(4) };
    assert_eq!((refused(&board, skip(4)), refused(&absent(), skip(1))), (gone, no_session()));
}

#[test]
fn what_is_skipped_or_over_says_so_at_its_end() {
    let texts = [r#"{ "text" : "a", "skipped":1 ,"expired":[],"z":1E5}"#; 3];
    let mut board = absent();
    carry_out(&mut board, ask(&texts[..2], "10s", Some("\"d\"\n")));
    carry_out(&mut board, ask(&texts[2..], "11s", None));
    carry_out(&mut board, skip(1));
    let commit = lapse(&mut board, 50_000);
    let kinds: Vec<_> = commit.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds, ["question_expired", "updated", "question_expired", "updated"]);
    assert_eq!((commit.agent, commit.at), (None, Timestamp(50_000)));
    let texts: Vec<_> = shown(&board, &Questions).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        texts,
        [
            r#"{"text":"a","expired":[],"z":1E5,"answer":null,"skipped":true}"#,
            r#"{"text":"a","skipped":1,"z":1E5,"answer":"\"d\"\n","expired":true}"#,
            r#"{"text":"a","skipped":1,"z":1E5,"answer":null,"expired":true}"#,
        ]
    );
    assert_eq!((open(&board), board.next_due()), (vec![], None));
    assert_eq!(board.written_at, Timestamp(1_000), "nobody wrote anything");
    let already = Rejected::AlreadyAnswered { question: Seq(2) };
    assert_eq!(refused(&board, answer_to(2)), already);
}

#[test]
fn what_is_over_comes_in_commits_of_a_bounded_size() {
    let mut board = absent();
    let many = vec![r#"{"text":"a"}"#; 700];
    carry_out(&mut board, ask(&many, "10s", None));
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 19));
    carry_out(&mut board, ask(&[&*large; 12], "20s", None));
    let sizes = |board: &mut Board| {
        let commits = std::iter::from_fn(|| board.next_due().map(|_| lapse(board, 99_000)));
        commits.map(|commit| commit.changes.len()).collect::<Vec<_>>()
    };
    // 500 questions; 200, and as many large ones as it takes to come over the bound; the rest.
    assert_eq!(sizes(&mut board), [1_000, 416, 8]);
    assert_eq!(open(&board), [0; 0]);
}

#[test]
fn so_many_may_be_asked_at_once_with_a_default_of_this_size() {
    let many = vec![r#"{"text":"a"}"#; AWAITED_AT_ONCE_MAX];
    carry_out(&mut absent(), ask(&many, "10s", None));
    let max = AWAITED_AT_ONCE_MAX;
    let more = vec!["{}"; max + 1];
    let too_many = Rejected::TooManyItems { items: max + 1, max };
    assert_eq!(refused(&absent(), ask(&more, "10s", None)), too_many);
    let long = "d".repeat(DEFAULT_BYTES_MAX);
    carry_out(&mut absent(), ask(&["{}"], "10s", Some(&long)));
    let longer = format!("{long}d");
    let too_long = Rejected::Item(InvalidItem::TooLarge { bytes: longer.len() });
    assert_eq!(refused(&absent(), ask(&["{}"], "10s", Some(&longer))), too_long);
    let full = format!(r#"{{"text":"{}"}}"#, "x".repeat(ITEM_BYTES_MAX - 11));
    let refused = refused(&absent(), ask(&[&full], "10s", None));
    assert!(matches!(refused, Rejected::Item(InvalidItem::TooLarge { .. })), "{refused:?}");
}

#[test]
fn a_default_counts_towards_the_sessions_size() {
    let policy = Policy { session_bytes_max: 16, ..POLICY };
    let asked = |default| write(ask(&[r#"{"text":"a"}"#], "10s", Some(default)));
    assert!(decide(&absent(), &asked("1234"), at(0, &policy)).is_ok());
    let full = Rejected::SessionFull { bytes: 17, max: 16 };
    assert_eq!(decide(&absent(), &asked("12345"), at(0, &policy)).unwrap_err(), full);
}

#[test]
fn a_log_that_keeps_few_items_keeps_few_that_wait() {
    let max_items = Set::To(MaxItems::All(std::num::NonZeroUsize::MIN));
    let settings = Set::To(SettingsPatch { max_items, ..Default::default() });
    let labels = Set::Keep;
    let mut board =
        board_of([Command::Session(SessionCommand::Put { settings, labels, qa_pairs: vec![] })]);
    carry_out(&mut board, ask(&[r#"{"text":"a"}"#, r#"{"text":"b"}"#], "10s", None));
    assert_eq!((open(&board), awaited(&board)), (vec![2], vec![(2, 11_000)]));
}

#[test]
fn a_new_session_gets_the_servers_questions_before_its_own() {
    let of = |text: &str| items([text]);
    let policy = Policy { qa_pairs: of(r#"{"q":1}"#), ..POLICY };
    let others = of(r#"{"q":2}"#);
    let moment = Moment { qa_pairs: &others, ..at(0, &policy) };
    let qa_pairs = of(r#"{"q":3}"#);
    let session =
        Command::Session(SessionCommand::Put { settings: Set::Keep, labels: Set::Keep, qa_pairs });
    let board = decide(&absent(), &write(session), moment).unwrap().board;
    let texts: Vec<_> = shown(&board, &Questions).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [r#"{"q":1}"#, r#"{"q":2}"#, r#"{"q":3}"#]);
    let again = Moment { qa_pairs: &others, ..at(0, &policy) };
    let board = decide(&board, &write(append(Requests, items(["{}"]))), again).unwrap().board;
    assert_eq!(seqs(&board, &Questions), [1, 2, 3], "only a new one");
}
