//! Boards built by hand for the tests of this layer.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::LogCommand;
use crate::*;

pub(crate) const ID: SessionId = SessionId(Uuid::from_u128(7));

pub(crate) const POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 1 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

pub(crate) fn item(text: &str) -> Item {
    Item::from_json(text).unwrap()
}

pub(crate) fn items<const N: usize>(texts: [&str; N]) -> Vec<Item> {
    texts.map(item).to_vec()
}

/// A screenshot's item with these bytes as its image.
pub(crate) fn screenshot(bytes: &[u8]) -> Item {
    Screenshot::from_bytes("image/png", bytes.to_vec(), None, "").unwrap().item
}

pub(crate) fn agent(name: &str) -> AgentName {
    name.parse().unwrap()
}

pub(crate) fn messages(name: &str) -> LogName {
    LogName::Messages(agent(name))
}

pub(crate) fn memory(name: &str) -> LogName {
    LogName::Memory(agent(name))
}

pub(crate) fn append(log: LogName, items: Vec<Item>) -> Command {
    Command::Log(log, LogCommand::Append { items })
}

pub(crate) fn json(text: &str) -> Json {
    Json::from_json(text, json::DEPTH_MAX).unwrap()
}

/// The path of these names, with a slash between each two; the root's is empty.
pub(crate) fn path(text: &str) -> StatePath {
    StatePath::from_segments(text.split('/').filter(|name| !name.is_empty())).unwrap()
}

pub(crate) fn ttl(text: &str) -> Ttl {
    text.parse().unwrap()
}

/// The board that the parts of its base make again.
pub(crate) fn rebased(board: &Board) -> Board {
    let mut reader = stored::BaseReader::new(board.id);
    stored::base_parts(board).for_each(|part| reader.take(&part.unwrap()).unwrap());
    reader.finish().unwrap()
}

/// A write without a condition, by nobody.
pub(crate) fn write(command: Command) -> Write {
    let session = "sess_1".parse().unwrap();
    Write { session, terms: Terms::default(), command }
}

pub(crate) fn write_if(condition: Condition, command: Command) -> Write {
    let write = write(command);
    Write { terms: Terms { condition, ..write.terms }, ..write }
}

pub(crate) fn write_by(author: &str, command: Command) -> Write {
    let write = write(command);
    Write { terms: Terms { author: Some(agent(author)), ..write.terms }, ..write }
}

pub(crate) fn at(now: i64, policy: &Policy) -> Moment<'_> {
    Moment { now: Timestamp(now), nonce: Nonce(9), policy, qa_pairs: &[], sessions: 0 }
}

/// Decides a write as the service does it: the answer to one with a key is kept.
pub(crate) fn decide_and_keep(
    board: &Board,
    write: &Write,
    moment: Moment<'_>,
) -> Result<Decision, Rejected> {
    let mut decision = decide(board, write, moment)?;
    if let (Some(key), Some(commit)) = (&write.terms.key, &mut decision.commit) {
        let forgotten = decision.board.keys().to_forget(commit.at);
        let answer = json(&format!("{{\"revision\":{}}}", commit.revision));
        let kept = Kept { key: key.clone(), answer, forgotten };
        decision.board.remember(&kept, commit.at);
        commit.kept = Some(kept);
    }
    Ok(decision)
}

/// Decides a write and applies what it comes to, which must be the board that was decided.
pub(crate) fn take(board: &mut Board, write: &Write, now: i64) -> Result<Decision, Rejected> {
    let decision = decide_and_keep(board, write, at(now, &POLICY))?;
    if let Some(commit) = &decision.commit {
        admit(board, commit).unwrap();
        apply(board, commit);
    }
    assert_eq!(*board, decision.board);
    Ok(decision)
}

/// Decides a command and applies what it comes to.
pub(crate) fn carry_out(board: &mut Board, command: Command) -> Decision {
    take(board, &write(command), 1_000).unwrap()
}

pub(crate) fn refused(board: &Board, command: Command) -> Rejected {
    decide(board, &write(command), at(0, &POLICY)).unwrap_err()
}

/// The names of a commit's changes.
pub(crate) fn changes(decision: &Decision) -> Vec<&'static str> {
    decision.commit.iter().flat_map(|commit| &commit.changes).map(Change::kind).collect()
}

pub(crate) fn no_session() -> Rejected {
    Rejected::NoSession { session: "sess_1".parse().unwrap() }
}

pub(crate) fn absent() -> Board {
    Board::absent(ID, Revision(0))
}

/// A board after these commands.
pub(crate) fn board_of<const N: usize>(commands: [Command; N]) -> Board {
    let mut board = absent();
    for command in commands {
        carry_out(&mut board, command);
    }
    board
}

/// The seqs and texts of a log.
pub(crate) fn shown(board: &Board, log: &LogName) -> Vec<(u64, String)> {
    let entries = board.log(log).into_iter().flat_map(Log::iter);
    entries.map(|entry| (entry.seq.0, entry.item.text().to_owned())).collect()
}

pub(crate) fn seqs(board: &Board, log: &LogName) -> Vec<u64> {
    shown(board, log).into_iter().map(|(seq, _)| seq).collect()
}

/// Checks the index of open questions against a scan of all questions.
pub(crate) fn check_asked(board: &Board) {
    let pending = Filter { pending: true, ..Default::default() };
    let [questions, ..] = board.logs();
    let open = questions.iter().filter(|entry| pending.matches(&LogName::Questions, entry));
    assert!(open.map(|entry| &entry.seq).eq(board.asked().open()));
    let Asked { open, awaited, by_time, bytes, answered } = board.asked();
    let pairs = questions.iter().filter_map(|entry| {
        let is_answered = entry.updated.is_some() && entry.item.get("answer").is_some();
        let agent = entry.agent.clone().filter(|_| is_answered)?;
        Some((agent, entry.revision, entry.seq))
    });
    let expected: BTreeSet<_> = pairs.collect();
    let found = answered.iter().flat_map(|(agent, questions)| {
        questions.iter().map(|(changed, seq)| (agent.clone(), *changed, *seq))
    });
    assert!(found.eq(expected), "{answered:?}");
    assert!(awaited.keys().all(|seq| open.contains(seq)));
    let mut times: Vec<_> = awaited.iter().map(|(seq, a)| (a.expires_at, *seq)).collect();
    times.sort();
    assert!(times.iter().eq(by_time));
    let defaults = awaited.values().filter_map(|awaited| awaited.default.as_ref());
    assert_eq!(*bytes, defaults.map(|default| default.len() as u64).sum::<u64>());
}

/// Checks the index of unacknowledged messages against a scan of all messages.
pub(crate) fn check_unacked(board: &Board) {
    for (name, log) in board.messages() {
        let unacked = log.iter().filter(|entry| entry.acked_at.is_none()).map(|entry| entry.seq);
        assert!(unacked.eq(board.unacked().of(name)), "{name}");
    }
    let logs = board.messages().values().map(Log::len).sum::<usize>();
    assert_eq!(board.message_entries, logs as u64);
}

#[test]
fn each_log_has_the_version_of_its_own_last_change() {
    let mut board = board_of([append(LogName::Requests, items(["{}"]))]);
    carry_out(&mut board, append(LogName::Questions, items(["{}"])));
    carry_out(&mut board, append(memory("a"), items(["{}"])));
    let changed = |log: &LogName| board.log_version(log).changed;
    assert_eq!(changed(&LogName::Requests), Revision(1));
    assert_eq!(changed(&LogName::Questions), Revision(2));
    assert_eq!(changed(&LogName::Trajectories), Revision(0));
    assert_eq!(changed(&memory("a")), Revision(3));
    assert_eq!(changed(&memory("b")), Revision(0));
    assert_eq!(board.logs_version().changed, Revision(2), "a memory is not the board's");
    assert_eq!(board.version(), Version { session: ID, changed: Revision(3) });
}

#[test]
fn memories_do_not_count_for_an_empty_board() {
    let mut board = board_of([append(memory("a"), items([r#"{"step":1}"#]))]);
    assert!(board.is_empty());
    let profile = r#"{"status":"CONTINUE"}"#.len() as u64;
    assert_eq!((board.agents().len(), board.bytes()), (1, 10 + profile));
    carry_out(&mut board, append(LogName::Questions, items(["{}"])));
    assert!(!board.is_empty());
}

#[test]
fn a_clone_keeps_what_it_showed() {
    let mut board = board_of([append(LogName::Requests, vec![item("{}"); 300])]);
    let before = board.clone();
    let which = Which::AllButNewest(1);
    carry_out(&mut board, Command::Log(LogName::Requests, LogCommand::Remove { which }));
    assert_eq!(seqs(&before, &LogName::Requests), (1..=300).collect::<Vec<_>>());
    assert_eq!(seqs(&board, &LogName::Requests), [300]);
    assert_eq!((before.bytes(), board.bytes()), (600, 2));
}

#[test]
fn entries_are_found_and_counted_across_gaps() {
    let mut board = board_of([append(LogName::Requests, vec![item("{}"); 8])]);
    for seq in [1, 4, 5, 8].map(Seq) {
        carry_out(&mut board, Command::Log(LogName::Requests, LogCommand::DeleteEntry { seq }));
    }
    let log = board.log(&LogName::Requests).unwrap();
    let found: Vec<_> = (0..10).filter(|seq| log.get(Seq(*seq)).is_some()).collect();
    assert_eq!(found, [2, 3, 6, 7]);
    let counts = (0..10).map(|seq| log.count_through(Seq(seq))).collect::<Vec<_>>();
    assert_eq!(counts, [0, 0, 1, 2, 2, 2, 3, 4, 4, 4]);
    assert_eq!((log.last_seq(), log.next_seq(), log.len()), (Seq(8), Seq(9), 4));
    assert_eq!(log.at(2).unwrap().seq, Seq(6));
}
