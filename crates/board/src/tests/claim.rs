//! Tests of claims: each state of a request with each command, fence and author.

use super::board::*;
use crate::*;

use crate::{BoardCommand, LogCommand, RequestCommand, SessionCommand};
use LogName::Requests;

const REQUEST: Seq = Seq(1);

fn claim(time: &str) -> Command {
    Command::Request(REQUEST, RequestCommand::Claim { ttl: ttl(time) })
}

const RELEASE: Command = Command::Request(REQUEST, RequestCommand::Release);

fn finish(fence: Option<u64>, result: Option<&str>) -> Command {
    Command::Request(
        REQUEST,
        RequestCommand::Finish { fence: fence.map(Revision), result: result.map(json) },
    )
}

/// By an agent, or by nobody.
fn write_as(author: Option<&str>, command: Command) -> Write {
    match author {
        Some(author) => write_by(author, command),
        None => write(command),
    }
}

fn lapse(board: &mut Board, now: i64) {
    let commit = expire(board, Timestamp(now), Nonce(0)).unwrap();
    admit(board, &commit).unwrap();
    apply(board, &commit);
}

fn work(board: &Board) -> Option<&Work> {
    board.log(&Requests).unwrap().get(REQUEST).unwrap().work.as_deref()
}

fn is_claimable(board: &Board) -> bool {
    let test = Test::Claimable(REQUEST, true);
    let transaction = Transaction { tests: vec![test], ..Default::default() };
    let write = write(Command::Transact(Box::new(transaction)));
    let answer = decide(board, &write, at(0, &POLICY)).unwrap().answer;
    matches!(answer, Answer::Transacted { succeeded: true, .. })
}

/// A request, with what has become of it. The revisions of what happened are 2, 3 and so on.
fn board_in(state: &str) -> Board {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    let mut by_a = |command| take(&mut board, &write_by("A", command), 1_000).unwrap();
    match state {
        "new" => {}
        "claimed" => drop(by_a(claim("60s"))),
        "renewed" => {
            by_a(claim("60s"));
            by_a(claim("90s"));
        }
        "released" => {
            by_a(claim("60s"));
            by_a(RELEASE);
        }
        "lapsed" => {
            by_a(claim("1s"));
            lapse(&mut board, 2_000);
        }
        "won again" => {
            by_a(claim("1s"));
            lapse(&mut board, 2_000);
            take(&mut board, &write_by("A", claim("60s")), 2_000).unwrap();
        }
        "done" => drop(by_a(finish(None, Some("[1]")))),
        "done under claim" => {
            by_a(claim("60s"));
            by_a(finish(Some(2), Some("[1]")));
        }
        "done by nobody" => {
            take(&mut board, &write(finish(None, None)), 1_000).unwrap();
        }
        other => panic!("{other}"),
    }
    board
}

/// Returns the changes of an accepted write, or the code of the refusal.
fn outcome(board: &Board, write: &Write) -> Result<String, &'static str> {
    match decide(board, write, at(2_000, &POLICY)) {
        Ok(decision) => Ok(changes(&decision).concat()),
        Err(rejected) => Err(rejected.code().as_str()),
    }
}

#[track_caller]
fn check(state: &str, author: Option<&str>, command: &Command, expected: Result<&str, &str>) {
    let found = outcome(&board_in(state), &write_as(author, command.clone()));
    let expected = expected.map(str::to_owned);
    assert_eq!(found, expected, "{state}, by {author:?}: {command:?}");
}

const NOBODY: Result<&str, &str> = Err("agent-required");
const TAKEN: Result<&str, &str> = Err("already-claimed");
const STALE: Result<&str, &str> = Err("stale-fence");

#[test]
fn a_request_has_one_claimant_and_none_once_done() {
    for (state, by_a, by_b, claimable) in [
        ("new", Ok("claimed"), Ok("claimed"), true),
        ("claimed", Ok("claimed"), TAKEN, false),
        ("renewed", Ok("claimed"), TAKEN, false),
        ("released", Ok("claimed"), Ok("claimed"), true),
        ("lapsed", Ok("claimed"), Ok("claimed"), true),
        ("won again", Ok("claimed"), TAKEN, false),
        ("done", TAKEN, TAKEN, false),
        ("done under claim", TAKEN, TAKEN, false),
        ("done by nobody", TAKEN, TAKEN, false),
    ] {
        check(state, Some("A"), &claim("70s"), by_a);
        check(state, Some("B"), &claim("70s"), by_b);
        check(state, None, &claim("70s"), NOBODY);
        assert_eq!(is_claimable(&board_in(state)), claimable, "{state}");
    }
}

#[test]
fn a_claim_is_given_back_by_who_holds_it() {
    for (state, by_a, by_b) in [
        ("new", Ok(""), Ok("")),
        ("claimed", Ok("released"), TAKEN),
        ("renewed", Ok("released"), TAKEN),
        ("released", Ok(""), Ok("")),
        ("lapsed", Ok(""), Ok("")),
        ("won again", Ok("released"), TAKEN),
        ("done", Ok(""), Ok("")),
        ("done under claim", Ok(""), Ok("")),
        ("done by nobody", Ok(""), Ok("")),
    ] {
        check(state, Some("A"), &RELEASE, by_a);
        check(state, Some("B"), &RELEASE, by_b);
        check(state, None, &RELEASE, NOBODY);
    }
}

#[test]
fn a_request_is_finished_by_its_holder_or_if_free_by_anybody() {
    let done = Ok("finished");
    // By A, by B, by nobody; without a fence.
    for (state, expected) in [
        ("new", [done, done, done]),
        ("claimed", [done, TAKEN, TAKEN]),
        ("renewed", [done, TAKEN, TAKEN]),
        ("released", [done, done, done]),
        ("lapsed", [done, done, done]),
        ("won again", [done, TAKEN, TAKEN]),
        ("done", [TAKEN, TAKEN, TAKEN]),
        ("done under claim", [TAKEN, TAKEN, TAKEN]),
        ("done by nobody", [TAKEN, TAKEN, TAKEN]),
    ] {
        for (author, expected) in [Some("A"), Some("B"), None].into_iter().zip(expected) {
            check(state, author, &finish(None, Some("\"other\"")), expected);
        }
    }
}

#[test]
fn the_last_unreleased_fence_finishes_a_request() {
    let done = Ok("finished");
    // By A, by B, by nobody; fence 2 is the first claim's, fence 4 that of the one won again.
    for (state, fence, expected) in [
        ("new", 2, [STALE, STALE, STALE]),
        ("claimed", 2, [done, TAKEN, done]),
        ("claimed", 1, [STALE, STALE, STALE]),
        ("claimed", 3, [STALE, STALE, STALE]),
        ("renewed", 2, [done, TAKEN, done]),
        ("renewed", 3, [STALE, STALE, STALE]),
        ("released", 2, [STALE, STALE, STALE]),
        ("lapsed", 2, [done, done, done]),
        ("lapsed", 3, [STALE, STALE, STALE]),
        ("won again", 2, [STALE, STALE, STALE]),
        ("won again", 4, [done, TAKEN, done]),
        ("done", 2, [STALE, STALE, STALE]),
        ("done under claim", 2, [STALE, STALE, STALE]),
        ("done by nobody", 2, [STALE, STALE, STALE]),
    ] {
        for (author, expected) in [Some("A"), Some("B"), None].into_iter().zip(expected) {
            check(state, author, &finish(Some(fence), Some("\"other\"")), expected);
        }
    }
}

#[test]
fn the_same_end_again_is_none_and_another_one_is_refused() {
    let same = Some("[1]");
    for (state, author, fence, result, expected) in [
        ("done", Some("A"), None, same, Ok("")),
        ("done", Some("A"), None, None, TAKEN),
        ("done", Some("A"), None, Some("[2]"), TAKEN),
        ("done", Some("B"), None, same, TAKEN),
        ("done", None, None, same, TAKEN),
        ("done", Some("A"), Some(2), same, STALE),
        ("done under claim", Some("A"), None, same, Ok("")),
        ("done under claim", Some("A"), Some(2), same, Ok("")),
        ("done under claim", Some("A"), Some(3), same, STALE),
        ("done under claim", Some("A"), Some(2), Some("[2]"), STALE),
        ("done under claim", Some("A"), Some(2), None, STALE),
        ("done under claim", Some("B"), Some(2), same, STALE),
        ("done by nobody", None, None, None, Ok("")),
        ("done by nobody", None, None, Some("null"), TAKEN),
        ("done by nobody", Some("A"), None, None, TAKEN),
    ] {
        check(state, author, &finish(fence, result), expected);
    }
}

#[test]
fn a_write_under_a_fence_is_done_while_its_claim_was_won_last() {
    for (state, fence, stands) in [
        ("new", 1, false),
        ("claimed", 2, true),
        ("claimed", 1, false),
        ("claimed", 3, false),
        ("renewed", 2, true),
        ("renewed", 3, false),
        ("released", 2, false),
        ("lapsed", 2, true),
        ("won again", 2, false),
        ("won again", 4, true),
        ("done", 2, false),
        ("done under claim", 2, true),
        ("done under claim", 3, false),
        ("done by nobody", 2, false),
    ] {
        let mut board = board_in(state);
        for (request, stands) in [(REQUEST, stands), (Seq(2), false)] {
            for author in [Some("A"), Some("B"), None] {
                for command in
                    [append(LogName::Trajectories, items(["{}"])), append(Requests, vec![])]
                {
                    let write = write_as(author, command);
                    let fence = Fence { request, fence: Revision(fence) };
                    let write =
                        Write { terms: Terms { fence: Some(fence), ..write.terms }, ..write };
                    let stale = Rejected::StaleFence { request, fence: fence.fence };
                    let found = decide(&board, &write, at(2_000, &POLICY)).map(|_| ());
                    assert_eq!(
                        found,
                        if stands { Ok(()) } else { Err(stale) },
                        "{state} {fence:?}"
                    );
                }
            }
        }
        // A deleted request has no claim.
        carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq: REQUEST }));
        let fence = Some(Fence { request: REQUEST, fence: Revision(fence) });
        let write = write(append(Requests, items(["{}"])));
        let write = Write { terms: Terms { fence, ..write.terms }, ..write };
        assert_eq!(outcome(&board, &write), Err("stale-fence"), "{state}");
    }
}

#[test]
fn a_renewal_keeps_the_claims_fence() {
    let mut board = board_in("new");
    let claimed = |board: &mut Board, author, time, now| {
        let decision = take(board, &write_by(author, claim(time)), now).unwrap();
        let Answer::Claimed { claim, won } = decision.answer else { panic!() };
        assert_eq!(claim.agent, agent(author));
        (claim.fence.0, claim.expires_at.0, won, decision.commit.is_some())
    };
    for (author, time, now, expected) in [
        ("A", "60s", 1_000, (2, 61_000, true, true)),
        // The same end is no change, and a renewal may be shorter.
        ("A", "60s", 1_000, (2, 61_000, false, false)),
        ("A", "60s", 5_000, (2, 65_000, false, true)),
        ("A", "1s", 5_000, (2, 6_000, false, true)),
    ] {
        assert_eq!(claimed(&mut board, author, time, now), expected, "{time} {now}");
        assert_eq!(board.next_due(), Some(Timestamp(expected.1)));
    }
    take(&mut board, &write_by("A", RELEASE), 5_000).unwrap();
    assert_eq!((work(&board), board.next_due()), (None, None));
    assert_eq!(claimed(&mut board, "B", "1ms", 7_000), (6, 7_001, true, true));
}

#[test]
fn whatever_becomes_of_a_request_is_a_change_of_its_entry() {
    let mut board = board_in("new");
    let mut clock = 1_000;
    for (author, command, revision) in [
        (Some("A"), claim("60s"), 2),
        (Some("A"), claim("60s"), 3),
        (Some("A"), RELEASE, 4),
        (Some("B"), claim("60s"), 5),
        (Some("B"), finish(Some(5), Some("null")), 6),
    ] {
        clock += 1_000;
        take(&mut board, &write_as(author, command), clock).unwrap();
        let entry = board.log(&Requests).unwrap().get(REQUEST).unwrap();
        let by = author.map(agent);
        assert_eq!(entry.updated, Some(Box::new(Updated { at: Timestamp(clock), by })));
        assert_eq!(
            (entry.revision, board.log_version(&Requests).changed.0),
            (Revision(revision), revision)
        );
    }
    let done = Done {
        agent: Some(agent("B")),
        at: Timestamp(clock),
        fence: Some(Revision(5)),
        result: Some(json("null")),
        verdict: None,
    };
    assert_eq!(work(&board), Some(&Work::Done(done)));
    assert_eq!((board.bytes(), board.next_due()), (2 + 4, None), "a result counts");
}

#[test]
fn an_end_without_a_fence_notes_the_claim_that_stood() {
    for (state, author, fence) in [
        ("new", None, None),
        ("claimed", Some("A"), Some(2)),
        ("renewed", Some("A"), Some(2)),
        ("lapsed", Some("B"), None),
        ("won again", Some("A"), Some(4)),
    ] {
        let mut board = board_in(state);
        take(&mut board, &write_as(author, finish(None, None)), 2_000).unwrap();
        let Some(Work::Done(done)) = work(&board) else { panic!("{state}") };
        assert_eq!(
            (&done.fence, &done.agent),
            (&fence.map(Revision), &author.map(agent)),
            "{state}"
        );
    }
}

#[test]
fn a_changed_request_keeps_what_became_of_it() {
    let mut board = board_in("claimed");
    let before = work(&board).cloned();
    let put = Command::Log(
        Requests,
        LogCommand::PutEntry { seq: REQUEST, item: item(r#"{"x":1}"#), basis: None },
    );
    carry_out(&mut board, put);
    assert_eq!((work(&board).cloned(), board.next_due()), (before, Some(Timestamp(61_000))));
}

#[test]
fn the_lease_of_a_request_goes_with_it() {
    let replaced = Command::Log(Requests, LogCommand::Replace { items: items([r#"{"x":1}"#]) });
    let which = Which::AllButNewest(0);
    for command in [
        Command::Log(Requests, LogCommand::DeleteEntry { seq: REQUEST }),
        Command::Log(Requests, LogCommand::Remove { which: Which::All }),
        Command::Log(Requests, LogCommand::Remove { which }),
        Command::Board(BoardCommand::Clear { state: false }),
        Command::Session(SessionCommand::Delete),
        replaced,
    ] {
        let mut board = board_in("claimed");
        assert_eq!(board.next_due(), Some(Timestamp(61_000)));
        carry_out(&mut board, command.clone());
        assert_eq!(board.next_due(), None, "{command:?}");
    }
    let mut board = board_of([append(Requests, vec![item("{}"); 3])]);
    for (request, time) in [(1, "3s"), (2, "1s"), (3, "2s")] {
        let command = Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl(time) });
        take(&mut board, &write_by("A", command), 1_000).unwrap();
    }
    for (seq, next) in [(2, Some(3_000)), (3, Some(4_000)), (1, None)] {
        carry_out(&mut board, Command::Log(Requests, LogCommand::DeleteEntry { seq: Seq(seq) }));
        assert_eq!(board.next_due(), next.map(Timestamp));
    }
}

#[test]
fn only_a_request_that_is_there_is_worked_on() {
    let board = board_of([append(LogName::Questions, items(["{}"]))]);
    for command in [claim("1s"), RELEASE, finish(None, None), finish(Some(1), None)] {
        let none = Rejected::NoEntry { log: Requests, seq: REQUEST };
        let asked = write_by("A", command.clone());
        assert_eq!(decide(&board, &asked, at(0, &POLICY)), Err(none));
        assert_eq!(decide(&absent(), &asked, at(0, &POLICY)), Err(no_session()));
    }
}

#[test]
fn a_condition_on_a_claim_is_on_the_request() {
    let board = board_in("claimed");
    let condition = |revision| {
        let versions = vec![board.at_version(Revision(revision))];
        Condition { matches: Some(Matches::Versions(versions)), absent: false }
    };
    for command in [claim("70s"), RELEASE, finish(None, None)] {
        let check = |condition| {
            let write = write_by("A", command.clone());
            let write = Write { terms: Terms { condition, ..write.terms }, ..write };
            outcome(&board, &write)
        };
        assert!(check(condition(2)).is_ok(), "{command:?}");
        assert_eq!(check(condition(1)), Err("precondition-failed"), "{command:?}");
    }
}
