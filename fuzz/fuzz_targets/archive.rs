//! Arbitrary lines as an archive: no panic, and the base of the board that is read can be read again.
#![no_main]

use blackboard::board::stored::archive::ArchiveReader;
use blackboard::board::stored::{BaseReader, base_parts};
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
        let mut again = BaseReader::new(SESSION);
        for part in base_parts(&board) {
            again.take(&part.expect("a part")).expect("a part that was written");
        }
        assert!(again.finish().is_ok());
    }
});
