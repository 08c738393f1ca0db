//! JPEG: the memory of its decoder, its segments, and rows of a baseline one.
//!
//! The decoder of whole pictures keeps all pixels at least, and a progressive picture's coefficients until its last scan.
//! A baseline picture that is too large for that is decoded here, eight or sixteen rows at a time.

mod block;
mod header;
mod huffman;
mod rows;
mod segments;

use crate::shrink::Source as _;

pub(super) use rows::JpegRows;
pub(super) use segments::segments;

/// A coefficient's bytes.
const COEFFICIENT_BYTES: u64 = 2;
/// The number of components counted. Most images have three, and the coefficients of a rare fourth are not counted.
const COMPONENTS: u64 = 3;
/// A block has 8 x 8 pixels, and a unit is up to four blocks wide and high.
const UNIT_SIDE: u64 = 32;

/// The second byte of the marker of a progressive frame.
const PROGRESSIVE: u8 = 0xc2;
/// The second byte of the marker of a scan.
const SCAN: u8 = 0xda;

/// The marker of the end.
const END: [u8; 2] = [0xff, 0xd9];

/// Whether the file ends before the picture does. The decoder of whole pictures shows what there is, and grey below.
pub(super) fn is_cut(bytes: &[u8], size: (u32, u32)) -> bool {
    !has_end(bytes) && !is_complete(bytes, size)
}

/// Whether the marker of the end stands behind the picture's data, which has no marker within.
pub(super) fn has_end(bytes: &[u8]) -> bool {
    let scan = segments(bytes).find(|segment| segment.marker == SCAN);
    let data = scan.map_or(&[][..], |scan| scan.after);
    // Most files end with this one.
    data.windows(END.len()).rev().any(|pair| pair == END)
}

/// Whether all of a baseline picture is there and nothing else: some programs leave out the marker of the end.
fn is_complete(bytes: &[u8], size: (u32, u32)) -> bool {
    // The size was checked, but as the other decoder reads it.
    let rows = JpegRows::open(bytes).filter(|rows| rows.size() == size);
    let (Some(mut rows), (width, height)) = (rows, size) else { return false };
    let width = usize::try_from(width).unwrap_or_default();
    let mut row = vec![0; width * usize::from(rows.channels())];
    (0..height).all(|_| rows.next(&mut row).is_ok()) && rows.is_at_end()
}

/// Returns the bytes of the coefficients that the decoder keeps. A marker in an embedded thumbnail can only make the
/// estimate larger.
pub(super) fn coefficient_bytes(bytes: &[u8], size: (u32, u32)) -> u64 {
    let (mut scans, mut is_progressive) = (0, false);
    for pair in bytes.windows(2) {
        match pair {
            [0xff, PROGRESSIVE] => is_progressive = true,
            [0xff, SCAN] => scans += 1,
            _ => {}
        }
    }
    if scans < 2 && !is_progressive {
        return 0;
    }
    let padded = |side: u32| u64::from(side).next_multiple_of(UNIT_SIDE);
    padded(size.0) * padded(size.1) * COMPONENTS * COEFFICIENT_BYTES
}
