//! Tests of packed bodies.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::stored::{decode_commit, encode_body, encode_commit};
use crate::{
    Change, Commit, Frame, FrameError, Nonce, Revision, SessionId, StateChange, StatePath,
    Timestamp,
};

const SESSION: SessionId = SessionId(Uuid::from_u128(7));

const REVISION: Revision = Revision(3);

/// A value of more bytes than that, and of less than twice as many.
fn value(bytes: usize, salt: usize) -> Json {
    let members = (0..bytes / 8).map(|n| format!(r#""m{n}":{}"#, n.wrapping_mul(salt) % 9_999));
    Json::of(&format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

/// A commit that puts these values.
fn commit(values: &[Json]) -> Commit {
    let put = |value: &Json| {
        let change = StateChange::Put { value: value.clone(), expires_at: None };
        Change::State(StatePath::root(), change)
    };
    let (at, nonce) = (Timestamp(5), Nonce(9));
    let changes = values.iter().map(put).collect();
    Commit { revision: REVISION, at, agent: None, trace: None, nonce, kept: None, changes }
}

fn decoded(frame: &[u8]) -> Vec<u8> {
    Frame::decode(SESSION, REVISION, frame).unwrap().into_owned()
}

/// A frame with this stored body and a right checksum.
fn framed(stored: &[u8]) -> Vec<u8> {
    let body = Body::Packed(Packed { bytes: 1, stored: stored.to_vec() });
    Frame::encode(SESSION, REVISION, &body).unwrap()
}

#[test]
fn a_large_body_is_stored_compressed_and_comes_back() {
    for bytes in [PACKED_BYTES_MIN / 2, 2 * PACKED_BYTES_MIN] {
        let commit = commit(&[value(bytes, 7)]);
        let plain = encode_commit(&commit).unwrap();
        let body = encode_body(&commit, &[]).unwrap();
        let is_large = plain.len() >= PACKED_BYTES_MIN;
        assert_eq!((body.bytes(), matches!(body, Body::Packed(_))), (plain.len(), is_large));
        let frame = Frame::encode(SESSION, REVISION, &body).unwrap();
        assert_eq!(frame[2], u8::from(is_large));
        assert_eq!(frame.len() < plain.len() / 2, is_large);
        assert_eq!(decoded(&frame), plain);
    }
}

#[test]
fn a_text_packed_before_is_not_compressed_again() {
    let values = [value(PACKED_BYTES_MIN, 3), value(64, 5), value(3 * PACKED_BYTES_MIN, 7)];
    let commit = commit(&values);
    let texts: Vec<_> = values.iter().filter_map(PackedText::of).collect();
    assert_eq!(texts.len(), 2);
    let Body::Packed(packed) = encode_body(&commit, &texts.iter().collect::<Vec<_>>()).unwrap()
    else {
        panic!("a plain body")
    };
    for text in &texts {
        let within = packed.stored.windows(text.packed.len()).any(|part| part == text.packed);
        assert!(within);
    }
    let frame = Frame::encode(SESSION, REVISION, &Body::Packed(packed)).unwrap();
    assert_eq!(decoded(&frame), encode_commit(&commit).unwrap());
    assert_eq!(decode_commit(&decoded(&frame)).unwrap().changes, commit.changes);
}

#[test]
fn an_equal_text_elsewhere_is_compressed_as_the_rest() {
    let text = PackedText::of(&value(PACKED_BYTES_MIN, 3)).unwrap();
    let other = commit(&[value(PACKED_BYTES_MIN, 3)]);
    let body = encode_body(&other, &[&text]).unwrap();
    let frame = Frame::encode(SESSION, REVISION, &body).unwrap();
    assert_eq!(decoded(&frame), encode_commit(&other).unwrap());
}

#[test]
fn the_packed_form_is_these_bytes_and_stays_so() {
    // Two zstd frames of one raw block each.
    let packed = |text: &[u8]| {
        let length = u8::try_from(text.len()).unwrap();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length, 1 | length << 3, 0, 0][..], text].concat()
    };
    let stored = [&[7, 0, 0, 0][..], &packed(br#"{"a":"#), &packed(b"1}")].concat();
    assert_eq!(decoded(&framed(&stored)), br#"{"a":1}"#);
    let golden = [0xbb, 1, 1, 29, 0, 0, 0];
    assert_eq!(framed(&stored)[..7], golden);
    assert_eq!((Frame::bytes(&framed(&stored)), Frame::bytes(&framed(&[]))), (11 + 7, 11));
}

#[test]
fn bytes_that_nobody_packed_make_no_body() {
    let body = compress(&[b'a'; 1000], LEVEL).unwrap();
    let stored = |length: u32, body: &[u8]| [&length.to_le_bytes(), body].concat();
    let wrong = [
        Vec::new(),
        vec![1, 0, 0],
        stored(999, &body),
        stored(1001, &body),
        stored(u32::MAX, &body),
        stored(1000, &body[..body.len() - 1]),
        stored(1000, &[&body[..], b"more"].concat()),
        stored(4, b"text"),
    ];
    for stored in wrong {
        let frame = framed(&stored);
        assert_eq!(Frame::decode(SESSION, REVISION, &frame), Err(FrameError::Unpackable));
        assert_eq!(Frame::check(SESSION, REVISION, &frame), Ok(()));
    }
    assert_eq!(decoded(&framed(&stored(1000, &body))), [b'a'; 1000]);
}

#[test]
fn a_body_beyond_the_bound_makes_no_frame_compressed() {
    let body = Body::of(vec![0; crate::COMMIT_BYTES_MAX + 1].into());
    assert!(matches!(body, Body::Packed(_)));
    let made = Frame::encode(SESSION, REVISION, &body);
    assert_eq!(made, Err(FrameError::TooLarge { bytes: 67_108_865 }));
}

proptest! {
    #[test]
    fn a_flipped_bit_of_a_packed_frame_is_found(salt in 1..1000_usize, bit: prop::sample::Index) {
        let body = encode_body(&commit(&[value(PACKED_BYTES_MIN, salt)]), &[]).unwrap();
        let mut frame = Frame::encode(SESSION, REVISION, &body).unwrap();
        let bit = bit.index(frame.len() * 8);
        frame[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Frame::decode(SESSION, REVISION, &frame).is_err());
        prop_assert!(Frame::check(SESSION, REVISION, &frame).is_err());
    }
}
