//! Huffman codes of a baseline JPEG, and the bits that they are read from.

/// The longest code, in bits.
const CODE_BITS_MAX: u32 = 16;

/// A table of all that the next sixteen bits may be: the length of the code that they begin with, and its symbol. No code
/// has length zero.
pub(super) struct Table(Vec<(u8, u8)>);

impl Table {
    /// Builds the table of a definition: the numbers of codes of each length, and their symbols. `None` if there are
    /// more codes than bits, or fewer symbols.
    pub(super) fn of(definition: &[u8]) -> Option<Self> {
        let (counts, symbols) = definition.split_first_chunk::<16>()?;
        let mut symbols = symbols.iter();
        let mut places = Vec::with_capacity(1 << CODE_BITS_MAX);
        for (length, count) in (1_u8..).zip(counts) {
            for _ in 0..*count {
                // The codes are in ascending order, each with all that can follow it.
                let end = places.len() + (1 << (CODE_BITS_MAX - u32::from(length)));
                places.resize(end, (length, *symbols.next()?));
            }
            if places.len() > 1 << CODE_BITS_MAX {
                return None;
            }
        }
        places.resize(1 << CODE_BITS_MAX, (0, 0));
        Some(Self(places))
    }
}

/// The bits of a scan's data up to the next marker.
pub(super) struct Bits<'a> {
    rest: &'a [u8],
    /// The bits that were taken from `rest`, the next one highest.
    held: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { rest: data, held: 0, count: 0 }
    }

    /// Holds enough bits for a code and the value after it, if there are so many.
    fn fill(&mut self) {
        while self.count <= u64::BITS - u8::BITS {
            let (byte, rest) = match self.rest {
                [0xff, 0, rest @ ..] => (0xff, rest),
                [0xff, ..] | [] => return,
                [byte, rest @ ..] => (*byte, rest),
            };
            self.held |= u64::from(byte) << (u64::BITS - u8::BITS - self.count);
            (self.count, self.rest) = (self.count + u8::BITS, rest);
        }
    }

    fn skip(&mut self, count: u32) -> Option<()> {
        self.count = self.count.checked_sub(count)?;
        self.held <<= count;
        Some(())
    }

    /// Reads a symbol. `None` if the data ends before, or has no such code.
    #[inline]
    pub(super) fn symbol(&mut self, table: &Table) -> Option<u8> {
        if self.count < 2 * CODE_BITS_MAX {
            self.fill();
        }
        let next = usize::try_from(self.held >> (u64::BITS - CODE_BITS_MAX)).ok()?;
        let (length, symbol) = *table.0.get(next)?;
        if length == 0 {
            return None;
        }
        self.skip(length.into())?;
        Some(symbol)
    }

    /// Reads a value of so many bits, at most sixteen, after the symbol that says how many.
    #[inline]
    pub(super) fn value(&mut self, bits: u8) -> Option<i32> {
        if bits == 0 {
            return Some(0);
        }
        let value = i32::try_from(self.held >> (u64::BITS - u32::from(bits))).ok()?;
        self.skip(bits.into())?;
        // Values that begin with a zero are negative.
        let half = 1 << (bits - 1);
        Some(if value < half { value - 2 * half + 1 } else { value })
    }

    /// Whether less than a byte is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty() && self.count < u8::BITS
    }

    /// Goes on after the marker of a restart. `None` if there is none.
    pub(super) fn restart(&mut self) -> Option<()> {
        loop {
            match self.rest {
                [0xff, 0xff, ..] => self.rest = self.rest.get(1..)?,
                [0xff, 0xd0..=0xd7, rest @ ..] => {
                    *self = Self::new(rest);
                    return Some(());
                }
                _ => return None,
            }
        }
    }
}
