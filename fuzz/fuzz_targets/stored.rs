//! Arbitrary bytes as stored commits, a summary, or the parts of a base: no panic. What is read is written back
//! equally, and is admitted before it is applied. The bodies or parts of an input are separated by NUL.
#![no_main]

use blackboard::board::stored::{
    BaseReader, base_parts, decode_commit, decode_summary, encode_commit, encode_summary,
};
use blackboard::board::{Board, Frame, Revision, SessionId, admit, apply};
use libfuzzer_sys::fuzz_target;

const SESSION: SessionId = SessionId(uuid::Uuid::from_u128(1));

fn read_base<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Option<Board> {
    let mut reader = BaseReader::new(SESSION);
    for part in parts {
        reader.take(part).ok()?;
    }
    reader.is_complete().then(|| reader.finish().ok()).flatten()
}

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
    // The items of commits are not judged again, those of bases are.
    if let Some(board) = read_base(bytes.split(|byte| *byte == 0)) {
        let parts: Vec<Vec<u8>> = base_parts(&board).map(|part| part.expect("a part")).collect();
        let again = read_base(parts.iter().map(Vec::as_slice)).expect("a base that was written");
        assert!(base_parts(&again).map(|part| part.expect("a part")).eq(parts));
    }
});
