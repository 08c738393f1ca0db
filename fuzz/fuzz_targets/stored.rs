//! Arbitrary bytes as the body of a stored commit or summary: no panic; what is read is written equally, and is admitted
//! before it is applied.
#![no_main]

use blackboard::board::stored::{decode_commit, decode_summary, encode_commit, encode_summary};
use blackboard::board::{Board, Frame, Revision, SessionId, admit, apply};
use libfuzzer_sys::fuzz_target;

const SESSION: SessionId = SessionId(uuid::Uuid::from_u128(1));

fuzz_target!(|bytes: &[u8]| {
    // As a frame its checksum would not fit.
    let _ = Frame::decode(SESSION, Revision(1), bytes);
    if let Ok(summary) = decode_summary(SESSION, bytes) {
        let again = encode_summary(&summary).expect("a summary that was read");
        assert_eq!(decode_summary(SESSION, &again).ok(), Some(summary));
    }
    // Commits of one session, one after the other.
    let mut board = Board::absent(SESSION, Revision(0));
    for body in bytes.split(|byte| *byte == 0) {
        let Ok(commit) = decode_commit(body) else { continue };
        let again = encode_commit(&commit).expect("a commit that was read");
        assert_eq!(decode_commit(&again).ok().as_ref(), Some(&commit));
        if admit(&board, &commit).is_ok() {
            apply(&mut board, &commit);
            assert_eq!(board.revision(), commit.revision);
        }
    }
});
