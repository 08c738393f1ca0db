//! Arbitrary lines as an archive: no panic, and the board that is read can be written.
#![no_main]

use blackboard::board::stored::archive::ArchiveReader;
use blackboard::board::stored::base_parts;
use blackboard::board::{SessionId, Timestamp};
use libfuzzer_sys::fuzz_target;

const SESSION: SessionId = SessionId(uuid::Uuid::from_u128(1));

/// 2026-11-26, as every run has to have the same answers.
const NOW: Timestamp = Timestamp(1_795_651_200_000);

fuzz_target!(|bytes: &[u8]| {
    let mut reader = ArchiveReader::new(SESSION, NOW);
    for line in bytes.split(|byte| *byte == b'\n') {
        if reader.take(line).is_err() {
            return;
        }
    }
    if let Ok(board) = reader.finish() {
        assert!(base_parts(&board).all(|part| part.is_ok()));
    }
});
