//! Tests of restores: the board equals its past, and a restore can itself be undone.

use std::sync::Arc;

use imbl::OrdMap;
use proptest::prelude::*;
use proptest::sample::Index;

use super::board::*;
use super::plan::{history, steps};
use crate::*;

use crate::{
    AgentCommand, CheckpointCommand, LogCommand, QuestionCommand, RequestCommand, SessionChange,
    SessionCommand,
};
use LogName::{Questions, Requests, Trajectories};

fn restore(then: &Board) -> Command {
    Command::Session(SessionCommand::Restore { then: Arc::new(then.clone()) })
}

fn put(at: &str, value: &str, time: Option<&str>) -> Command {
    let edit = Edit::Put { value: json(value), ttl: time.map(ttl) };
    Command::State(path(at), edit)
}

fn claim(request: u64) -> Write {
    write_by("A", Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl("60s") }))
}

fn restored(decision: &Decision) -> &Restored {
    let [Change::Session(SessionChange::Restored(restored))] =
        &decision.commit.as_ref().unwrap().changes[..]
    else {
        panic!("{decision:?}")
    };
    restored
}

fn entry(board: &Board, log: &LogName, seq: u64) -> Entry {
    Entry::clone(board.log(log).unwrap().get(Seq(seq)).unwrap())
}

/// The places of a state's difference with their values.
fn places(restored: &Restored) -> Vec<(String, Option<&str>)> {
    let place = |(path, _): &(StatePath, Option<Json>)| path.to_string();
    let texts = restored.state.iter().map(|(_, value)| value.as_ref().map(Json::text));
    restored.state.iter().map(place).zip(texts).collect()
}

#[test]
fn logs_are_as_they_were_and_their_seqs_go_on() {
    let then = board_of([append(Trajectories, items([r#"{"a":1}"#, r#"{"b":1}"#, "{}"]))]);
    let mut board = then.clone();
    let put = |seq, text| {
        let item = item(text);
        Command::Log(Trajectories, LogCommand::PutEntry { seq: Seq(seq), item, basis: None })
    };
    carry_out(&mut board, put(2, r#"{"b":2}"#));
    carry_out(&mut board, Command::Log(Trajectories, LogCommand::DeleteEntry { seq: Seq(1) }));
    carry_out(&mut board, append(Trajectories, items(["{}", "{}"])));
    carry_out(&mut board, append(memory("a"), items(["{}"])));
    let before = board.clone();
    let decision = take(&mut board, &write_by("B", restore(&then)), 9_000).unwrap();
    let [(Trajectories, log), (LogName::Memory(_), of_a)] = &restored(&decision).logs[..] else {
        panic!("{decision:?}")
    };
    let range = |first, last| SeqRange { first: Seq(first), last: Seq(last) };
    assert_eq!((&log.removed, log.entries.len()), (&vec![range(4, 5)], 2));
    assert_eq!((&of_a.removed, of_a.entries.len()), (&vec![range(1, 1)], 0));
    assert_eq!(shown(&board, &Trajectories), shown(&then, &Trajectories));
    for seq in 1..=2 {
        let back = Entry { revision: Revision(6), ..entry(&then, &Trajectories, seq) };
        assert_eq!(entry(&board, &Trajectories, seq), back, "as it was, but for the revision");
    }
    assert_eq!(entry(&board, &Trajectories, 3), entry(&then, &Trajectories, 3));
    assert_eq!((board.agents().len(), board.bytes()), (0, then.bytes()));
    carry_out(&mut board, append(Trajectories, items(["{}"])));
    carry_out(&mut board, append(memory("a"), items(["{}"])));
    assert_eq!(seqs(&board, &Trajectories), [1, 2, 3, 6]);
    assert_eq!(seqs(&board, &memory("a")), [2]);
    carry_out(&mut board, restore(&before));
    assert_eq!(shown(&board, &Trajectories), shown(&before, &Trajectories));
    assert_eq!(seqs(&board, &memory("a")), [1]);
    assert_eq!(board.agents().len(), 1);
}

#[test]
fn a_restore_that_changes_nothing_is_no_commit() {
    let mut board = board_of([append(Requests, items(["{}", "{}"])), put("a", "1", Some("9s"))]);
    let then = board.clone();
    assert_eq!(carry_out(&mut board, restore(&then)).commit, None);
    carry_out(&mut board, put("a", "2", Some("9s")));
    carry_out(&mut board, put("a", "1", Some("9s")));
    let item = Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(2) });
    carry_out(&mut board, item);
    carry_out(&mut board, restore(&then));
    assert_eq!(carry_out(&mut board, restore(&then)).commit, None, "it is so again");
    // A claim alone is something to end.
    take(&mut board, &claim(1), 2_000).unwrap();
    assert!(carry_out(&mut board, restore(&then)).commit.is_some());
    assert_eq!((board.work(Seq(1)), board.next_due()), (None, Some(Timestamp(10_000))));
    // So is one that ran out, and a lifetime.
    take(&mut board, &claim(1), 2_000).unwrap();
    let end = expire(&board, Timestamp(99_000), Nonce(9)).unwrap();
    apply(&mut board, &end);
    assert!(matches!(board.work(Seq(1)), Some(Work::Lapsed { .. })));
    assert!(carry_out(&mut board, restore(&then)).commit.is_some());
    assert_eq!(board.work(Seq(1)), None);
    carry_out(&mut board, put("a", "1", Some("1s")));
    assert!(carry_out(&mut board, restore(&then)).commit.is_some());
    assert_eq!(board.next_due(), Some(Timestamp(10_000)));
}

#[test]
fn claims_end_everywhere_and_what_was_done_is_done() {
    let mut board = board_of([append(Requests, vec![item("{}"); 4])]);
    let done =
        Command::Request(Seq(1), RequestCommand::Finish { fence: None, result: Some(json("[1]")) });
    carry_out(&mut board, done.clone());
    take(&mut board, &claim(2), 1_000).unwrap();
    take(&mut board, &claim(3), 1_000).unwrap();
    let then = board.clone();
    take(&mut board, &claim(4), 1_000).unwrap();
    let finish =
        Command::Request(Seq(3), RequestCommand::Finish { fence: Some(Revision(4)), result: None });
    take(&mut board, &write_by("A", finish), 1_000).unwrap();
    carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(1) }));
    take(&mut board, &write(restore(&then)), 9_000).unwrap();
    let work: Vec<_> = (2..=4).map(|seq| board.work(Seq(seq)).is_some()).collect();
    assert_eq!((work, board.next_due()), (vec![false; 3], None));
    assert_eq!(board.work(Seq(1)), then.work(Seq(1)));
    let claimed = then.work(Seq(2)).unwrap().claim().unwrap();
    let freed = entry(&then, &Requests, 2).freed(Timestamp(9_000));
    assert_eq!(entry(&board, &Requests, 2), Entry { revision: board.revision(), ..freed });
    let attempts = |seq| entry(&board, &Requests, seq).task.unwrap().past_attempts;
    let released = |from: i64| PastAttempt {
        agent: Some(agent("A")),
        from: Timestamp(from),
        to: Timestamp(9_000),
        outcome: Outcome::Released,
        reason: None,
    };
    assert!((2..=4).all(|seq| *attempts(seq) == [released(1_000)]), "each claim was released");
    let fence = Some(Fence { request: Seq(2), fence: claimed.fence });
    let late = write(append(Requests, items(["{}"])));
    let late = Write { terms: Terms { fence, ..late.terms }, ..late };
    let stale = Rejected::StaleFence { request: Seq(2), fence: claimed.fence };
    assert_eq!(decide(&board, &late, at(9_000, &POLICY)).unwrap_err(), stale);
    let finish = Command::Request(
        Seq(2),
        RequestCommand::Finish { fence: Some(claimed.fence), result: None },
    );
    assert_eq!(refused(&board, finish), stale);
    take(&mut board, &claim(2), 9_000).unwrap();
    let won = board.work(Seq(2)).unwrap().claim().unwrap().fence;
    let finish =
        Command::Request(Seq(2), RequestCommand::Finish { fence: Some(won), result: None });
    take(&mut board, &write_by("A", finish), 9_000).unwrap();
}

#[test]
fn only_the_places_of_the_state_that_differ_are_set() {
    let was = r#"{"o":{"a":1,"b":[1],"c":{}},"odd":{"":1,"x":1},"l":1,"m":2}"#;
    for (change, expected) in [
        (put("o/a", "2", None), vec![("o/a", Some("1"))]),
        (put("o/d", "2", None), vec![("o/d", None)]),
        (put("o/c/e/f", "2", None), vec![("o/c/e", None)]),
        (put("odd/x", "2", None), vec![("odd/x", Some("1"))]),
        (put("odd", r#"{"":2,"x":1}"#, None), vec![("odd", Some(r#"{"":1,"x":1}"#))]),
        (put("new/x", "2", None), vec![("new", None)]),
        (Command::State(path("m"), Edit::Remove), vec![("m", Some("2"))]),
        // The restored member is not the last one.
        (Command::State(path("l"), Edit::Remove), vec![("", Some(was))]),
        (
            put("o", r#"{"b":[1],"a":1,"c":{}}"#, None),
            vec![("o", Some(r#"{"a":1,"b":[1],"c":{}}"#))],
        ),
        (put("", r#"{"m":2}"#, None), vec![("", Some(was))]),
    ] {
        let mut board = board_of([put("", was, None)]);
        let then = board.clone();
        carry_out(&mut board, change.clone());
        let decision = carry_out(&mut board, restore(&then));
        let expected: Vec<_> =
            expected.into_iter().map(|(at, value)| (at.to_owned(), value)).collect();
        assert_eq!(places(restored(&decision)), expected, "{change:?}");
        assert_eq!(board.state().text(), was);
        assert_eq!(board.bytes(), then.bytes());
    }
}

#[test]
fn deadlines_are_as_they_were_even_if_they_are_over() {
    let ask = |time| Command::Ask {
        items: items([r#"{"text":"t"}"#]),
        ttl: ttl(time),
        default: Some("d".to_owned()),
    };
    let mut board = board_of([put("a", "1", Some("5s")), ask("6s"), ask("9s")]);
    let then = board.clone();
    for now in [6_000, 7_000] {
        let end = expire(&board, Timestamp(now), Nonce(9)).unwrap();
        apply(&mut board, &end);
    }
    assert_eq!(board.asked().open().len(), 1);
    carry_out(
        &mut board,
        Command::Question(Seq(2), QuestionCommand::Answer { answer: "so".to_owned() }),
    );
    carry_out(&mut board, put("b", "1", Some("99s")));
    assert_eq!((board.next_due().map(|at| at.0), board.asked().open().len()), (Some(100_000), 0));
    take(&mut board, &write(restore(&then)), 50_000).unwrap();
    check_asked(&board);
    assert_eq!(board.asked(), then.asked());
    assert_eq!(board.next_due(), Some(Timestamp(6_000)));
    let end = expire(&board, Timestamp(50_000), Nonce(9)).unwrap();
    let kinds: Vec<_> = end.changes.iter().map(Change::kind).collect();
    let of_question = ["question_expired", "updated"];
    assert_eq!(kinds, [&["state_expired"][..], &of_question, &of_question].concat());
}

#[test]
fn agents_are_as_they_were_but_for_when_they_were_seen() {
    let agent_put = |name: &str, text: &str| {
        Command::Agent(agent(name), AgentCommand::Put { profile: item(text) })
    };
    let mut board = absent();
    for (name, now) in [("A", 1_000), ("B", 2_000), ("C", 3_000)] {
        take(&mut board, &write_by(name, agent_put(name, r#"{"x":1}"#)), now).unwrap();
    }
    let then = board.clone();
    carry_out(&mut board, Command::Agent(agent("A"), AgentCommand::Remove));
    take(&mut board, &write_by("B", agent_put("B", r#"{"x":2}"#)), 4_000).unwrap();
    take(&mut board, &write_by("C", append(Questions, vec![item("{}")])), 5_000).unwrap();
    carry_out(&mut board, agent_put("D", "{}"));
    take(&mut board, &write(restore(&then)), 9_000).unwrap();
    let revision = board.revision();
    let known = |board: &Board, name| board.agents().get(&agent(name)).cloned();
    let was = |name| known(&then, name).unwrap();
    assert_eq!(known(&board, "A"), Some(Agent { changed: revision, ..was("A") }));
    let seen = Some(Timestamp(4_000));
    assert_eq!(known(&board, "B"), Some(Agent { changed: revision, last_seen: seen, ..was("B") }));
    let seen = Some(Timestamp(5_000));
    assert_eq!(known(&board, "C"), Some(Agent { last_seen: seen, ..was("C") }));
    assert_eq!((known(&board, "D"), board.agents_version().changed), (None, revision));
    assert_eq!(board.bytes(), then.bytes());
}

#[test]
fn settings_keys_and_checkpoints_stay() {
    let settings = |keeps| {
        let patch = SettingsPatch { screenshot_to_memory: Set::To(keeps), ..Default::default() };
        let labels = Set::Keep;
        Command::Session(SessionCommand::Put { settings: Set::To(patch), labels, qa_pairs: vec![] })
    };
    let mut board = board_of([settings(true)]);
    let then = board.clone();
    carry_out(&mut board, settings(false));
    carry_out(&mut board, Command::Checkpoint("c".parse().unwrap(), CheckpointCommand::Put));
    carry_out(&mut board, append(Requests, items(["{}"])));
    let before = board.clone();
    carry_out(&mut board, restore(&then));
    assert_eq!((board.life(), board.checkpoints()), (before.life(), before.checkpoints()));
    assert_eq!(board.log(&Requests).unwrap().len(), 0);
}

#[test]
fn only_the_sessions_own_past_is_restored() {
    let board = board_of([append(Requests, items(["{}"]))]);
    let none = |revision| Rejected::NoRevision { revision };
    let mut later = board.clone();
    carry_out(&mut later, append(Requests, items(["{}"])));
    assert_eq!(refused(&board, restore(&later)), none(Revision(2)));
    let other = board.forked(SessionId(uuid::Uuid::nil()));
    assert_eq!(refused(&board, restore(&other)), none(Revision(1)));
    assert_eq!(refused(&board, restore(&absent())), none(Revision(0)));
    assert_eq!(refused(&absent(), restore(&board)), no_session());
}

/// That this board is as that one was, but for revisions and claims.
fn assert_as_then(board: &Board, then: &Board) {
    let owned = board.owned_logs().map(|(name, _)| name);
    for name in LogName::BOARD.into_iter().chain(owned) {
        let entries = |board: &Board| -> Vec<Entry> {
            let entries = board.log(&name).into_iter().flat_map(Log::iter);
            entries.map(|entry| without_attempts(entry)).collect()
        };
        assert_eq!(entries(board), entries(then), "{name}");
    }
    assert_eq!(board.state().text(), then.state().text());
    assert!(board.state().expiries().eq(then.state().expiries()));
    let asked = |board: &Board| Asked { answered: OrdMap::new(), ..board.asked().clone() };
    assert_eq!(asked(board), asked(then));
    check_unacked(board);
    let agents = |board: &Board| -> Vec<_> {
        let strip = |agent: &Agent| (agent.profile.clone(), agent.registered_at, agent.updated_at);
        board.agents().iter().map(|(name, agent)| (name.clone(), strip(agent))).collect()
    };
    assert_eq!(agents(board), agents(then));
    assert!(board.tasks().leases().is_empty() && !board.is_worked_on());
    check_asked(board);
}

/// The entry without its claim, its past attempts, what others did to it by the end of theirs, and an
/// acknowledgement, which stays.
fn without_attempts(entry: &Entry) -> Entry {
    let mut entry = Entry { revision: Revision(0), ..entry.freed(Timestamp(0)) };
    if let Some(task) = &mut entry.task {
        (task.past_attempts, task.stopped_by) = Default::default();
    }
    if let Some(Work::Cancelled(cancel)) = entry.work.as_deref_mut() {
        cancel.at = Timestamp(0);
    }
    entry.task = entry.task.filter(|task| **task != Task::default());
    if let Some(acked_at) = entry.acked_at.take()
        && entry.updated.as_ref().is_some_and(|updated| updated.at == acked_at)
    {
        entry.updated = None;
    }
    entry
}

/// Checks that the past attempts are those of then, and those that the restore ended.
fn assert_attempts(board: &Board, then: &Board) {
    fn attempts(entry: &Entry) -> &[PastAttempt] {
        entry.task.as_deref().map(|task| &*task.past_attempts).unwrap_or_default()
    }
    for entry in board.log(&Requests).unwrap().iter() {
        let known = attempts(then.log(&Requests).unwrap().get(entry.seq).unwrap());
        let added = attempts(entry).strip_prefix(known);
        let added = added.or((known.len() > 8).then_some(&[])).unwrap();
        assert!(added.len() <= 2 && added.iter().all(|end| end.outcome == Outcome::Released));
    }
}

/// The boards of the last session of these commits, in order.
fn last_session(commits: &[(Board, Commit)]) -> Vec<Board> {
    let mut boards = Vec::new();
    for (before, commit) in commits {
        let mut board = before.clone();
        apply(&mut board, commit);
        if commit.ends_session() || commit.kind() == "adopted" {
            boards.clear();
        }
        if board.life().is_some() {
            boards.push(board);
        }
    }
    boards
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_restore_is_as_then_and_can_be_taken_back(steps in steps(40), to in any::<Index>()) {
        let boards = last_session(&history(&steps));
        prop_assume!(!boards.is_empty());
        let (then, before) = (to.get(&boards), boards.last().unwrap());
        let mut board = before.clone();
        let now = before.updated_at().0;
        take(&mut board, &write(restore(then)), now).unwrap();
        assert_as_then(&board, then);
        assert_attempts(&board, then);
        prop_assert_eq!(Board { oldest: board.oldest, ..rebased(&board) }, board.clone());
        let again = take(&mut board, &write(restore(then)), now).unwrap();
        prop_assert_eq!(again.commit, None);
        take(&mut board, &write(restore(before)), now).unwrap();
        assert_as_then(&board, before);
    }
}
