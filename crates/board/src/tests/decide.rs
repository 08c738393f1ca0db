//! Tests of decisions: commands and the resulting commits.

use super::board::*;
use crate::json::Exact;
use crate::*;

use crate::{BoardCommand, LogChange, LogCommand, SessionCommand};
use LogName::{Questions, Requests, Screenshots, Trajectories};

fn put_session() -> Command {
    Command::Session(SessionCommand::Put {
        settings: Set::Keep,
        labels: Set::Keep,
        qa_pairs: Vec::new(),
    })
}

fn set(settings: SettingsPatch) -> Command {
    let settings = Set::To(settings);
    Command::Session(SessionCommand::Put { settings, labels: Set::Keep, qa_pairs: Vec::new() })
}

fn put(seq: u64, text: &str) -> Command {
    Command::Log(Requests, LogCommand::PutEntry { seq: Seq(seq), item: item(text), basis: None })
}

fn replace(log: LogName, items: Vec<Item>) -> Command {
    Command::Log(log, LogCommand::Replace { items })
}

fn remove(which: Which) -> Command {
    Command::Log(Requests, LogCommand::Remove { which })
}

#[test]
fn a_first_write_makes_its_session_in_the_same_commit() {
    let logs = [items(["{}"]), vec![], vec![], vec![]];
    for (command, expected) in [
        (put_session(), vec!["created"]),
        (append(memory("a"), items(["{}"])), vec!["created", "agent_put", "appended"]),
        (replace(Requests, items(["{}"])), vec!["created", "appended"]),
        (replace(Requests, vec![]), vec!["created"]),
        (Command::Board(BoardCommand::Replace { logs, state: None }), vec!["created", "appended"]),
        (
            Command::Board(BoardCommand::Replace { logs: Default::default(), state: None }),
            vec!["created"],
        ),
        (append(Requests, vec![]), vec![]),
    ] {
        let mut board = absent();
        let decision = carry_out(&mut board, command.clone());
        assert_eq!(changes(&decision), expected, "{command:?}");
        assert!(!decision.existed);
        assert_eq!(board.life().is_some(), !expected.is_empty());
        assert_eq!(board.revision(), Revision(u64::from(!expected.is_empty())));
    }
}

#[test]
fn what_needs_a_session_does_not_make_one() {
    for command in [
        Command::Session(SessionCommand::Delete),
        Command::Board(BoardCommand::Clear { state: false }),
        remove(Which::All),
        put(1, "{}"),
        Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(1) }),
    ] {
        assert_eq!(refused(&absent(), command), no_session());
    }
}

#[test]
fn without_auto_create_only_a_put_of_the_session_makes_it() {
    let policy = Policy { auto_create: false, ..POLICY };
    let decide = |board: &Board, command| decide(board, &write(command), at(0, &policy));
    for command in [
        append(Requests, items(["{}"])),
        append(Requests, vec![]),
        replace(Requests, vec![]),
        Command::Board(BoardCommand::Replace { logs: Default::default(), state: None }),
    ] {
        assert_eq!(decide(&absent(), command), Err(no_session()));
    }
    assert!(decide(&absent(), put_session()).is_ok());
    assert!(decide(&board_of([put_session()]), append(Requests, items(["{}"]))).is_ok());
}

#[test]
fn a_session_begins_with_server_questions_then_its_own() {
    let policy = Policy { qa_pairs: items([r#"{"q":"seed"}"#]), ..POLICY };
    let texts = |command| {
        let mut board = absent();
        let decision = decide(&board, &write(command), at(0, &policy)).unwrap();
        apply(&mut board, decision.commit.as_ref().unwrap());
        shown(&board, &Questions).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let qa_pairs = items([r#"{"q":"own"}"#]);
    let own =
        Command::Session(SessionCommand::Put { settings: Set::Keep, labels: Set::Keep, qa_pairs });
    assert_eq!(texts(own), [r#"{"q":"seed"}"#, r#"{"q":"own"}"#]);
    let asked = append(Questions, items([r#"{"q":"asked"}"#]));
    assert_eq!(texts(asked), [r#"{"q":"seed"}"#, r#"{"q":"asked"}"#]);
    assert_eq!(texts(replace(Questions, items(["{}"]))), ["{}"]);
    assert_eq!(texts(replace(Questions, vec![])), [""; 0], "what is put is all there is");
}

#[test]
fn an_append_after_the_servers_questions_is_told_its_own_seqs() {
    let policy = Policy { qa_pairs: items(["{}", "{}"]), ..POLICY };
    let command = append(Questions, items(["{}"]));
    let decision = decide(&absent(), &write(command), at(0, &policy)).unwrap();
    assert_eq!(decision.answer, Answer::Added { first: Seq(3), count: 1, dropped: 0 });
}

#[test]
fn questions_are_loaded_only_where_the_session_is_made() {
    let load = |qa_pairs| {
        Command::Session(SessionCommand::Put { settings: Set::Keep, labels: Set::Keep, qa_pairs })
    };
    let mut board = board_of([load(items(["{}"]))]);
    assert_eq!(refused(&board, load(items(["{}"]))), Rejected::NotAtCreation);
    assert_eq!(carry_out(&mut board, load(vec![])).commit, None);
}

#[test]
fn settings_change_member_by_member_and_null_resets() {
    let keys = |keys: &[&str]| Some(keys.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut board = absent();
    for (patch, history_keys, screenshot_to_memory, commits) in [
        (Set::Keep, None, None, true),
        (Set::Reset, None, None, false),
        (
            Set::To(SettingsPatch {
                history_keys: Set::To(vec!["a".to_owned()]),
                screenshot_to_memory: Set::To(false),
                ..Default::default()
            }),
            keys(&["a"]),
            Some(false),
            true,
        ),
        (Set::Keep, keys(&["a"]), Some(false), false),
        (Set::To(SettingsPatch::default()), keys(&["a"]), Some(false), false),
        (
            Set::To(SettingsPatch { history_keys: Set::Reset, ..Default::default() }),
            None,
            Some(false),
            true,
        ),
        (
            Set::To(SettingsPatch { history_keys: Set::To(vec![]), ..Default::default() }),
            keys(&[]),
            Some(false),
            true,
        ),
        (Set::Reset, None, None, true),
    ] {
        let command = Command::Session(SessionCommand::Put {
            settings: patch,
            labels: Set::Keep,
            qa_pairs: vec![],
        });
        let decision = carry_out(&mut board, command);
        let expected = Settings { history_keys, screenshot_to_memory, ..Default::default() };
        assert_eq!(*board.life().unwrap().settings, expected);
        assert_eq!(decision.commit.is_some(), commits, "{expected:?}");
    }
    assert_eq!(board.life().unwrap().configured, Revision(5));
}

#[test]
fn labels_change_one_by_one_and_null_removes() {
    let mut board = absent();
    let mut put = |labels, expected: &[(&str, &str)]| {
        let command =
            Command::Session(SessionCommand::Put { settings: Set::Keep, labels, qa_pairs: vec![] });
        let decision = carry_out(&mut board, command);
        let labels = Labels::clone(&board.life().unwrap().labels);
        let expected = expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        assert_eq!(labels, expected.collect::<Labels>());
        decision.commit.is_some()
    };
    let to = |pairs: &[(&str, Option<&str>)]| {
        let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned)));
        Set::To(pairs.collect::<LabelsPatch>())
    };
    assert!(put(to(&[("a", Some("1")), ("b", Some("2")), ("c", None)]), &[("a", "1"), ("b", "2")]));
    assert!(put(to(&[("a", None), ("b", Some("3"))]), &[("b", "3")]));
    assert!(!put(to(&[("b", Some("3"))]), &[("b", "3")]));
    assert!(!put(Set::Keep, &[("b", "3")]));
    assert!(put(Set::Reset, &[]));
}

#[test]
fn a_session_may_be_set_to_drop_posted_screenshots() {
    let off = SettingsPatch { screenshot_to_memory: Set::To(false), ..Default::default() };
    let mut board = board_of([set(off)]);
    let shots = vec![screenshot(b"x"), item("{}")];
    let dropped = carry_out(&mut board, append(Screenshots, shots.clone()));
    assert_eq!(dropped.commit, None);
    assert_eq!(dropped.answer, Answer::Added { first: Seq(1), count: 0, dropped: 2 });
    let kept = carry_out(&mut board, append(Requests, items(["{}"])));
    assert_eq!(kept.answer, Answer::Added { first: Seq(1), count: 1, dropped: 0 });
    carry_out(&mut board, replace(Screenshots, shots));
    assert_eq!(seqs(&board, &Screenshots), [1, 2], "a replacement is what it says");
}

#[test]
fn a_replacement_takes_new_seqs_and_an_equal_one_is_none() {
    let mut board = board_of([append(Requests, items(["{}", r#"{"a":1}"#]))]);
    let same = carry_out(&mut board, replace(Requests, items(["{}", r#"{"a":1}"#])));
    assert_eq!(same.commit, None);
    assert_eq!(same.answer, Answer::Added { first: Seq(3), count: 0, dropped: 0 });
    let other = carry_out(&mut board, replace(Requests, items([r#"{"a":1}"#, "{}"])));
    assert_eq!(changes(&other), ["cleared", "appended"]);
    assert_eq!(seqs(&board, &Requests), [3, 4]);
    let shorter = carry_out(&mut board, replace(Requests, items([r#"{"a":1}"#])));
    assert_eq!(shorter.answer, Answer::Added { first: Seq(5), count: 1, dropped: 0 });
    assert_eq!(changes(&carry_out(&mut board, replace(Requests, vec![]))), ["cleared"]);
    assert_eq!(carry_out(&mut board, replace(memory("a"), vec![])).commit, None);
    assert_eq!(board.agents().len(), 0);
    let first = carry_out(&mut board, replace(memory("a"), items(["{}"])));
    assert_eq!(changes(&first), ["agent_put", "appended"]);
}

#[test]
fn a_replaced_board_keeps_memories_and_logs_that_are_the_same() {
    let mut board = board_of([
        append(Questions, items(["{}"])),
        append(Requests, items(["{}"])),
        append(memory("a"), items(["{}"])),
    ]);
    let logs = [items(["{}"]), vec![], items([r#"{"t":1}"#]), vec![]];
    let decision = carry_out(
        &mut board,
        Command::Board(BoardCommand::Replace { logs: logs.clone(), state: None }),
    );
    assert_eq!(changes(&decision), ["cleared", "appended"]);
    assert_eq!(board.logs().each_ref().map(Log::len), [1, 0, 1, 0]);
    assert_eq!(board.log_version(&Questions).changed, Revision(1));
    assert_eq!(seqs(&board, &memory("a")), [1]);
    assert_eq!(
        carry_out(&mut board, Command::Board(BoardCommand::Replace { logs, state: None })).commit,
        None
    );
}

#[test]
fn a_cleared_board_counts_what_it_removed() {
    let mut board = board_of([
        append(Questions, items(["{}", "{}"])),
        append(Trajectories, items(["{}"])),
        append(memory("a"), items(["{}"])),
    ]);
    let cleared = carry_out(&mut board, Command::Board(BoardCommand::Clear { state: false }));
    assert_eq!(cleared.answer, Answer::Removed { count: 3 });
    assert_eq!(changes(&cleared), ["cleared", "cleared"]);
    let profile = r#"{"status":"CONTINUE"}"#.len() as u64;
    assert_eq!((board.bytes(), board.agents().len()), (2 + profile, 1));
    let again = carry_out(&mut board, Command::Board(BoardCommand::Clear { state: false }));
    assert_eq!((again.commit, again.answer), (None, Answer::Removed { count: 0 }));
}

#[test]
fn entries_go_by_step_by_number_or_all() {
    let steps =
        |steps: &[&str]| Which::Steps(steps.iter().filter_map(|s| Exact::parse(s)).collect());
    let texts = [r#"{"step":1}"#, r#"{"step":2.0}"#, r#"{"step":"2"}"#, "{}", r#"{"step":2}"#];
    for (which, kept, commits) in [
        (Which::All, vec![], true),
        (Which::AllButNewest(0), vec![], true),
        (Which::AllButNewest(2), vec![4, 5], true),
        (Which::AllButNewest(5), vec![1, 2, 3, 4, 5], false),
        (Which::AllButNewest(usize::MAX), vec![1, 2, 3, 4, 5], false),
        (steps(&["2"]), vec![1, 3, 4], true),
        (steps(&["1e0", "2"]), vec![3, 4], true),
        (steps(&["7"]), vec![1, 2, 3, 4, 5], false),
        (steps(&[]), vec![1, 2, 3, 4, 5], false),
    ] {
        let mut board = board_of([append(Requests, items(texts))]);
        let decision = carry_out(&mut board, remove(which.clone()));
        assert_eq!(seqs(&board, &Requests), kept, "{which:?}");
        assert_eq!(decision.commit.is_some(), commits, "{which:?}");
        assert_eq!(decision.answer, Answer::Removed { count: 5 - kept.len() });
        carry_out(&mut board, append(Requests, items(["{}"])));
        assert_eq!(seqs(&board, &Requests).last(), Some(&6), "no seq is given twice");
    }
}

#[test]
fn removed_entries_are_named_by_ranges_that_pass_over_gaps() {
    let mut board = board_of([append(Requests, vec![item("{}"); 9])]);
    for seq in [2, 6].map(Seq) {
        carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq }));
    }
    let decision = carry_out(&mut board, remove(Which::AllButNewest(3)));
    let commit = decision.commit.unwrap();
    let [Change::Log(_, LogChange::Removed { ranges, .. })] = commit.changes.as_slice() else {
        panic!("{commit:?}")
    };
    assert_eq!(ranges.as_slice(), [SeqRange { first: Seq(1), last: Seq(5) }]);
    assert_eq!(seqs(&board, &Requests), [7, 8, 9]);
}

#[test]
fn a_put_keeps_places_of_keys_and_the_envelope() {
    let mut board = board_of([append(Requests, items([r#"{"a":1,"b":2,"c":3}"#]))]);
    let put = write_by("B", put(1, r#"{"new":0,"c":4,"a":5}"#));
    let commit = decide(&board, &put, at(5_000, &POLICY)).unwrap().commit.unwrap();
    apply(&mut board, &commit);
    let entry = board.log(&Requests).unwrap().get(Seq(1)).unwrap();
    assert_eq!(entry.item.text(), r#"{"a":5,"c":4,"new":0}"#);
    assert_eq!((entry.at, &entry.agent, entry.revision), (Timestamp(1_000), &None, Revision(2)));
    assert_eq!(
        entry.updated,
        Some(Box::new(Updated { at: Timestamp(5_000), by: Some(agent("B")) }))
    );
}

#[test]
fn a_put_of_the_same_in_another_order_changes_nothing() {
    let mut board = board_of([append(Requests, items([r#"{"a":1,"b":2}"#]))]);
    assert_eq!(carry_out(&mut board, put(1, r#"{"b":2,"a":1}"#)).commit, None);
    assert!(carry_out(&mut board, put(1, r#"{"a":1,"b":2.0}"#)).commit.is_some());
}

#[test]
fn a_patched_item_is_taken_as_it_is_unless_its_basis_is_stale() {
    let mut board = board_of([append(Requests, items([r#"{"a":1,"b":2}"#]))]);
    let patched = |basis| {
        Command::Log(
            Requests,
            LogCommand::PutEntry {
                seq: Seq(1),
                item: item(r#"{"b":2,"a":1}"#),
                basis: Some(Revision(basis)),
            },
        )
    };
    for basis in [0, 2] {
        assert_eq!(refused(&board, patched(basis)), Rejected::Stale);
    }
    assert_eq!(changes(&carry_out(&mut board, patched(1))), ["updated"]);
    assert_eq!(shown(&board, &Requests), [(1, r#"{"b":2,"a":1}"#.to_owned())]);
    assert_eq!(refused(&board, patched(1)), Rejected::Stale);
}

#[test]
fn what_is_not_there_is_not_changed() {
    let board = board_of([append(Requests, items(["{}", "{}"])), remove(Which::AllButNewest(1))]);
    for seq in [0, 1, 3].map(Seq) {
        let none = Rejected::NoEntry { log: Requests, seq };
        assert_eq!(refused(&board, put(seq.0, "{}")), none);
        assert_eq!(refused(&board, Command::Log(Requests, LogCommand::DeleteEntry { seq })), none);
    }
    let (log, seq) = (memory("a"), Seq(1));
    let none = Rejected::NoEntry { log: log.clone(), seq };
    assert_eq!(refused(&board, Command::Log(log, LogCommand::DeleteEntry { seq })), none);
}

#[test]
fn a_deletion_leaves_only_the_revision() {
    let mut board = board_of([
        append(Screenshots, vec![screenshot(b"x")]),
        Command::Session(SessionCommand::Delete),
    ]);
    let at = Timestamp(1_000);
    let gone = Board { updated_at: at, written_at: at, ..Board::absent(ID, Revision(2)) };
    assert_eq!(Board { oldest: Revision(2), ..board.clone() }, gone);
    assert_eq!(refused(&board, Command::Session(SessionCommand::Delete)), no_session());
    let made = carry_out(&mut board, append(Screenshots, items(["{}"])));
    assert_eq!((board.revision(), made.existed), (Revision(3), false));
}

#[test]
fn time_does_not_go_back_within_a_session() {
    let mut board = absent();
    let times = [5_000, 4_000, -9, 5_001].map(|now| {
        let command = append(Requests, items(["{}"]));
        let commit = decide(&board, &write(command), at(now, &POLICY)).unwrap().commit.unwrap();
        apply(&mut board, &commit);
        commit.at.0
    });
    assert_eq!(times, [5_000, 5_000, 5_000, 5_001]);
    assert_eq!(board.life().unwrap().created_at, Timestamp(5_000));
}

#[test]
fn a_commit_says_who_and_by_which_mark() {
    let asked = write_by("A", append(Requests, items(["{}"])));
    let commit = decide(&absent(), &asked, at(0, &POLICY)).unwrap().commit.unwrap();
    assert_eq!((commit.agent, commit.nonce), (Some(agent("A")), Nonce(9)));
}
