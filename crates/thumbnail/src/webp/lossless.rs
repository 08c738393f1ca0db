//! Counts the code tables of a lossless WebP before decoding.
//!
//! There may be 65,536 groups of five codes, each with tables of its own: a file of 5 MB can ask for more than a
//! gigabyte. The number of groups comes after other data, which is read here as the decoder reads it, without the
//! pixels.

use super::bits::{Bits, Code};

/// The size of an image whose stream does not contain it.
pub(super) type Implicit = (u32, u32);

/// The decoder's memory of a group besides its tables.
const GROUP_BYTES: u64 = 320;

/// The number of symbols of each code in a group: green with lengths, red, blue, alpha, distances.
const ALPHABETS: [usize; 5] = [256 + 24, 256, 256, 256, 40];
/// The first symbols of the first code that stand for a length, and for a place in the cache.
const LENGTHS_FROM: u16 = 256;
const CACHE_FROM: u16 = 256 + 24;

/// The order in which a stream gives the code lengths of the length code.
const LENGTH_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Returns the bytes of all tables of a stream, up to its end or first error, where the decoder stops too.
pub(super) fn table_bytes(stream: &[u8], implicit: Option<Implicit>) -> u64 {
    let mut stream = Stream { bits: Bits::new(stream), table_bytes: 0 };
    // No data after the tables makes the decoder allocate more.
    let _read_to_its_end: Option<()> = stream.read(implicit);
    stream.table_bytes
}

struct Stream<'a> {
    bits: Bits<'a>,
    table_bytes: u64,
}

type Group = [Code; 5];

impl Stream<'_> {
    fn read(&mut self, implicit: Option<Implicit>) -> Option<()> {
        let (mut width, height) = match implicit {
            Some(size) => size,
            None => {
                // The signature. The transparency flag and the version follow the sizes.
                self.bits.number(8).filter(|signature| *signature == 0x2f)?;
                let size = (self.bits.number(14)? + 1, self.bits.number(14)? + 1);
                self.bits.number(4)?;
                size
            }
        };
        let mut seen = [false; 4];
        while self.bits.bit()? == 1 {
            let kind = self.bits.number(2)?;
            let seen = seen.get_mut(usize::try_from(kind).ok()?)?;
            if std::mem::replace(seen, true) {
                return None;
            }
            match kind {
                0 | 1 => {
                    let block = self.bits.number(3)? + 2;
                    self.inner_image(parts(width, block), parts(height, block))?;
                }
                2 => {}
                _ => {
                    let colours = self.bits.number(8)? + 1;
                    self.inner_image(colours, 1)?;
                    // The number of pixels packed into one, as a power of two.
                    let packed = match colours {
                        0..=2 => 3,
                        3..=4 => 2,
                        5..=16 => 1,
                        17.. => 0,
                    };
                    width = parts(width, packed);
                }
            }
        }
        let cache = self.cache()?;
        let mut groups = 1;
        if self.bits.bit()? == 1 {
            let block = self.bits.number(3)? + 2;
            groups = self.inner_image(parts(width, block), parts(height, block))? + 1;
        }
        for _ in 0..groups {
            self.group(cache)?;
        }
        Some(())
    }

    /// Reads an image within the image, and returns the largest number in its red and green.
    fn inner_image(&mut self, width: u32, height: u32) -> Option<u32> {
        let cache = self.cache()?;
        let [green, red, blue, alpha, distance] = self.group(cache)?;
        let (mut left, mut largest) = (u64::from(width) * u64::from(height), 0);
        let fixed =
            [&green, &red, &blue, &alpha].iter().all(|code| matches!(code, Code::Single(_)));
        while left > 0 {
            let symbol = green.symbol(&mut self.bits)?;
            if symbol < LENGTHS_FROM {
                let red = red.symbol(&mut self.bits)?;
                blue.symbol(&mut self.bits)?;
                alpha.symbol(&mut self.bits)?;
                // Copies and the cache only repeat earlier pixels.
                largest = largest.max(u32::from(red) << 8 | u32::from(symbol));
                left = if fixed { 0 } else { left - 1 };
            } else if symbol < CACHE_FROM {
                let length = self.distance(symbol - LENGTHS_FROM)?;
                let symbol = distance.symbol(&mut self.bits)?;
                self.distance(symbol)?;
                left = left.checked_sub(length)?;
            } else {
                left -= 1;
            }
        }
        Some(largest)
    }

    /// Reads a length or a distance. Its symbol gives the number of bits that follow.
    fn distance(&mut self, symbol: u16) -> Option<u64> {
        if symbol < 4 {
            return Some(u64::from(symbol) + 1);
        }
        let more = u32::from(symbol - 2) >> 1;
        let offset = (2 + (u64::from(symbol) & 1)) << more;
        Some(offset + u64::from(self.bits.number(more)?) + 1)
    }

    /// Reads the number of symbols that the cache adds.
    fn cache(&mut self) -> Option<usize> {
        if self.bits.bit()? == 0 {
            return Some(0);
        }
        let bits = self.bits.number(4)?;
        (1..=11).contains(&bits).then_some(1 << bits)
    }

    fn group(&mut self, cache: usize) -> Option<Group> {
        self.table_bytes += GROUP_BYTES;
        let [green, red, blue, alpha, distance] = ALPHABETS;
        Some([
            self.code(green + cache)?,
            self.code(red)?,
            self.code(blue)?,
            self.code(alpha)?,
            self.code(distance)?,
        ])
    }

    fn code(&mut self, symbols: usize) -> Option<Code> {
        let code = if self.bits.bit()? == 1 { self.simple(symbols)? } else { self.full(symbols)? };
        self.table_bytes += code.table_bytes();
        Some(code)
    }

    /// Reads a code of one or two symbols, which are given directly.
    fn simple(&mut self, symbols: usize) -> Option<Code> {
        let has_two = self.bits.bit()? == 1;
        let width = 1 + 7 * self.bits.bit()?;
        let mut lengths = vec![0; symbols];
        let first = self.bits.number(width)?;
        *lengths.get_mut(usize::try_from(first).ok()?)? = 1;
        if !has_two {
            return Some(Code::Single(u16::try_from(first).ok()?));
        }
        let second = self.bits.number(8)?;
        *lengths.get_mut(usize::try_from(second).ok()?)? = 1;
        Code::of(&lengths)
    }

    /// Reads a code whose lengths are encoded with a code of their own.
    fn full(&mut self, symbols: usize) -> Option<Code> {
        let mut of_lengths = [0; LENGTH_ORDER.len()];
        let count = usize::try_from(self.bits.number(4)?).ok()? + 4;
        for place in LENGTH_ORDER.iter().take(count) {
            *of_lengths.get_mut(*place)? = u8::try_from(self.bits.number(3)?).ok()?;
        }
        let code = Code::of(&of_lengths)?;
        let mut left = symbols;
        if self.bits.bit()? == 1 {
            let width = 2 + 2 * self.bits.number(3)?;
            left = usize::try_from(self.bits.number(width)?).ok()? + 2;
        }
        let (mut lengths, mut last) = (Vec::with_capacity(symbols), 8);
        while lengths.len() < symbols && left > 0 {
            left -= 1;
            let (length, times) = match code.symbol(&mut self.bits)? {
                16 => (last, self.bits.number(2)? + 3),
                17 => (0, self.bits.number(3)? + 3),
                18 => (0, self.bits.number(7)? + 11),
                length => (u8::try_from(length).ok()?, 1),
            };
            if length > 0 {
                last = length;
            }
            lengths.extend(std::iter::repeat_n(length, usize::try_from(times).ok()?));
        }
        (lengths.len() <= symbols).then(|| Code::of(&lengths)).flatten()
    }
}

/// Returns the number of blocks along a side. A block is two to the `power` long.
fn parts(side: u32, power: u32) -> u32 {
    side.div_ceil(1 << power)
}

#[cfg(test)]
mod tests;
