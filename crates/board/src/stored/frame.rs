//! Frames: the bytes around one commit in a row, a column or an archive.
//!
//! ```text
//! offset  size  field
//!      0     1  0xBB: a frame of a blackboard
//!      1     1  format version: 1
//!      2     1  form of the stored body: 0 as it is, 1 compressed as `board::packed` describes
//!      3     4  length of the stored body in bytes, u32, little-endian
//!      7     4  CRC-32 (IEEE) of version ‖ form ‖ session id (16 bytes) ‖ revision (u64) ‖ stored body, little-endian
//!     11     n  the stored body
//! ```
//! The frame does not hold the session and the revision; the reader supplies the expected ones.

use std::borrow::Cow;

use crate::packed::{Body, Packed};
use crate::{Revision, SessionId};

/// The maximum size of a commit's body, in bytes.
pub const COMMIT_BYTES_MAX: usize = 64 << 20;

/// The first byte of every frame. Builds before the first release began theirs with the format, 1 to 6.
const MAGIC: u8 = 0xbb;

const FORMAT: u8 = 1;

/// The form of a body that is stored as it is.
const PLAIN: u8 = 0;

/// The form of a compressed body.
const PACKED: u8 = 1;

const HEADER_BYTES: usize = 11;

/// The reason why bytes are not the expected frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes are no frame, but perhaps that of a build before the first release.
    #[error(
        "a commit begins with {found:#04x} instead of {MAGIC:#04x}: it is damaged, or of a version before the first \
         release, which no later version reads"
    )]
    NoFrame {
        /// The first byte.
        found: u8,
    },
    /// The format is unknown, perhaps that of a later version of this program. No byte can be trusted.
    #[error(
        "commit format {found} is not supported (only {FORMAT}); if a newer blackboard wrote it, upgrade this one"
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
        let (form, stored) = match body {
            Body::Plain(body) => (PLAIN, &**body),
            Body::Packed(packed) => (PACKED, packed.stored()),
        };
        let length = u32::try_from(stored.len());
        let length = length.map_err(|_| FrameError::TooLarge { bytes: size(stored.len()) })?;
        let mut frame = Vec::with_capacity(HEADER_BYTES + stored.len());
        frame.extend_from_slice(&[MAGIC, FORMAT, form]);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&checksum(form, session, revision, stored).to_le_bytes());
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
        let (form, stored) = Self::checked(session, revision, frame)?;
        match form {
            PLAIN => Ok(Cow::Borrowed(stored)),
            PACKED => {
                let unpacked = Packed::unpack(stored, COMMIT_BYTES_MAX);
                unpacked.map(Cow::Owned).ok_or(FrameError::Unpackable)
            }
            _ => Err(FrameError::Unpackable),
        }
    }

    /// Checks a frame as [`Frame::decode`] does, but leaves its body compressed.
    ///
    /// # Errors
    /// Any [`FrameError`] but [`FrameError::Unpackable`].
    pub fn check(session: SessionId, revision: Revision, frame: &[u8]) -> Result<(), FrameError> {
        Self::checked(session, revision, frame).map(|_| ())
    }

    /// Returns the form and the stored body of a frame.
    fn checked(
        session: SessionId,
        revision: Revision,
        frame: &[u8],
    ) -> Result<(u8, &[u8]), FrameError> {
        match *frame {
            [found, ..] if found != MAGIC => return Err(FrameError::NoFrame { found }),
            [_, found, ..] if found != FORMAT => return Err(FrameError::UnknownFormat { found }),
            _ => {}
        }
        let Some((&[_, _, form, l0, l1, l2, l3, c0, c1, c2, c3], body)) =
            frame.split_first_chunk::<HEADER_BYTES>()
        else {
            return Err(FrameError::Truncated {
                expected: size(HEADER_BYTES),
                found: size(frame.len()),
            });
        };
        check_length(u32::from_le_bytes([l0, l1, l2, l3]), body)?;
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        let found = checksum(form, session, revision, body);
        if found == stored {
            Ok((form, body))
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
            Some((&[_, _, PACKED, ..], stored)) => Packed::declared(stored),
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

fn checksum(form: u8, session: SessionId, revision: Revision, body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[FORMAT, form]);
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
        let golden = [&[0xbb, 1, 0, 7, 0, 0, 0, 0x81, 0x89, 0xa8, 0x90][..], b"{\"a\":1}"].concat();
        assert_eq!(frame, golden);
        assert_eq!(Frame::decode(SESSION, Revision(0x0102_0304), &golden), Ok(b"{\"a\":1}".into()));
    }

    #[test]
    fn a_frame_from_before_the_first_release_is_refused() {
        // As those builds wrote them: the format, the length, a checksum, the body.
        for format in 1..=6 {
            let frame = [&[format, 7, 0, 0, 0, 0xd2, 0x69, 0x7c, 0x45][..], b"{\"a\":1}"].concat();
            let refused = Frame::decode(SESSION, Revision(0x0102_0304), &frame).unwrap_err();
            assert_eq!(refused, FrameError::NoFrame { found: format });
            assert!(refused.to_string().contains("before the first release"), "{refused}");
        }
    }

    #[test]
    fn a_frame_says_what_is_wrong_with_it() {
        let decode = |frame: &[u8]| Frame::decode(SESSION, Revision(1), frame).unwrap_err();
        let frame = Frame::encode(SESSION, Revision(1), &Body::plain(b"body")).unwrap();
        let with = |at: usize, byte: u8| {
            let mut other = frame.clone();
            other[at] = byte;
            decode(&other)
        };
        for found in [0, 2, 255] {
            assert_eq!(with(1, found), FrameError::UnknownFormat { found });
        }
        assert_eq!(with(0, 0), FrameError::NoFrame { found: 0 });
        // A form is covered by the checksum.
        for form in [1, 2] {
            assert!(matches!(with(2, form), FrameError::ChecksumMismatch { .. }));
        }
        assert_eq!(decode(&[]), FrameError::Truncated { expected: 11, found: 0 });
        assert_eq!(decode(&frame[..13]), FrameError::Truncated { expected: 15, found: 13 });
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
