//! Rows of a baseline JPEG, decoded a row of units at a time.

use super::block::{SIDE, coefficients, samples};
use super::header::Header;
use super::huffman::{Bits, Table};
use crate::Undecodable;
use crate::shrink::Source;

/// A component while it is decoded.
struct Plane {
    dc: Table,
    ac: Table,
    /// The mean of the last block.
    mean: i32,
    /// The samples of a row of units.
    samples: Vec<u8>,
    /// The samples of a row.
    stride: usize,
    /// A row, as wide as the picture.
    row: Vec<u8>,
}

/// A baseline JPEG that is read row by row.
pub(crate) struct JpegRows<'a> {
    header: Header<'a>,
    planes: Vec<Plane>,
    bits: Bits<'a>,
    /// The blocks of a unit, across and down, and the units of a row.
    unit: (usize, usize),
    units: usize,
    /// The units that were read.
    read: u64,
    /// The row of the units that comes next.
    y: usize,
}

impl<'a> JpegRows<'a> {
    /// Opens the file. `None` if it is of another variant.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes)?;
        let across = header.components.iter().map(|component| component.across).max()?;
        let down = header.components.iter().map(|component| component.down).max()?;
        let width = usize::try_from(header.size.0).ok()?;
        let units = width.div_ceil(across * SIDE);
        let mut planes = Vec::new();
        for component in &header.components {
            let (dc, ac) = header.tables(component)?;
            let stride = units * component.across * SIDE;
            let samples = vec![0; stride * component.down * SIDE];
            planes.push(Plane { dc, ac, mean: 0, samples, stride, row: vec![0; width] });
        }
        let bits = Bits::new(header.data);
        Some(Self { header, planes, bits, unit: (across, down), units, read: 0, y: 0 })
    }

    /// Width and height.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.header.size
    }

    /// The number of samples of a pixel.
    pub(crate) fn channels(&self) -> u8 {
        if self.planes.len() == 1 { 1 } else { 3 }
    }

    /// Whether the file ends after what was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.bits.is_at_end()
    }

    /// Decodes a row of units. `None` if the data is damaged.
    fn decode(&mut self) -> Option<()> {
        let restart = u64::from(self.header.restart);
        for at in 0..self.units {
            if restart > 0 && self.read > 0 && self.read.is_multiple_of(restart) {
                self.bits.restart()?;
                self.planes.iter_mut().for_each(|plane| plane.mean = 0);
            }
            self.read += 1;
            for (plane, component) in self.planes.iter_mut().zip(&self.header.components) {
                for block in 0..component.across * component.down {
                    let (down, across) = (block / component.across, block % component.across);
                    let tables = (&plane.dc, &plane.ac);
                    let (read, rows) =
                        coefficients(&mut self.bits, tables, &component.factors, &mut plane.mean)?;
                    let mut begin =
                        down * SIDE * plane.stride + (at * component.across + across) * SIDE;
                    for row in samples(&read, rows) {
                        *plane.samples.get_mut(begin..)?.first_chunk_mut()? = row;
                        begin += plane.stride;
                    }
                }
            }
        }
        Some(())
    }
}

impl Source for JpegRows<'_> {
    fn next(&mut self, row: &mut [u8]) -> Result<(), Undecodable> {
        if self.y == 0 {
            self.decode().ok_or(Undecodable::Damaged)?;
        }
        for (plane, component) in self.planes.iter_mut().zip(&self.header.components) {
            let begin = self.y * component.down / self.unit.1 * plane.stride;
            let samples = plane.samples.get(begin..).unwrap_or_default();
            widen(samples, component.across, self.unit.0, &mut plane.row);
        }
        match self.planes.as_slice() {
            [y, cb, cr] if !self.header.is_rgb => {
                let pixels = row.as_chunks_mut::<3>().0.iter_mut();
                for (((pixel, y), cb), cr) in pixels.zip(&y.row).zip(&cb.row).zip(&cr.row) {
                    *pixel = rgb(*y, *cb, *cr);
                }
            }
            [red, green, blue] => {
                let pixels = row.as_chunks_mut::<3>().0.iter_mut();
                for (((pixel, r), g), b) in pixels.zip(&red.row).zip(&green.row).zip(&blue.row) {
                    *pixel = [*r, *g, *b];
                }
            }
            planes => {
                planes.iter().for_each(|grey| row.copy_from_slice(&grey.row));
            }
        }
        self.y = (self.y + 1) % (self.unit.1 * SIDE);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Undecodable> {
        Ok(())
    }
}

/// Repeats samples, so that `across` become `unit`. Smoother ones would not show, since the picture is scaled down.
fn widen(samples: &[u8], across: usize, unit: usize, row: &mut [u8]) {
    if across == unit {
        row.iter_mut().zip(samples).for_each(|(to, from)| *to = *from);
    } else if 2 * across == unit {
        row.chunks_mut(2).zip(samples).for_each(|(to, from)| to.fill(*from));
    } else {
        for (at, to) in row.iter_mut().enumerate() {
            *to = samples.get(at * across / unit).copied().unwrap_or_default();
        }
    }
}

/// Converts luma and chroma, with sixteen bits after the point.
#[inline]
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let sample = |chroma: i32| u8::try_from((y + ((chroma + HALF) >> 16)).clamp(0, 255));
    let [red, green, blue] = [91_881 * cr, -22_554 * cb - 46_802 * cr, 116_130 * cb].map(sample);
    [red.unwrap_or(u8::MAX), green.unwrap_or(u8::MAX), blue.unwrap_or(u8::MAX)]
}
