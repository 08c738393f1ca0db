//! Tests of forgotten images: only unreferenced images are forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::board::*;
use crate::*;

use crate::{LogCommand, SessionChange, SessionCommand};
use LogName::Screenshots;

/// With two screenshots, of which the second one was deleted.
fn board() -> Board {
    board_of([
        append(Screenshots, vec![screenshot(b"one"), screenshot(b"two!")]),
        Command::Log(Screenshots, LogCommand::DeleteEntry { seq: Seq(2) }),
    ])
}

fn forget(board: &Board, images: &[&[u8]]) -> Command {
    let images: BTreeSet<_> = images.iter().map(|bytes| Digest::of(bytes)).collect();
    Command::Session(SessionCommand::ForgetImages { seen: board.version(), images })
}

fn forgotten(images: &[Digest]) -> Change {
    Change::Session(SessionChange::ImagesForgotten { images: images.to_vec() })
}

#[test]
fn unnamed_images_are_forgotten_and_no_longer_count() {
    let before = board();
    assert_eq!(before.image_bytes(), 7);
    let mut board = before.clone();
    let command = forget(&board, &[b"one", b"two!", b"unknown"]);
    let decision = take(&mut board, &write(command.clone()), 9_000).unwrap();
    let commit = decision.commit.unwrap();
    assert_eq!(commit.changes, [forgotten(&[Digest::of(b"two!")])]);
    assert!(commit.is_system() && commit.only_removes() && !commit.touches_questions());
    assert_eq!((board.image_bytes(), board.images().count()), (3, 1));
    assert_eq!(board.log_version(&Screenshots), before.log_version(&Screenshots));
    assert_eq!(board.written_at, before.written_at);
    assert_eq!(rebased(&board), board.beginning_at(board.revision()));
    // The scanned version is no longer the head.
    let late = take(&mut board.clone(), &write(command), 9_000);
    assert_eq!(late, Err(Rejected::Stale));
    let none = take(&mut board.clone(), &write(forget(&board, &[b"one"])), 9_000).unwrap();
    assert_eq!((none.commit, none.answer), (None, Answer::Removed { count: 0 }));
    carry_out(&mut board, append(Screenshots, vec![screenshot(b"two!")]));
    assert_eq!(board.image_bytes(), 7);
}

#[test]
fn what_a_forgotten_image_took_is_room_again() {
    let policy = Policy { session_blob_bytes_max: 7, ..POLICY };
    let mut board = board();
    let add = write(append(Screenshots, vec![screenshot(b"more")]));
    let full = decide(&board, &add, at(9_000, &policy));
    assert_eq!(full, Err(Rejected::ImagesFull { bytes: 11, max: 7 }));
    let forget = forget(&board, &[b"two!"]);
    carry_out(&mut board, forget);
    assert!(decide(&board, &add, at(9_000, &policy)).is_ok());
}

#[test]
fn a_board_with_forgotten_images_does_not_come_back() {
    let then = board_of([append(Screenshots, vec![screenshot(b"one"), screenshot(b"two!")])]);
    let mut board = then.clone();
    carry_out(&mut board, Command::Log(Screenshots, LogCommand::DeleteEntry { seq: Seq(2) }));
    let restore = write(Command::Session(SessionCommand::Restore { then: Arc::new(then.clone()) }));
    take(&mut board.clone(), &restore, 9_000).unwrap();
    let forget = forget(&board, &[b"two!"]);
    carry_out(&mut board, forget);
    let refused = take(&mut board, &restore, 9_000);
    assert_eq!(refused, Err(Rejected::NoRevision { revision: then.revision() }));
}

#[test]
fn only_known_images_without_entries_are_forgotten() {
    let mut board = board();
    carry_out(&mut board, append(memory("a"), vec![screenshot(b"kept")]));
    carry_out(&mut board, append(Screenshots, vec![screenshot(b"gone")]));
    carry_out(&mut board, Command::Log(Screenshots, LogCommand::DeleteEntry { seq: Seq(3) }));
    let [mut low, mut high] = [Digest::of(b"two!"), Digest::of(b"gone")];
    if low > high {
        (low, high) = (high, low);
    }
    let admitted = |images: &[Digest]| {
        let (revision, at) = (board.revision().next(), Timestamp(9_000));
        let changes = vec![forgotten(images)];
        let commit =
            Commit { revision, at, agent: None, trace: None, nonce: Nonce(0), kept: None, changes };
        admit(&board, &commit)
    };
    let no = |bytes: &[u8]| Err(Misfit::ImageForgotten { sha256: Digest::of(bytes) });
    assert_eq!(admitted(&[low, high]), Ok(()));
    assert_eq!(admitted(&[high]), Ok(()));
    assert_eq!(admitted(&[]), Err(Misfit::Nothing));
    assert_eq!(admitted(&[high, low]), Err(Misfit::ImageForgotten { sha256: low }));
    assert_eq!(admitted(&[low, low]), Err(Misfit::ImageForgotten { sha256: low }));
    assert_eq!(admitted(&[Digest::of(b"unknown")]), no(b"unknown"));
    assert_eq!(admitted(&[Digest::of(b"one")]), no(b"one"));
    assert_eq!(admitted(&[Digest::of(b"kept")]), no(b"kept"));
    let many: Vec<_> = (0..=IMAGES_FORGOTTEN_MAX).map(|n| Digest::of(&n.to_le_bytes())).collect();
    assert_eq!(admitted(&many), Err(Misfit::ImageForgotten { sha256: many[IMAGES_FORGOTTEN_MAX] }));
}
