//! Tests of the images in the corpus, found by hand or by the fuzzer.

use std::fs;
use std::path::Path;

use crate::*;

/// Memory of the encoders, and memory that the VP8 decoder allocates without touching it.
const BESIDES: u64 = 24 << 20;

#[test]
fn what_once_was_found_is_answered_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/images");
    let mut kinds = Vec::new();
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let probed = probe(&bytes, Bounds::default());
        for max_px in [None, Some(1), Some(37)] {
            let mut thumbnail = Err(Undecodable::Unknown);
            // Unlike `make`, `made` does not catch a panic.
            let took = allocation_counter::measure(|| thumbnail = made(&bytes, Bounds::px(max_px)))
                .bytes_max;
            let need = probed.map_or(0, |probe| probe.need);
            assert!(took <= 2 * need + BESIDES, "{}: {took} for {need}", path.display());
            match thumbnail {
                Ok(thumbnail) => {
                    let (width, height) = thumbnail.size;
                    assert!(max_px.is_none_or(|max_px| width.max(height) <= max_px));
                    assert_eq!(media_type(&thumbnail.bytes), Some(thumbnail.media_type));
                    assert_eq!(
                        made(&bytes, Bounds::px(max_px)),
                        Ok(thumbnail),
                        "{}",
                        path.display()
                    );
                    kinds.push(media_type(&bytes));
                }
                Err(_) => assert!(made(&bytes, Bounds::px(max_px)).is_err(), "{}", path.display()),
            }
        }
    }
    for (kind, _) in IMAGE_TYPES {
        assert!(kinds.contains(&Some(kind)), "no {kind} in the corpus can be decoded");
    }
}
