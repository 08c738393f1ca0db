//! Tests of admission: commits that do not fit their board are refused, and admitted ones can be applied.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::board::*;
use super::plan::{history, steps};
use crate::*;

use crate::{AgentChange, LogChange, RequestChange, RequestCommand, SessionChange, StateChange};
use LogName::{Requests, Screenshots};

/// A board at revision 1, with two entries in one log.
fn board() -> Board {
    board_of([append(Requests, items(["{}", "{}"]))])
}

fn commit(changes: Vec<Change>) -> Commit {
    let (revision, at) = (Revision(2), Timestamp(1_000));
    Commit { revision, at, agent: None, trace: None, nonce: Nonce(0), kept: None, changes }
}

fn created() -> Change {
    let name = "sess_1".parse().unwrap();
    Change::Session(SessionChange::Created {
        name,
        settings: Default::default(),
        labels: Default::default(),
    })
}

fn appended(log: LogName, first: u64, items: Vec<Item>) -> Change {
    Change::Log(log, LogChange::Appended { first: Seq(first), items })
}

fn removed(ranges: &[(u64, u64)]) -> Change {
    let range = |&(first, last): &(u64, u64)| SeqRange { first: Seq(first), last: Seq(last) };
    Change::Log(Requests, LogChange::Removed { ranges: ranges.iter().map(range).collect() })
}

fn updated(seq: u64) -> Change {
    Change::Log(Requests, LogChange::Updated { seq: Seq(seq), item: item("{}") })
}

fn misfit(changes: Vec<Change>) -> Misfit {
    admit(&board(), &commit(changes)).unwrap_err()
}

fn no_entry(seq: u64) -> Misfit {
    Misfit::Entry { log: Requests, seq: Seq(seq) }
}

#[test]
fn a_commit_makes_the_next_revision() {
    for found in [0, 1, 3, u64::MAX].map(Revision) {
        let commit = Commit { revision: found, ..commit(vec![updated(1)]) };
        let misfit = Misfit::Revision { head: Revision(1), found };
        assert_eq!(admit(&board(), &commit), Err(misfit));
    }
    assert_eq!(admit(&board(), &commit(vec![updated(1)])), Ok(()));
}

#[test]
fn a_commit_is_not_before_the_one_before_it() {
    let at = |at| Commit { at: Timestamp(at), ..commit(vec![updated(1)]) };
    assert_eq!(admit(&board(), &at(999)), Err(Misfit::Time));
    assert_eq!(admit(&board(), &at(i64::MAX)), Ok(()));
}

#[test]
fn a_commit_changes_something() {
    assert_eq!(misfit(vec![]), Misfit::Nothing);
}

#[test]
fn a_session_is_made_once_and_changed_only_while_it_exists() {
    let life = |change, exists| Misfit::Life { change, exists };
    assert_eq!(misfit(vec![created()]), life(0, true));
    assert_eq!(misfit(vec![updated(1), created()]), life(1, true));
    assert_eq!(misfit(vec![Change::Session(SessionChange::Deleted), updated(1)]), life(1, false));
    assert_eq!(
        misfit(vec![
            Change::Session(SessionChange::Deleted),
            Change::Session(SessionChange::Deleted)
        ]),
        life(1, false)
    );
    let first = |changes| Commit { revision: Revision(1), ..commit(changes) };
    let settings = Default::default();
    let configured =
        Change::Session(SessionChange::Configured { settings, labels: Default::default() });
    let cleared = Change::Log(Requests, LogChange::Cleared);
    let appended = appended(Requests, 1, vec![]);
    let put = Change::Agent(agent("A"), AgentChange::Put { profile: Profile::first() });
    let state = Change::State(path(""), StateChange::Removed);
    let end = Change::Expired(Due::Session);
    let all = [configured, cleared, appended, removed(&[]), updated(1), put, state, end];
    for change in all.into_iter().chain([Change::Session(SessionChange::Deleted)]) {
        assert_eq!(admit(&absent(), &first(vec![change.clone()])), Err(life(0, false)));
        let misfit = admit(&absent(), &first(vec![created(), change]));
        assert!(!matches!(misfit, Err(Misfit::Life { .. })));
    }
}

#[test]
fn seqs_go_on_from_the_last() {
    let seq = |log, next, found| Misfit::Seq { log, next: Seq(next), found: Seq(found) };
    for found in [0, 1, 2, 4, u64::MAX] {
        assert_eq!(misfit(vec![appended(Requests, found, vec![])]), seq(Requests, 3, found));
    }
    assert_eq!(misfit(vec![appended(memory("a"), 2, vec![])]), seq(memory("a"), 1, 2));
    let one = |first| appended(Requests, first, items(["{}"]));
    assert_eq!(misfit(vec![one(3), one(3)]), seq(Requests, 4, 3));
    let cleared = Change::Log(Requests, LogChange::Cleared);
    assert_eq!(misfit(vec![cleared.clone(), one(1)]), seq(Requests, 3, 1));
    assert_eq!(admit(&board(), &commit(vec![one(3), cleared, one(4)])), Ok(()));
}

#[test]
fn only_what_is_there_is_changed_or_removed() {
    for seq in [0, 3, u64::MAX] {
        assert_eq!(misfit(vec![updated(seq)]), no_entry(seq));
    }
    for (ranges, culprit) in [
        (&[(0, 1)][..], 0),
        (&[(3, 3)], 3),
        (&[(1, 3)], 3),
        (&[(1, u64::MAX)], u64::MAX),
        (&[(2, 1)], 2),
        (&[(2, 2), (1, 1)], 1),
        (&[(1, 1), (1, 2)], 1),
        (&[(1, 2), (2, 2)], 2),
    ] {
        assert_eq!(misfit(vec![removed(ranges)]), no_entry(culprit), "{ranges:?}");
    }
    assert_eq!(misfit(vec![removed(&[(1, 1)]), updated(1)]), no_entry(1));
    assert_eq!(admit(&board(), &commit(vec![removed(&[(1, 1), (2, 2)])])), Ok(()));
}

#[test]
fn an_image_stands_between_two_quotes() {
    let shot = |text: &str, at| {
        let image = Image { at, ..screenshot(b"x").image().unwrap().clone() };
        appended(Screenshots, 1, vec![Item::from_object(text, Some(image)).unwrap()])
    };
    for (text, at) in [
        (r#"{"a":""}"#, 0),
        (r#"{"a":""}"#, 5),
        (r#"{"a":""}"#, 7),
        (r#"{"a":""}"#, 8),
        (r#"{"a":""}"#, 9),
        (r#"{"a":""}"#, usize::MAX),
        (r#"{"é":""}"#, 3),
    ] {
        assert_eq!(misfit(vec![shot(text, at)]), Misfit::ImagePlace { at }, "{text} {at}");
    }
    assert_eq!(admit(&board(), &commit(vec![shot(r#"{"a":""}"#, 6)])), Ok(()));
}

#[test]
fn an_image_keeps_its_bytes_within_the_counter() {
    let shot = |contents: &[u8], bytes| {
        let item = screenshot(contents);
        let image = Image { bytes, ..item.image().unwrap().clone() };
        Item::from_object(item.text(), Some(image)).unwrap()
    };
    let sha256 = Digest::of(b"x");
    let wrong = |bytes| Misfit::ImageBytes { sha256, bytes };
    let shots = |items| vec![appended(Screenshots, 1, items)];
    assert_eq!(misfit(shots(vec![shot(b"x", 1), shot(b"x", 2)])), wrong(2));
    assert_eq!(misfit(shots(vec![shot(b"y", 1), shot(b"x", u64::MAX)])), wrong(u64::MAX));
    let mut board = board();
    carry_out(&mut board, append(Screenshots, vec![shot(b"x", 1)]));
    let again = |bytes| Commit {
        revision: Revision(3),
        ..commit(vec![appended(Screenshots, 2, vec![shot(b"x", bytes)])])
    };
    assert_eq!(admit(&board, &again(2)), Err(wrong(2)));
    assert_eq!(admit(&board, &again(1)), Ok(()));
}

/// At revision 4: a state, and requests of which the first is claimed with fence 4, and the second done.
fn worked_on() -> Board {
    let put =
        Command::State(path(""), Edit::Put { value: json(r#"{"o":{"n":1},"l":[]}"#), ttl: None });
    let requests = append(Requests, vec![item("{}"); 3]);
    let finish = Command::Request(Seq(2), RequestCommand::Finish { fence: None, result: None });
    let mut board = board_of([put, requests, finish]);
    let claim = Command::Request(Seq(1), RequestCommand::Claim { ttl: ttl("60s") });
    take(&mut board, &write_by("A", claim), 1_000).unwrap();
    board
}

fn admitted(changes: Vec<Change>) -> Result<(), Misfit> {
    admit(&worked_on(), &Commit { revision: Revision(5), ..commit(changes) })
}

#[test]
fn the_state_has_a_place_for_what_is_written() {
    let deep = |levels: usize| json(&format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
    let raw = |text: &str| Json::from(serde_json::value::to_raw_value(&text).unwrap());
    let below = path(&"d/".repeat(128));
    let put = |at: &str, value: &str| {
        Change::State(path(at), StateChange::Put { value: json(value), expires_at: None })
    };
    let set =
        |at: &str, value: &str| Change::State(path(at), StateChange::Set { value: json(value) });
    let merged =
        |at: &str, patch: &str| Change::State(path(at), StateChange::Merged { patch: json(patch) });
    let appended = |at: &str, elements: &[&str]| {
        Change::State(
            path(at),
            StateChange::Appended {
                elements: elements.iter().map(|element| json(element)).collect(),
            },
        )
    };
    let removed = |at: &str| Change::State(path(at), StateChange::Removed);
    let expired = |at: &str| Change::Expired(Due::State(path(at)));
    for (change, fits) in [
        (put("x/y", "[]"), true),
        (put("o/n", "[]"), true),
        (put("", "{}"), true),
        (put("o/n/x", "1"), false),
        (put("l/0", "1"), false),
        (put("", "[]"), false),
        (put("", "null"), false),
        (Change::State(path("x"), StateChange::Put { value: deep(127), expires_at: None }), true),
        (Change::State(path("x"), StateChange::Put { value: deep(128), expires_at: None }), false),
        (Change::State(below.clone(), StateChange::Set { value: json("1") }), true),
        (Change::State(below, StateChange::Set { value: json("[]") }), false),
        (set("o/n", "2"), true),
        (set("o/n/x", "2"), false),
        (set("", "2"), false),
        (merged("o", "null"), true),
        (merged("", "{}"), true),
        (merged("", "null"), false),
        (merged("l/x", "{}"), false),
        (Change::State(path("x"), StateChange::Merged { patch: deep(128) }), false),
        (appended("l", &["1"]), true),
        (appended("l", &[]), true),
        (appended("new/l", &[]), true),
        (appended("o", &["1"]), false),
        (appended("o/n", &[]), false),
        (appended("l/x", &["1"]), false),
        (appended("", &["1"]), false),
        (Change::State(path("l"), StateChange::Appended { elements: vec![deep(126)] }), true),
        (Change::State(path("l"), StateChange::Appended { elements: vec![deep(127)] }), false),
        (removed("o/n"), true),
        (removed(""), true),
        (removed("o/x"), false),
        (removed("l/0"), false),
        (expired("o"), true),
        (expired("x"), false),
    ] {
        let (Change::State(path, _) | Change::Expired(Due::State(path))) = &change else {
            panic!("{change:?}")
        };
        let misfit = Misfit::State { path: path.clone() };
        let expected = if fits { Ok(()) } else { Err(misfit) };
        assert_eq!(admitted(vec![change.clone()]), expected, "{change:?}");
    }
    let surrogate = serde_json::value::RawValue::from_string("\"\\ud800\"".to_owned()).unwrap();
    let change = Change::State(path("x"), StateChange::Set { value: surrogate.into() });
    assert_eq!(admitted(vec![change]), Err(Misfit::State { path: path("x") }));
    assert_eq!(
        admitted(vec![Change::State(path("x"), StateChange::Set { value: raw("x") })]),
        Ok(())
    );
    let through = vec![put("x", "1"), put("x/y", "1")];
    assert_eq!(admitted(through), Err(Misfit::State { path: path("x/y") }));
    assert_eq!(admitted(vec![removed("o"), put("o/n/x", "1")]), Ok(()));
}

#[test]
fn only_an_agent_that_is_there_is_removed() {
    let put = || Change::Agent(agent("A"), AgentChange::Put { profile: Profile::first() });
    let removed = || Change::Agent(agent("A"), AgentChange::Removed);
    let misfit = Err(Misfit::Agent { agent: agent("A") });
    assert_eq!(admitted(vec![removed()]), misfit);
    assert_eq!(admitted(vec![put(), put(), removed()]), Ok(()));
    assert_eq!(admitted(vec![put(), removed(), removed()]), misfit);
}

#[test]
fn work_on_a_request_goes_on_from_where_it_stands() {
    let claimed = |seq, name: &str, fence| {
        Change::Request(
            Seq(seq),
            RequestChange::Claimed {
                agent: agent(name),
                fence: Revision(fence),
                expires_at: Timestamp(9),
            },
        )
    };
    let released = |seq| Change::Request(Seq(seq), RequestChange::Released);
    let finished =
        |seq| Change::Request(Seq(seq), RequestChange::Finished { fence: None, result: None });
    let expired = |seq| Change::Expired(Due::Claim(Seq(seq)));
    let (no, gone) = (|seq| Misfit::Work { seq: Seq(seq) }, |seq| no_entry(seq));
    // The first is claimed by A with fence 4, the second is done, the third is new; a claim is won at 5.
    for (changes, expected) in [
        (vec![claimed(1, "A", 4)], Ok(())),
        (vec![claimed(1, "A", 5)], Err(no(1))),
        (vec![claimed(1, "B", 4)], Err(no(1))),
        (vec![claimed(2, "A", 5)], Err(no(2))),
        (vec![claimed(3, "A", 5)], Ok(())),
        (vec![claimed(3, "A", 4)], Err(no(3))),
        (vec![claimed(4, "A", 5)], Err(gone(4))),
        (vec![released(1)], Ok(())),
        (vec![released(2)], Err(no(2))),
        (vec![released(3)], Err(no(3))),
        (vec![released(4)], Err(gone(4))),
        (vec![finished(1)], Ok(())),
        (vec![finished(2)], Err(no(2))),
        (vec![finished(3)], Ok(())),
        (vec![finished(4)], Err(gone(4))),
        (vec![expired(1)], Ok(())),
        (vec![expired(2)], Err(no(2))),
        (vec![expired(3)], Err(no(3))),
        (vec![expired(4)], Err(gone(4))),
        (vec![expired(1), expired(1)], Err(no(1))),
        (vec![expired(1), claimed(1, "B", 5), finished(1)], Ok(())),
        (vec![expired(1), claimed(1, "A", 4)], Err(no(1))),
        (vec![released(1), released(1)], Err(no(1))),
        (vec![finished(3), finished(3)], Err(no(3))),
    ] {
        assert_eq!(admitted(changes.clone()), expected, "{changes:?}");
    }
}

#[test]
fn no_more_keys_are_forgotten_than_there_are() {
    let key = |name: &str| Key { key: name.into(), fingerprint: Digest::of(b"") };
    let kept = |forgotten| {
        let kept = Kept { key: key("new"), answer: json("1"), forgotten: Forgotten(forgotten) };
        Commit { revision: Revision(2), kept: Some(kept), ..commit(vec![]) }
    };
    let misfit = |known, found| Err(Misfit::Keys { known, found });
    let mut board = board();
    assert_eq!(admit(&board, &kept(0)), Ok(()), "a key alone is something");
    assert_eq!(admit(&board, &kept(1)), misfit(0, 1));
    apply(&mut board, &kept(0));
    let next = |forgotten| Commit { revision: Revision(3), ..kept(forgotten) };
    assert_eq!(admit(&board, &next(1)), Ok(()));
    assert_eq!(admit(&board, &next(2)), misfit(1, 2));
    assert_eq!(admit(&board, &next(usize::MAX)), misfit(1, usize::MAX));
    // A key may come with the end of its session, which forgets all the others.
    let end = Commit { changes: vec![Change::Session(SessionChange::Deleted)], ..next(1) };
    assert_eq!(admit(&board, &end), Ok(()));
    apply(&mut board, &end);
    assert_eq!(board.keys().len(), 1);
}

fn edits() -> impl Strategy<Value = Vec<(Index, u8)>> {
    vec((any::<Index>(), select(&b"0123456789-.eabdlnrstu_\"\\{}[]:, "[..])), 1..4)
}

fn is_sound(restored: &Restored) -> bool {
    let entries = restored.logs.iter().flat_map(|(_, log)| &log.entries);
    let agents = restored.agents.iter().filter_map(|(_, agent)| agent.as_ref());
    entries.map(|entry| &entry.item).all(Item::is_sound)
        && agents.map(|agent| agent.profile.item()).all(Item::is_sound)
}

proptest! {
    #[test]
    fn a_changed_body_is_refused_or_keeps_the_board_sound(
        steps in steps(20),
        edits in vec(edits(), 24),
    ) {
        for (board, commit) in history(&steps) {
            let body = stored::encode_commit(&commit).unwrap();
            for edits in &edits {
                let mut body = body.clone();
                for (index, byte) in edits {
                    let at = index.index(body.len());
                    body[at] = *byte;
                }
                let Ok(commit) = stored::decode_commit(&body) else { continue };
                // Admission does not check the text of items and profiles; the reader of a base does.
                let is_odd = |change: &Change| {
                    matches!(change, Change::Agent(_, AgentChange::Put { profile, .. }) if !profile.item().is_sound())
                        || matches!(change, Change::Session(SessionChange::Restored(restored)) if !is_sound(restored))
                        || !change.items().iter().all(Item::is_sound)
                };
                if commit.changes.iter().any(is_odd) {
                    continue;
                }
                if admit(&board, &commit).is_ok() {
                    let mut board = board.clone();
                    apply(&mut board, &commit);
                    check_asked(&board);
                    prop_assert_eq!(Board { oldest: board.oldest, ..rebased(&board) }, board);
                }
            }
        }
    }
}
