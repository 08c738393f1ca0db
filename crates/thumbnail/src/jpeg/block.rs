//! A block of 8 x 8 samples: its coefficients are read, and transformed back.
//!
//! Floating point without fused operations gives the same samples on every machine.

use super::huffman::{Bits, Table};
use crate::shrink::rounded;

/// The side of a block, in samples.
pub(super) const SIDE: usize = 8;

/// The coefficients of a block, or its samples.
pub(super) type Block = [[f32; SIDE]; SIDE];

/// The places of the coefficients in the order in which they are stored, eight to a row.
const ZIGZAG: [u8; SIDE * SIDE] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Half the cosines of multiples of a sixteenth of a half turn. Those of a library differ between machines.
const C: [f32; 8] = [
    0.353_553_4,
    0.490_392_64,
    0.461_939_77,
    0.415_734_8,
    0.353_553_4,
    0.277_785_1,
    0.191_341_71,
    0.097_545_16,
];

/// The waves that the coefficients of a row weigh.
const WAVES: Block = [
    [C[0], C[0], C[0], C[0], C[0], C[0], C[0], C[0]],
    [C[1], C[3], C[5], C[7], -C[7], -C[5], -C[3], -C[1]],
    [C[2], C[6], -C[6], -C[2], -C[2], -C[6], C[6], C[2]],
    [C[3], -C[7], -C[1], -C[5], C[5], C[1], C[7], -C[3]],
    [C[4], -C[4], -C[4], C[4], C[4], -C[4], -C[4], C[4]],
    [C[5], -C[1], C[7], C[3], -C[3], -C[7], C[1], -C[5]],
    [C[6], -C[2], C[2], -C[6], -C[6], C[2], -C[2], C[6]],
    [C[7], -C[5], C[3], -C[1], C[1], -C[3], C[5], -C[7]],
];

/// The shade of a block without coefficients.
const MIDDLE: f32 = 128.0;

/// The run of zeros without a coefficient after it.
const ZEROS: u8 = 0xf0;

/// Reads the coefficients of a block, and returns them with the number of rows that have any. `None` if the data is
/// damaged.
pub(super) fn coefficients(
    bits: &mut Bits,
    (dc, ac): (&Table, &Table),
    factors: &[f32; SIDE * SIDE],
    mean: &mut i32,
) -> Option<(Block, usize)> {
    let mut block = Block::default();
    let length = bits.symbol(dc)?;
    if length > 15 {
        return None;
    }
    *mean = mean.wrapping_add(bits.value(length)?);
    let [[first, ..], ..] = &mut block;
    *first = *mean as f32 * factors[0];
    let (mut at, mut rows) = (1, 1);
    while at < SIDE * SIDE {
        let symbol = bits.symbol(ac)?;
        let (zeros, length) = (symbol >> 4, symbol & 15);
        at += usize::from(zeros);
        if length == 0 {
            if symbol != ZEROS {
                break;
            }
        } else {
            // A run beyond the block is damage.
            let (place, factor) = (usize::from(*ZIGZAG.get(at)?), factors.get(at)?);
            let row = block.get_mut(place / SIDE)?;
            *row.get_mut(place % SIDE)? = bits.value(length)? as f32 * factor;
            rows = rows.max(place / SIDE + 1);
        }
        at += 1;
    }
    Some((block, rows))
}

/// Transforms coefficients back into samples, row after row.
pub(super) fn samples(block: &Block, rows: usize) -> [[u8; SIDE]; SIDE] {
    // Rows first: most of the lower ones are empty.
    let mut sums = [[MIDDLE; SIDE]; SIDE];
    for (row, wave) in block.iter().zip(&WAVES).take(rows) {
        let mut across = [0.0; SIDE];
        for (coefficient, wave) in row.iter().zip(&WAVES) {
            if *coefficient != 0.0 {
                add(&mut across, wave, *coefficient);
            }
        }
        for (sums, weight) in sums.iter_mut().zip(wave) {
            add(sums, &across, *weight);
        }
    }
    sums.map(|row| row.map(|sample| rounded(sample.clamp(0.0, 255.0))))
}

#[inline]
fn add(sums: &mut [f32; SIDE], of: &[f32; SIDE], weight: f32) {
    sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of * weight);
}
