//! A bit reader, least significant bit first, and prefix codes, for lossless WebP.

/// A stream of bits. Every read is `None` past its end.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next bit.
    pub(super) fn bit(&mut self) -> Option<u32> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = u32::from(*byte) >> (self.at % 8) & 1;
        self.at += 1;
        Some(bit)
    }

    /// Returns the next `count` bits as a number.
    pub(super) fn number(&mut self, count: u32) -> Option<u32> {
        let mut number = 0;
        for place in 0..count {
            number |= self.bit()? << place;
        }
        Some(number)
    }
}

/// The maximum length of a code, in bits.
const LENGTH_MAX: usize = 15;

/// A prefix code.
pub(super) enum Code {
    /// A single symbol, which takes no bits.
    Single(u16),
    /// Several symbols in the order of their codes, with the number of codes of each length.
    Several { counts: [u16; LENGTH_MAX + 1], symbols: Vec<u16> },
}

impl Code {
    /// Creates the code with these lengths of its symbols. `None` if there is no such code.
    pub(super) fn of(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; LENGTH_MAX + 1];
        for length in lengths.iter().filter(|length| **length > 0) {
            *counts.get_mut(usize::from(*length))? += 1;
        }
        let mut symbols = Vec::new();
        let (mut left, mut longest) = (1_u32, 0);
        for (length, count) in (0..).zip(counts) {
            left = if length == 0 { 1 } else { (left << 1).checked_sub(u32::from(count))? };
            if count > 0 {
                longest = length;
                let of_it = (0..).zip(lengths).filter(|(_, found)| **found == length);
                symbols.extend(of_it.map(|(symbol, _)| symbol));
            }
        }
        match symbols.as_slice() {
            [] => None,
            [only] => Some(Self::Single(*only)),
            _ if longest > 0 && left == 0 => Some(Self::Several { counts, symbols }),
            _ => None,
        }
    }

    /// Returns the next symbol.
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Option<u16> {
        let (counts, symbols) = match self {
            Self::Single(symbol) => return Some(*symbol),
            Self::Several { counts, symbols } => (counts, symbols),
        };
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in counts.iter().skip(1).map(|count| u32::from(*count)) {
            code |= bits.bit()?;
            if code < first + count {
                return symbols.get(usize::try_from(index + code - first).ok()?).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }

    /// Returns the bytes of the decoder's tables: one table for the first ten bits, and two nodes of 16 bytes for
    /// each longer code.
    pub(super) fn table_bytes(&self) -> u64 {
        let counts = match self {
            Self::Single(_) => return 0,
            Self::Several { counts, .. } => counts,
        };
        let longest = counts.iter().rposition(|count| *count > 0).unwrap_or_default();
        let beyond: u64 = counts.iter().skip(11).map(|count| u64::from(*count)).sum();
        (4 << longest.min(10)) + 32 * beyond
    }
}
