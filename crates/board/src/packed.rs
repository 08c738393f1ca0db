//! Large bodies, stored compressed.
//!
//! A large text of a command is compressed before its commit is decided, and goes into the body as it is: a packed body
//! is a sequence of zstd frames, which decompress to the body one after the other.
//!
//! ```text
//! offset  size  field
//!      0     4  length of the body in bytes, u32, little-endian
//!      4     n  zstd frames
//! ```

use std::borrow::Cow;
use std::io::{self, Write};

use zstd::bulk::{compress, decompress};

use crate::Json;

/// The size from which a body is stored compressed. Below it the pages that are not written cost less than the
/// compression.
const PACKED_BYTES_MIN: usize = 256 << 10;

/// The zstd level: level 3 took a tenth more time in all, and did not shorten JSON with numbers.
pub const LEVEL: i32 = 1;

const HEADER_BYTES: usize = 4;

/// The body of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Stored as it is.
    Plain(Cow<'a, [u8]>),
    /// Stored compressed.
    Packed(Packed),
}

/// A compressed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    bytes: usize,
    stored: Vec<u8>,
}

/// A text with its compressed form.
#[derive(Debug)]
pub struct PackedText {
    text: Json,
    packed: Vec<u8>,
}

impl PackedText {
    /// Compresses a text; none if it is small.
    pub(crate) fn of(text: &Json) -> Option<Self> {
        let bytes = text.text().as_bytes();
        let packed = (bytes.len() >= PACKED_BYTES_MIN).then(|| compress(bytes, LEVEL).ok())??;
        Some(Self { text: text.clone(), packed })
    }

    /// Returns true if these are the bytes of the text itself, in its place in memory.
    fn is(&self, bytes: &[u8]) -> bool {
        std::ptr::eq(self.text.text().as_bytes(), bytes)
    }
}

impl<'a> Body<'a> {
    /// A body that is stored as it is.
    #[must_use]
    pub const fn plain(body: &'a [u8]) -> Self {
        Self::Plain(Cow::Borrowed(body))
    }

    /// A body that is stored compressed if it is large.
    #[must_use]
    pub fn of(body: Cow<'a, [u8]>) -> Self {
        let packed = (body.len() >= PACKED_BYTES_MIN).then(|| Packed::of(&body));
        packed.flatten().map_or(Self::Plain(body), Self::Packed)
    }

    /// Returns the length of the body, uncompressed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Plain(body) => body.len(),
            Self::Packed(packed) => packed.bytes,
        }
    }
}

impl Packed {
    fn of(body: &[u8]) -> Option<Self> {
        let mut stored = header(body.len()).to_vec();
        stored.extend(compress(body, LEVEL).ok()?);
        Some(Self { bytes: body.len(), stored })
    }

    pub(crate) fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Returns the length of the body.
    pub(crate) fn declared(stored: &[u8]) -> Option<usize> {
        let length = stored.first_chunk::<HEADER_BYTES>()?;
        usize::try_from(u32::from_le_bytes(*length)).ok()
    }

    /// Returns the body of at most `bytes_max` bytes, or `None` if these are not its stored bytes.
    pub(crate) fn unpack(stored: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let (length, packed) = (Self::declared(stored)?, stored.get(HEADER_BYTES..)?);
        let body = (length <= bytes_max).then(|| decompress(packed, length).ok())??;
        (body.len() == length).then_some(body)
    }
}

/// Writer of a packed body. A text that was packed before is recognised by its place in memory, since serde writes it
/// in one piece.
pub(crate) struct Packing<'a> {
    texts: &'a [&'a PackedText],
    /// Written since the last packed text.
    plain: Vec<u8>,
    bytes: usize,
    stored: Vec<u8>,
}

impl<'a> Packing<'a> {
    pub(crate) fn new(texts: &'a [&'a PackedText]) -> Self {
        Self { texts, plain: Vec::new(), bytes: 0, stored: vec![0; HEADER_BYTES] }
    }

    fn pack_plain(&mut self) -> io::Result<()> {
        if !self.plain.is_empty() {
            self.stored.extend(compress(&self.plain, LEVEL)?);
            self.plain.clear();
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<Packed> {
        self.pack_plain()?;
        let Self { bytes, mut stored, .. } = self;
        stored.splice(..HEADER_BYTES, header(bytes));
        Ok(Packed { bytes, stored })
    }
}

impl Write for Packing<'_> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(written.len());
        match self.texts.iter().find(|text| text.is(written)) {
            None => self.plain.extend_from_slice(written),
            Some(text) => {
                self.pack_plain()?;
                self.stored.extend_from_slice(&text.packed);
            }
        }
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The header of a body of that length. A body that is longer than `u32::MAX` makes no frame.
fn header(bytes: usize) -> [u8; HEADER_BYTES] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests;
