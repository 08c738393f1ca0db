//! Compression of stored bytes. Decompression is bounded, even if the input is corrupt.
//!
//! ```text
//! offset  size  field
//!      0     1  encoding: 1 plain, 2 zstd
//!      1     4  unpacked length, u32, little-endian
//!      5     n  the encoded bytes
//! ```

use zstd::bulk::{Compressor, Decompressor};

use crate::board::COMMIT_BYTES_MAX;
use crate::board::packed::LEVEL;

const PLAIN: u8 = 1;
const ZSTD: u8 = 2;
const HEADER_BYTES: usize = 5;

/// The maximum unpacked length: the longest frame and its header in a segment.
const BYTES_MAX: usize = COMMIT_BYTES_MAX + 4096;

/// A compressor with a workspace, which costs more to create than to use.
pub(crate) struct Packer(Option<Compressor<'static>>);

impl Packer {
    pub(crate) fn new() -> Self {
        Self(Compressor::new(LEVEL).ok())
    }

    /// Compresses bytes, or stores them plain if that is not longer.
    pub(crate) fn pack(&mut self, raw: &[u8]) -> Vec<u8> {
        let shorter = self.0.as_mut().and_then(|zstd| zstd.compress(raw).ok());
        let (form, bytes) = match &shorter {
            Some(shorter) if shorter.len() < raw.len() => (ZSTD, shorter.as_slice()),
            Some(_) | None => (PLAIN, raw),
        };
        let length = u32::try_from(raw.len()).unwrap_or(u32::MAX);
        let mut packed = Vec::with_capacity(HEADER_BYTES + bytes.len());
        packed.push(form);
        packed.extend_from_slice(&length.to_le_bytes());
        packed.extend_from_slice(bytes);
        packed
    }
}

/// A decompressor with a workspace.
pub(crate) struct Unpacker(Option<Decompressor<'static>>);

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self(Decompressor::new().ok())
    }

    /// Returns the original bytes, or `None` if no [`Packer`] made `packed`.
    pub(crate) fn unpack(&mut self, packed: &[u8]) -> Option<Vec<u8>> {
        let (&[form, l0, l1, l2, l3], bytes) = packed.split_first_chunk::<HEADER_BYTES>()?;
        let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).ok()?;
        let raw = match form {
            PLAIN => bytes.to_vec(),
            ZSTD if length <= BYTES_MAX => self.0.as_mut()?.decompress(bytes, length).ok()?,
            _ => return None,
        };
        (raw.len() == length).then_some(raw)
    }
}
