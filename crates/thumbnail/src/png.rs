//! Rows of a PNG, decoded one after the other.

use std::io::Cursor;

use png::{BitDepth, Decoder, Limits, Reader, Transformations};

use super::Undecodable;
use super::need::PNG_BESIDES_MAX;
use super::shrink::{Source, narrow};

/// The offset of the interlace method in the header, and that of a picture without.
const INTERLACE_AT: usize = 28;
const NOT_INTERLACED: u8 = 0;

/// Whether the rows come from top to bottom.
pub(super) fn is_sequential(bytes: &[u8]) -> bool {
    bytes.get(INTERLACE_AT) == Some(&NOT_INTERLACED)
}

/// A PNG that is read row by row.
pub(super) struct PngRows<'a> {
    reader: Reader<Cursor<&'a [u8]>>,
    is_wide: bool,
    /// A row as it is decoded.
    line: Vec<u8>,
}

impl<'a> PngRows<'a> {
    /// Opens the file, with the pixel format that the decoder of whole pictures gives it.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, Undecodable> {
        let limits = Limits { bytes: usize::try_from(PNG_BESIDES_MAX).unwrap_or(usize::MAX) };
        let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
        decoder.set_transformations(Transformations::EXPAND);
        let reader = decoder.read_info().map_err(|_| Undecodable::Damaged)?;
        let info = reader.info();
        // The first frame of an animation may claim another size.
        if info.frame_control.is_some_and(|frame| (frame.width, frame.height) != info.size()) {
            return Err(Undecodable::Damaged);
        }
        let is_wide = reader.output_color_type().1 == BitDepth::Sixteen;
        let length = reader.output_line_size(info.width).ok_or(Undecodable::Damaged)?;
        Ok(Self { reader, is_wide, line: vec![0; length] })
    }
}

impl Source for PngRows<'_> {
    fn next(&mut self, row: &mut [u8]) -> Result<(), Undecodable> {
        let line = if self.is_wide { self.line.as_mut_slice() } else { &mut *row };
        self.reader
            .read_row(line)
            .map_err(|_| Undecodable::Damaged)?
            .ok_or(Undecodable::Damaged)?;
        if self.is_wide {
            for (sample, wide) in row.iter_mut().zip(self.line.as_chunks::<2>().0) {
                *sample = narrow(u16::from_be_bytes(*wide));
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Undecodable> {
        // After the last row the decoder checks the rest of the pixels' data.
        self.reader.next_row().map(drop).map_err(|_| Undecodable::Damaged)
    }
}
