//! Compression of stored bytes. Decompression is bounded, even if the input is corrupt.
//!
//! ```text
//! offset  size  field
//!      0     1  encoding: 1 plain, 2 zstd
//!      1     4  unpacked length, u32, little-endian
//!      5     n  the encoded bytes
//! ```
//!
//! A block of zstd is the smallest part that is read: a changed bit spoils its block and those after it.

use std::io::{self, Write as _};

use zstd::bulk::{Compressor, Decompressor};
use zstd::stream::raw::{Decoder, Operation as _};
use zstd::stream::write::Encoder;
use zstd::zstd_safe::{DCtx, MAGICNUMBER};

use blackboard_board::COMMIT_BYTES_MAX;
use blackboard_board::packed::LEVEL;

const PLAIN: u8 = 1;
const ZSTD: u8 = 2;
const HEADER_BYTES: usize = 5;

/// The maximum unpacked length: the longest frame and its header in a segment.
const BYTES_MAX: usize = COMMIT_BYTES_MAX + 4096;

/// The length of the header of each block in zstd's format.
const BLOCK_HEADER_BYTES: usize = 3;

/// A compressor with a workspace, which costs more to create than to use.
pub(crate) struct Packer(Option<Compressor<'static>>);

impl Packer {
    pub(crate) fn new() -> Self {
        Self(Compressor::new(LEVEL).ok())
    }

    /// Compresses bytes, or stores them plain if that is not longer.
    pub(crate) fn pack(&mut self, raw: &[u8]) -> Vec<u8> {
        let compressed = self.0.as_mut().and_then(|zstd| zstd.compress(raw).ok());
        packed(raw, compressed.as_deref())
    }

    /// Compresses bytes in blocks that end at these places, besides those that zstd chooses.
    pub(crate) fn pack_in_blocks(&mut self, raw: &[u8], ends: &[usize]) -> Vec<u8> {
        let compressed = self.0.as_mut().and_then(|zstd| compress_in_blocks(zstd, raw, ends).ok());
        packed(raw, compressed.as_deref())
    }
}

fn compress_in_blocks(
    zstd: &mut Compressor<'static>,
    raw: &[u8],
    ends: &[usize],
) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::with_context(Vec::new(), zstd.context_mut());
    encoder.set_pledged_src_size(u64::try_from(raw.len()).ok())?;
    let mut begin = 0;
    for end in ends.iter().copied().filter(|end| *end < raw.len()) {
        encoder.write_all(raw.get(begin..end).unwrap_or_default())?;
        encoder.flush()?;
        begin = end;
    }
    encoder.write_all(raw.get(begin..).unwrap_or_default())?;
    encoder.finish()
}

fn packed(raw: &[u8], compressed: Option<&[u8]>) -> Vec<u8> {
    let (form, bytes) = match compressed {
        Some(shorter) if shorter.len() < raw.len() => (ZSTD, shorter),
        Some(_) | None => (PLAIN, raw),
    };
    let length = u32::try_from(raw.len()).unwrap_or(u32::MAX);
    let mut packed = Vec::with_capacity(HEADER_BYTES + bytes.len());
    packed.push(form);
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(bytes);
    packed
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

/// The readable part of damaged bytes.
pub(crate) struct ReadablePart {
    /// The original bytes before the first block that zstd finds damaged. Not every change is found: their reader needs
    /// checksums of its own.
    pub(crate) raw: Vec<u8>,
    /// True if no block is missing.
    pub(crate) is_complete: bool,
}

impl ReadablePart {
    /// Reads what can be read of damaged packed bytes. The header may be what is damaged, so it is not believed.
    pub(crate) fn of(packed: &[u8]) -> Self {
        let bytes = packed.get(HEADER_BYTES..).unwrap_or_default();
        if !bytes.starts_with(&MAGICNUMBER.to_le_bytes()) {
            return Self { raw: bytes.to_vec(), is_complete: true };
        }
        let mut part = Self { raw: Vec::new(), is_complete: false };
        // An error ends the part.
        part.decompress(bytes).ok();
        part
    }

    fn decompress(&mut self, mut rest: &[u8]) -> io::Result<()> {
        let (mut decoder, mut block) = (Decoder::new()?, vec![0; DCtx::out_size()]);
        let mut wanted = 1;
        while self.raw.len() <= BYTES_MAX {
            let input = rest.get(..wanted).unwrap_or(rest);
            let done = decoder.run_on_buffers(input, &mut block)?;
            self.raw.extend_from_slice(block.get(..done.bytes_written).unwrap_or_default());
            rest = rest.get(done.bytes_read..).unwrap_or_default();
            if done.remaining == 0 {
                self.is_complete = rest.is_empty();
                break;
            }
            if done.bytes_read == 0 && done.bytes_written == 0 {
                break;
            }
            // zstd asks for a block with the next one's header. Given both, a damaged header would take the block along.
            wanted = match done.remaining.saturating_sub(BLOCK_HEADER_BYTES) {
                0 => done.remaining,
                block => block,
            };
        }
        Ok(())
    }
}
