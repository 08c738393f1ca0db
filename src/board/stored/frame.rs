//! Frames: the bytes around one commit in a row, a column or an archive.
//!
//! ```text
//! offset  size  field
//!      0     1  format version: 5, or 6 for a compressed body; 1 to 4 are supported too
//!      1     4  length of the stored body in bytes, u32, little-endian
//!      5     4  CRC-32 (IEEE) of format ‖ session id (16 bytes) ‖ revision (u64) ‖ stored body, little-endian;
//!              before format 3 without the format
//!      9     n  the stored body: the body itself, or as `board::packed` describes
//! ```
//! The frame does not hold the session and the revision; the reader supplies the expected ones.

use std::borrow::Cow;

use crate::board::packed::{Body, Packed};
use crate::board::{Revision, SessionId};

/// The maximum size of a commit's body, in bytes.
pub const COMMIT_BYTES_MAX: usize = 64 << 20;

/// The format in which bodies are written as they are.
const FORMAT: u8 = 5;

/// The format in which bodies are written compressed.
const PACKED_FORMAT: u8 = 6;

/// The oldest supported format.
const OLDEST_FORMAT: u8 = 1;

/// The first format whose checksum covers the format byte.
const FIRST_WITH_FORMAT_CHECKED: u8 = 3;

const HEADER_BYTES: usize = 9;

/// The reason why bytes are not the expected frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The format is unknown, perhaps that of another version of this program. No byte can be trusted.
    #[error(
        "commit format {found} is not supported (only {OLDEST_FORMAT} to {PACKED_FORMAT}); if a newer blackboard wrote \
         it, upgrade this one"
    )]
    UnknownFormat {
        /// The format found.
        found: u8,
    },
    /// The frame is shorter than declared, or has no complete header.
    #[error("a commit is truncated to {found} of {expected} bytes")]
    Truncated {
        /// The length of the whole frame in bytes, as far as known.
        expected: u64,
        /// The number of bytes found.
        found: u64,
    },
    /// The frame is longer than declared.
    #[error("a commit declares a body of {declared} bytes, but {found} follow")]
    LengthMismatch {
        /// The length of the body given in the header, in bytes.
        declared: u64,
        /// The number of bytes after the header.
        found: u64,
    },
    /// A bit has changed, or the frame is another commit's.
    #[error("a commit's checksum is {found:08x} instead of {stored:08x}")]
    ChecksumMismatch {
        /// The checksum in the header.
        stored: u32,
        /// The checksum computed.
        found: u32,
    },
    /// The checksum is right, but the compressed body is invalid.
    #[error("a commit's compressed body is invalid")]
    Unpackable,
    /// The body is longer than [`COMMIT_BYTES_MAX`].
    #[error("the commit has {bytes} bytes; the limit is {COMMIT_BYTES_MAX}")]
    TooLarge {
        /// The length in bytes.
        bytes: u64,
    },
}

/// The header of a commit's frame. No two commits of one revision have the same: each has a nonce under its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal(pub [u8; HEADER_BYTES]);

/// The frame's codec.
#[derive(Clone, Copy, Debug)]
pub struct Frame;

impl Frame {
    /// Encodes the body of the commit that made this revision of this session.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] if the body has more than [`COMMIT_BYTES_MAX`] bytes.
    pub fn encode(
        session: SessionId,
        revision: Revision,
        body: &Body<'_>,
    ) -> Result<Vec<u8>, FrameError> {
        let bytes = body.bytes();
        if bytes > COMMIT_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes: size(bytes) });
        }
        let (format, stored) = match body {
            Body::Plain(body) => (FORMAT, &**body),
            Body::Packed(packed) => (PACKED_FORMAT, packed.stored()),
        };
        let length = u32::try_from(stored.len());
        let length = length.map_err(|_| FrameError::TooLarge { bytes: size(stored.len()) })?;
        let mut frame = Vec::with_capacity(HEADER_BYTES + stored.len());
        frame.push(format);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&checksum(format, session, revision, stored).to_le_bytes());
        frame.extend_from_slice(stored);
        Ok(frame)
    }

    /// Decodes the body of the commit that made this revision of this session.
    ///
    /// # Errors
    /// Any [`FrameError`] if these are not the exact bytes that [`Frame::encode`] made.
    pub fn decode(
        session: SessionId,
        revision: Revision,
        frame: &[u8],
    ) -> Result<Cow<'_, [u8]>, FrameError> {
        let (format, stored) = Self::checked(session, revision, frame)?;
        if format != PACKED_FORMAT {
            return Ok(Cow::Borrowed(stored));
        }
        let unpacked = Packed::unpack(stored, COMMIT_BYTES_MAX);
        unpacked.map(Cow::Owned).ok_or(FrameError::Unpackable)
    }

    /// Checks a frame as [`Frame::decode`] does, but leaves its body compressed.
    ///
    /// # Errors
    /// Any [`FrameError`] but [`FrameError::Unpackable`].
    pub fn check(session: SessionId, revision: Revision, frame: &[u8]) -> Result<(), FrameError> {
        Self::checked(session, revision, frame).map(|_| ())
    }

    /// Returns the format and the stored body of a frame.
    fn checked(
        session: SessionId,
        revision: Revision,
        frame: &[u8],
    ) -> Result<(u8, &[u8]), FrameError> {
        match frame.first() {
            None | Some(OLDEST_FORMAT..=PACKED_FORMAT) => {}
            Some(&found) => return Err(FrameError::UnknownFormat { found }),
        }
        let Some((&[format, l0, l1, l2, l3, c0, c1, c2, c3], body)) =
            frame.split_first_chunk::<HEADER_BYTES>()
        else {
            return Err(FrameError::Truncated {
                expected: size(HEADER_BYTES),
                found: size(frame.len()),
            });
        };
        check_length(u32::from_le_bytes([l0, l1, l2, l3]), body)?;
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        let found = checksum(format, session, revision, body);
        if found == stored {
            Ok((format, body))
        } else {
            Err(FrameError::ChecksumMismatch { stored, found })
        }
    }

    /// Returns the seal of a frame, of which the header is enough. `None` if that is incomplete.
    #[must_use]
    pub fn seal(frame: &[u8]) -> Option<Seal> {
        frame.first_chunk().copied().map(Seal)
    }

    /// Returns the size that a frame would have uncompressed, as its header tells: the measure of a history.
    #[must_use]
    pub fn bytes(frame: &[u8]) -> usize {
        let packed = match frame.split_first_chunk::<HEADER_BYTES>() {
            Some((&[PACKED_FORMAT, ..], stored)) => Packed::declared(stored),
            Some(_) | None => None,
        };
        packed.map_or(frame.len(), |bytes| HEADER_BYTES.saturating_add(bytes))
    }
}

fn check_length(declared: u32, body: &[u8]) -> Result<(), FrameError> {
    let declared = u64::from(declared);
    let found = size(body.len());
    if declared > size(COMMIT_BYTES_MAX) {
        return Err(FrameError::TooLarge { bytes: declared });
    }
    match found.cmp(&declared) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(FrameError::LengthMismatch { declared, found }),
        std::cmp::Ordering::Less => Err(FrameError::Truncated {
            expected: declared + size(HEADER_BYTES),
            found: found + size(HEADER_BYTES),
        }),
    }
}

fn checksum(format: u8, session: SessionId, revision: Revision, body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    if format >= FIRST_WITH_FORMAT_CHECKED {
        crc.update(&[format]);
    }
    crc.update(session.0.as_bytes());
    crc.update(&revision.0.to_le_bytes());
    crc.update(body);
    crc.finalize()
}

fn size(bytes: usize) -> u64 {
    // Supported machines have at most 64-bit addresses.
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const SESSION: SessionId =
        SessionId(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff));

    #[test]
    fn the_format_is_these_bytes_and_stays_so() {
        let frame =
            Frame::encode(SESSION, Revision(0x0102_0304), &Body::plain(b"{\"a\":1}")).unwrap();
        let golden =
            [5, 7, 0, 0, 0, 0xd2, 0x69, 0x7c, 0x45, b'{', b'"', b'a', b'"', b':', b'1', b'}'];
        assert_eq!(frame, golden);
        assert_eq!(Frame::decode(SESSION, Revision(0x0102_0304), &golden), Ok(b"{\"a\":1}".into()));
    }

    #[test]
    fn a_frame_of_an_earlier_format_is_still_read() {
        const OLD: [u8; 4] = [0x4f, 0x8f, 0x2f, 0xb5];
        let since = [(3, [0xed, 0x7e, 0x33, 0x0c]), (4, [0x78, 0x6c, 0xa6, 0xb4])];
        for (format, crc) in [(1, OLD), (2, OLD)].into_iter().chain(since) {
            let golden = [&[format, 7, 0, 0, 0], &crc[..], b"{\"a\":1}"].concat();
            let body = Frame::decode(SESSION, Revision(0x0102_0304), &golden);
            assert_eq!(body, Ok(b"{\"a\":1}".into()));
        }
    }

    #[test]
    fn a_frame_of_one_format_is_none_of_another() {
        let frame = Frame::encode(SESSION, Revision(1), &Body::plain(b"body")).unwrap();
        for format in [1, 2, 3, 4] {
            let mut other = frame.clone();
            other[0] = format;
            let found = Frame::decode(SESSION, Revision(1), &other);
            assert!(matches!(found, Err(FrameError::ChecksumMismatch { .. })));
        }
    }

    #[test]
    fn a_frame_says_what_is_wrong_with_it() {
        let decode = |frame: &[u8]| Frame::decode(SESSION, Revision(1), frame).unwrap_err();
        let frame = Frame::encode(SESSION, Revision(1), &Body::plain(b"body")).unwrap();
        for found in [0, 7, 255] {
            let mut other = frame.clone();
            other[0] = found;
            assert_eq!(decode(&other), FrameError::UnknownFormat { found });
        }
        assert_eq!(decode(&[]), FrameError::Truncated { expected: 9, found: 0 });
        assert_eq!(decode(&frame[..11]), FrameError::Truncated { expected: 13, found: 11 });
        assert_eq!(
            decode(&[&frame[..], b"!"].concat()),
            FrameError::LengthMismatch { declared: 4, found: 5 }
        );
    }

    #[test]
    fn a_frame_is_of_one_session_and_one_revision() {
        let frame = Frame::encode(SESSION, Revision(1), &Body::plain(b"body")).unwrap();
        let other = SessionId(Uuid::from_u128(1));
        for wrong in
            [Frame::decode(SESSION, Revision(2), &frame), Frame::decode(other, Revision(1), &frame)]
        {
            assert!(matches!(wrong, Err(FrameError::ChecksumMismatch { .. })));
        }
    }

    #[test]
    fn a_body_beyond_the_bound_makes_no_frame() {
        let body = vec![0; COMMIT_BYTES_MAX + 1];
        assert_eq!(
            Frame::encode(SESSION, Revision(1), &Body::plain(&body)),
            Err(FrameError::TooLarge { bytes: 67_108_865 })
        );
    }

    proptest! {
        #[test]
        fn any_body_comes_back_and_any_flipped_bit_is_found(
            id: u128,
            revision: u64,
            body in proptest::collection::vec(any::<u8>(), 0..300),
            bit: proptest::sample::Index,
        ) {
            let (session, revision) = (SessionId(Uuid::from_u128(id)), Revision(revision));
            let mut frame = Frame::encode(session, revision, &Body::plain(&body)).unwrap();
            prop_assert_eq!(Frame::decode(session, revision, &frame), Ok(body.as_slice().into()));
            let bit = bit.index(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Frame::decode(session, revision, &frame).is_err());
        }
    }
}
