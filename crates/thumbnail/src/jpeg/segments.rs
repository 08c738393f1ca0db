//! Segments of a JPEG before its first scan's data.

/// The first byte of each marker.
const MARK: u8 = 0xff;

/// The second bytes of markers without a body: the beginning, the end, restarts, and one of no meaning.
const BEGINNING: u8 = 0xd8;
const END: u8 = 0xd9;
const RESTARTS: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
const TEMPORARY: u8 = 0x01;

/// A segment of the file.
#[derive(Clone, Copy)]
pub(in super::super) struct Segment<'a> {
    /// The second byte of its marker.
    pub(in super::super) marker: u8,
    /// Its content.
    pub(in super::super) body: &'a [u8],
    /// The bytes of the file after it.
    pub(super) after: &'a [u8],
}

/// Iterates over the segments up to the head of the first scan.
pub(in super::super) fn segments(bytes: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            match rest {
                [MARK, BEGINNING | TEMPORARY, after @ ..] => rest = after,
                [MARK, marker, after @ ..] if RESTARTS.contains(marker) => rest = after,
                [] | [MARK] | [MARK, END, ..] => return None,
                // Bytes between segments are skipped, as the decoder of whole pictures does.
                [MARK, MARK | 0, ..] => rest = rest.get(1..)?,
                [MARK, marker, high, low, ..] => {
                    let end = usize::from(u16::from_be_bytes([*high, *low])) + 2;
                    let (body, after) = (rest.get(4..end)?, rest.get(end..)?);
                    rest = if *marker == super::SCAN { &[] } else { after };
                    return Some(Segment { marker: *marker, body, after });
                }
                [_, after @ ..] => rest = after,
            }
        }
    })
}
