//! Tests of hostile bases: each is refused, or becomes a board on which every operation works.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::base::*;
use crate::tests::board::*;
use crate::tests::plan::{Step, steps};
use crate::*;
use crate::{BoardCommand, LogCommand, SessionCommand};

/// Looks at all that the functions of a board rely on.
fn check_sound(board: &Board) {
    let pending = Filter { pending: true, ..Filter::default() };
    let owned = board.owned_logs().map(|(name, _)| name);
    let (mut claim_deadlines, mut open, mut bytes) = (BTreeSet::new(), BTreeSet::new(), 0);
    for name in LogName::BOARD.into_iter().chain(owned) {
        let log = board.log(&name).unwrap();
        assert!(log.iter().map(|entry| entry.seq).is_sorted_by(|a, b| a < b));
        assert!(log.changed() <= board.revision && log.next_seq() > log.last_seq());
        for (index, entry) in log.iter().enumerate() {
            assert!(entry.seq >= Seq(1) && entry.seq <= log.last_seq());
            assert_eq!(log.get(entry.seq), Some(entry));
            assert_eq!(log.count_through(entry.seq), index + 1);
            assert!(entry.revision <= board.revision && entry.item.is_sound());
            if let Some(image) = entry.item.image() {
                assert_eq!(board.images.get(&image.sha256), Some(&image.bytes));
                let shown = entry.item.with_image_text(&image.data_url(b"bytes"));
                assert!(json::syntax(shown.as_bytes()).is_ok(), "{shown}");
            }
            assert!(name == LogName::Requests || entry.work.is_none());
            claim_deadlines.extend(entry.work.as_deref().and_then(Work::claim).map(|claim| {
                assert!(claim.fence <= board.revision);
                (claim.expires_at, entry.seq)
            }));
            if name == LogName::Questions && pending.matches(&name, entry) {
                open.insert(entry.seq);
            }
            bytes += entry.bytes();
        }
        assert_eq!(log.bytes(), log.iter().map(|entry| entry.bytes()).sum::<u64>());
    }
    assert!(claim_deadlines.iter().eq(board.tasks().leases()) && open.iter().eq(&board.asked.open));
    check_unacked(board);
    let by_time = board.asked.awaited.iter().map(|(seq, awaited)| (awaited.expires_at, *seq));
    assert!(by_time.collect::<BTreeSet<_>>().iter().eq(&board.asked.by_time));
    assert!(board.asked.awaited.keys().all(|seq| open.contains(seq)));
    for agent in board.agents.values() {
        assert!(agent.changed <= board.revision && agent.profile.item().is_sound());
        assert_eq!(Profile::new(agent.profile.item().clone()).as_ref(), Some(&agent.profile));
        bytes += agent.profile.item().bytes();
    }
    let state = board.state.text();
    assert!(json::check(&state, json::DEPTH_MAX).is_ok());
    assert_eq!(board.state.bytes(), state.len() as u64);
    assert!(board.state.revisions().iter().all(|changed| *changed <= board.revision));
    assert!(board.state.expiries().all(|(path, _)| board.state.value(path).is_some()));
    assert_eq!(board.bytes, bytes + state.len() as u64 - 2);
    assert_eq!(board.image_bytes, board.images.values().sum::<u64>());
    assert!(board.blobs.keys().all(|sha256| board.has_image(sha256)));
    let keys: BTreeMap<_, _> = board.keys.iter().collect();
    assert_eq!(keys.len(), board.keys.len());
    let (now, revision) = (board.updated_at, board.revision);
    assert!(now.0 >= 0 && board.oldest <= revision && board.oldest_cursor() <= revision.next());
    assert!(board.checkpoints.values().all(|checkpoint| checkpoint.revision <= revision));
    assert!(board.floor <= revision && board.fences_after <= revision);
}

/// Writes to a board, and lets what is in it come to its end.
fn go_on(mut board: Board, steps: &[Step]) {
    let mut clock = board.updated_at.0.min(1 << 40);
    for (nonce, step) in (0..).zip(steps) {
        let moment = step.moment(&mut clock, nonce);
        if let Some(commit) = expire(&board, moment.now, moment.nonce) {
            follow(&mut board, &commit);
        }
        let decided = decide_and_keep(&board, &step.write(&board), moment);
        if let Ok(Decision { commit: Some(commit), .. }) = decided {
            follow(&mut board, &commit);
        }
    }
    while let Some(commit) = expire(&board, Timestamp(i64::MAX), Nonce(0)) {
        follow(&mut board, &commit);
    }
    for command in [
        append(LogName::Questions, items([r#"{"question":"?"}"#])),
        Command::Log(LogName::Requests, LogCommand::Remove { which: Which::AllButNewest(1) }),
        Command::RemoveAgents,
        Command::Board(BoardCommand::Clear { state: true }),
        Command::Session(SessionCommand::Delete),
    ] {
        let decided = decide_and_keep(&board, &write(command), at(0, &POLICY));
        if let Ok(Decision { commit: Some(commit), .. }) = decided {
            follow(&mut board, &commit);
        }
    }
}

/// Returns true if each image has its real length. A base cannot tell: only the image's bytes can.
fn has_lengths_of(board: &Board, real: &Board) -> bool {
    let mut images = board.images.iter();
    images.all(|(image, bytes)| real.images.get(image).is_none_or(|real| real == bytes))
}

fn follow(board: &mut Board, commit: &Commit) {
    admit(board, commit).unwrap();
    apply(board, commit);
    check_sound(board);
    let parts = parts_of(board);
    let again = read(parts.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(Board { oldest: board.oldest, ..again }, *board);
}

/// A board with some of what a plan of writes does not bring.
fn enriched(mut board: Board) -> Board {
    if board.life.is_none() {
        return board;
    }
    write_now(
        &mut board,
        append(LogName::Questions, items([r#"{"question":"?"}"#, r#"{"text":"?"}"#])),
    );
    let (revision, at) = (board.revision, board.updated_at);
    let name = "before".parse().unwrap();
    board.checkpoints.insert(name, Checkpoint { revision, at, agent: None });
    if let Some(question) = board.asked.open.get_max().copied() {
        let awaited = Awaited { expires_at: Timestamp(9_000), default: Some("no".into()) };
        board.asked.wait(SeqRange { first: question, last: question }, &awaited);
    }
    board
}

fn write_now(board: &mut Board, command: Command) {
    if let Ok(decision) = decide_and_keep(board, &write(command), at(0, &POLICY)) {
        *board = decision.board;
    }
}

/// Damage to the parts of a base.
#[derive(Clone, Debug)]
enum Damage {
    Byte(Index, Index, u8),
    Number(Index, Index, &'static str),
    Remove(Index),
    Repeat(Index),
    Swap(Index, Index),
    /// Corrects the count in the end part.
    Count,
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = select(&b"0123456789-.eabdlnrstu_\"\\{}[]:, \n"[..]);
    let number = select(vec!["0", "1", "2", "7", "-1", "9007199254740993", "18446744073709551615"]);
    let at = any::<Index>;
    prop_oneof![
        6 => (at(), at(), byte).prop_map(|(part, at, byte)| Damage::Byte(part, at, byte)),
        6 => (at(), at(), number).prop_map(|(part, at, number)| Damage::Number(part, at, number)),
        1 => at().prop_map(Damage::Remove),
        1 => at().prop_map(Damage::Repeat),
        1 => (at(), at()).prop_map(|(a, b)| Damage::Swap(a, b)),
        2 => Just(Damage::Count),
    ]
}

fn harm(parts: &mut Vec<Vec<u8>>, damage: &Damage) {
    if parts.is_empty() {
        return;
    }
    let count = parts.len();
    match damage {
        Damage::Byte(part, at, byte) => {
            let part = &mut parts[part.index(count)];
            let at = at.index(part.len());
            part[at] = *byte;
        }
        Damage::Number(part, at, number) => {
            let part = &mut parts[part.index(count)];
            let begins = |at: &usize| {
                part[*at].is_ascii_digit() && !part[at.saturating_sub(1)].is_ascii_digit()
            };
            let places: Vec<usize> = (0..part.len()).filter(begins).collect();
            if places.is_empty() {
                return;
            }
            let from = places[at.index(places.len())];
            let digits = part[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            part.splice(from..from + digits, number.bytes());
        }
        Damage::Remove(part) => drop(parts.remove(part.index(count))),
        Damage::Repeat(part) => parts.insert(part.index(count), parts[part.index(count)].clone()),
        Damage::Swap(a, b) => parts.swap(a.index(count), b.index(count)),
        Damage::Count => {
            parts.retain(|part| !part.starts_with(b"{\"end\""));
            parts.push(format!("{{\"end\":{{\"parts\":{}}}}}", parts.len()).into_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn harmed_parts_are_refused_or_make_a_sound_board(
        before in steps(25),
        after in steps(4),
        damages in vec(vec(damage(), 1..3), 32),
    ) {
        let board = boards(&before).pop().map_or_else(absent, enriched);
        check_sound(&board);
        for damages in &damages {
            let mut parts = parts_of(&board);
            damages.iter().for_each(|damage| harm(&mut parts, damage));
            let Ok(harmed) = read(parts.iter().map(Vec::as_slice)) else { continue };
            check_sound(&harmed);
            if has_lengths_of(&harmed, &board) {
                go_on(harmed, &after);
            }
        }
    }

    #[test]
    fn the_golden_base_is_as_sound_when_it_is_harmed(
        after in steps(4),
        damages in vec(vec(damage(), 1..3), 32),
    ) {
        for damages in &damages {
            let mut parts: Vec<Vec<u8>> = golden().lines().map(|line| line.as_bytes().to_vec()).collect();
            damages.iter().for_each(|damage| harm(&mut parts, damage));
            if let Ok(board) = read(parts.iter().map(Vec::as_slice)) {
                check_sound(&board);
                go_on(board, &after);
            }
        }
    }
}
