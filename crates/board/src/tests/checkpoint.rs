//! Tests of checkpoints.

use super::board::*;
use crate::*;

use crate::CheckpointCommand;
use LogName::Requests;

fn put(name: &str) -> Command {
    Command::Checkpoint(name.parse().unwrap(), CheckpointCommand::Put)
}

fn remove(name: &str) -> Command {
    Command::Checkpoint(name.parse().unwrap(), CheckpointCommand::Remove)
}

fn named(board: &Board) -> Vec<(&str, u64)> {
    board.checkpoints().iter().map(|(name, at)| (name.as_str(), at.revision.0)).collect()
}

#[test]
fn a_checkpoint_names_its_commits_revision_and_can_be_moved() {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    let decision = take(&mut board, &write_by("A", put("b")), 2_000).unwrap();
    assert_eq!((changes(&decision), decision.existed), (vec!["checkpoint_put"], false));
    carry_out(&mut board, put("a"));
    assert_eq!(named(&board), [("a", 3), ("b", 2)]);
    let agent = Some(agent("A"));
    let made = Checkpoint { revision: Revision(2), at: Timestamp(2_000), agent };
    assert_eq!(board.checkpoints().get("b"), Some(&made));
    assert!(carry_out(&mut board, put("b")).existed);
    assert_eq!(named(&board), [("a", 3), ("b", 4)]);
    assert_eq!(board.checkpoints_version().changed, Revision(4));
    let decision = carry_out(&mut board, remove("a"));
    assert_eq!(changes(&decision), ["checkpoint_removed"]);
    assert!(decision.commit.unwrap().only_removes());
    assert_eq!((named(&board), board.checkpoints_version().changed.0), (vec![("b", 4)], 5));
}

#[test]
fn only_existing_checkpoints_of_sessions_are_removed() {
    assert_eq!(refused(&absent(), put("a")), no_session());
    assert_eq!(refused(&absent(), remove("a")), no_session());
    let mut board = board_of([append(Requests, items(["{}"]))]);
    let unknown = Rejected::NoCheckpoint { checkpoint: "a".parse().unwrap() };
    assert_eq!(refused(&board, remove("a")), unknown);
    carry_out(&mut board, put("a"));
    let gone = Condition { absent: true, matches: None };
    let refused = decide(&board, &write_if(gone, put("a")), at(0, &POLICY)).unwrap_err();
    assert!(matches!(refused, Rejected::Precondition { .. }), "{refused:?}");
}

#[test]
fn a_session_has_so_many_checkpoints_and_no_more() {
    let mut board = board_of([append(Requests, items(["{}"]))]);
    for n in 0..CHECKPOINTS_MAX {
        carry_out(&mut board, put(&format!("c{n}")));
    }
    assert_eq!(refused(&board, put("one more")), Rejected::TooManyCheckpoints);
    carry_out(&mut board, put("c7"));
    carry_out(&mut board, remove("c8"));
    carry_out(&mut board, put("one more"));
    assert_eq!(board.checkpoints().len(), CHECKPOINTS_MAX);
}
