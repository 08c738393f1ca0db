//! Parsing of WebP frames, just enough to bound the decoder's memory.
//!
//! The buffers of a lossy frame depend on the frame's own size, the tables of a lossless frame on its header. The
//! canvas bounds neither.

mod bits;
mod lossless;

use lossless::{Implicit, table_bytes};

/// The bytes of a chunk's name and length.
const CHUNK_HEAD: usize = 8;
/// The bytes before the first chunk: `RIFF`, a length, `WEBP`.
const FILE_HEAD: usize = 12;
/// The bytes of an animation's frame before its chunks.
const FRAME_HEAD: usize = 16;
/// The number of relevant chunks in a frame.
const FRAME_CHUNKS: usize = 2;

/// The start code of a VP8 key frame, after three bytes.
const START_CODE: [u8; 3] = [0x9d, 0x01, 0x2a];
/// The bits of a side in such a frame. The scale above them is never applied.
const SIDE_BITS: u16 = 0x3fff;

/// The frames of a WebP.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// True if the image has or may have several frames.
    pub(super) is_animated: bool,
    /// True if transparency is stored apart from the colours.
    pub(super) has_alpha_apart: bool,
    /// The bytes of the largest tables of a lossless stream.
    pub(super) table_bytes: u64,
    /// The largest width and the largest height of the lossy frames.
    largest: (u32, u32),
}

impl Frames {
    /// Reads the frames of a file whose canvas has this size.
    pub(super) fn find(bytes: &[u8], canvas: (u32, u32)) -> Self {
        let mut frames = Self::default();
        // Looks at every position, so that no nesting hides a chunk.
        for (at, name) in bytes.windows(4).enumerate() {
            match name {
                b"ANMF" | b"ANIM" => frames.is_animated = true,
                b"ALPH" => frames.has_alpha_apart = true,
                b"VP8 " => frames.note_lossy(bytes.get(at + CHUNK_HEAD..).unwrap_or_default()),
                _ => {}
            }
        }
        frames.note_lossless(bytes.get(FILE_HEAD..).unwrap_or_default(), canvas);
        frames
    }

    fn note_lossy(&mut self, frame: &[u8]) {
        let [_, _, _, a, b, c, w0, w1, h0, h1, ..] = *frame else { return };
        if [a, b, c] == START_CODE {
            let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & SIDE_BITS);
            self.largest.0 = self.largest.0.max(side(w0, w1));
            self.largest.1 = self.largest.1.max(side(h0, h1));
        }
    }

    /// Counts the tables of the chunks that the decoder uses: the first of each name, and those of an animation's
    /// first frame.
    fn note_lossless(&mut self, file: &[u8], canvas: (u32, u32)) {
        let (mut has_image, mut has_alpha, mut has_frame) = (false, false, false);
        for (name, body) in chunks(file) {
            let is_first = match name {
                b"VP8L" => !std::mem::replace(&mut has_image, true),
                b"ALPH" => !std::mem::replace(&mut has_alpha, true),
                b"ANMF" => !std::mem::replace(&mut has_frame, true),
                _ => false,
            };
            if is_first && name == b"ANMF" {
                for (name, part) in
                    chunks(body.get(FRAME_HEAD..).unwrap_or_default()).take(FRAME_CHUNKS)
                {
                    self.note_tables(name, part, canvas);
                    self.note_tables(name, part, frame_size(body).unwrap_or(canvas));
                }
            } else if is_first {
                self.note_tables(name, body, canvas);
            }
        }
    }

    fn note_tables(&mut self, name: &[u8; 4], body: &[u8], size: Implicit) {
        let needed = match (name, body) {
            (b"VP8L", body) => table_bytes(body, None),
            // The lowest two bits of its first byte are 1 if the transparency is compressed.
            (b"ALPH", [how, packed @ ..]) if how & 3 == 1 => table_bytes(packed, Some(size)),
            _ => 0,
        };
        self.table_bytes = self.table_bytes.max(needed);
    }

    /// Returns true if all lossy frames fit into a canvas of this size.
    pub(super) fn fit(&self, canvas: (u32, u32)) -> bool {
        self.largest.0 <= canvas.0 && self.largest.1 <= canvas.1
    }
}

/// Returns the width and height of an animation's frame.
fn frame_size(body: &[u8]) -> Option<(u32, u32)> {
    let &[_, _, _, _, _, _, w0, w1, w2, h0, h1, h2, ..] = body else { return None };
    Some((u32::from_le_bytes([w0, w1, w2, 0]) + 1, u32::from_le_bytes([h0, h1, h2, 0]) + 1))
}

/// Returns the body of the file's first chunk of this name.
pub(super) fn body<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let mut chunks = chunks(bytes.get(FILE_HEAD..)?);
    chunks.find(|(found, _)| *found == name).map(|(_, body)| body)
}

/// Iterates over the chunks with their names. The last chunk may be cut off.
fn chunks(mut rest: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, body) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let padded = length.checked_add(length % 2)?;
        rest = body.get(padded..).unwrap_or_default();
        Some((name, body.get(..length).unwrap_or(body)))
    })
}
