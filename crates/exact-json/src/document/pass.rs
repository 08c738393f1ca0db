//! One pass over a value: its end, and what no later pass has to look for.
//!
//! A pass accepts only what is surely JSON, and stops at anything else without a reason. What it does not accept goes
//! through the checks that find the fault, so that no rule of errors stands here.

use wide::u8x16;

use crate::DEPTH_MAX;

/// Traits of a value, found by a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The levels of containers, 0 for a scalar.
    pub(crate) levels: usize,
    /// True if no line break stands between tokens.
    pub(crate) is_one_line: bool,
    /// True if each surrogate is paired and each number surely fits a double, with few enough digits.
    pub(crate) is_readable: bool,
    /// The lowest first byte of a name, which is a quote if the name is empty; 0 if a name has an escape.
    pub(crate) name_lowest: u8,
}

impl Traits {
    const SCALAR: Self =
        Self { levels: 0, is_one_line: true, is_readable: true, name_lowest: u8::MAX };
}

/// The longest number without its exponent, and the most digits of an exponent, that fit a double surely: together they
/// are below 1e299.
const MANTISSA_MAX: usize = 200;
const EXPONENT_DIGITS_MAX: usize = 2;

/// A value within its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) text: &'a str,
    pub(crate) traits: Traits,
}

/// Returns the one value that a text is, without the white space around it.
pub(crate) fn value(text: &str) -> Option<Value<'_>> {
    let mut pass = Pass::new(text);
    let (value, end) = pass.whole(0)?;
    let (_, end) = pass.next(end);
    (end == text.len()).then_some(value)
}

/// Iterates over the elements of an array that a pass has accepted. Other values have none.
pub(crate) fn elements(array: &str) -> impl Iterator<Item = Value<'_>> {
    let mut pass = Pass::new(array);
    let mut at = if array.starts_with('[') { 0 } else { array.len() };
    std::iter::from_fn(move || {
        // Over the bracket or comma before the element. After the last one stands no value.
        let (_, before) = pass.next(at);
        let (value, end) = pass.whole(before + 1)?;
        at = end;
        Some(value)
    })
}

/// A text, and what was found in it.
struct Pass<'a> {
    text: &'a str,
    block: Block,
    traits: Traits,
}

impl<'a> Pass<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, block: Block::of(text.as_bytes(), 0), traits: Traits::SCALAR }
    }

    /// Reads a value after white space. Returns its end as well.
    fn whole(&mut self, at: usize) -> Option<(Value<'a>, usize)> {
        let (_, start) = self.next(at);
        self.traits = Traits::SCALAR;
        let end = self.value(start, 0)?;
        Some((Value { text: self.text.get(start..end)?, traits: self.traits }, end))
    }

    /// Returns the byte at a place. The end is a NUL, which is valid nowhere.
    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or_default()
    }

    /// Returns the next byte from a place on that is no white space, with its place.
    #[inline]
    fn next(&mut self, at: usize) -> (u8, usize) {
        match self.byte(at) {
            b'\0'..=b' ' => self.next_after_space(at),
            byte => (byte, at),
        }
    }

    #[inline(never)]
    fn next_after_space(&mut self, mut at: usize) -> (u8, usize) {
        loop {
            match self.byte(at) {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.traits.is_one_line = false,
                byte => return (byte, at),
            }
            at += 1;
        }
    }

    /// Returns the end of the value that begins here, within so many containers. It recurses up to [`DEPTH_MAX`].
    fn value(&mut self, at: usize, levels: usize) -> Option<usize> {
        match self.byte(at) {
            b'"' => self.string(at),
            b'-' | b'0'..=b'9' => self.number(at),
            b'{' => self.object(at, levels + 1),
            b'[' => self.array(at, levels + 1),
            b't' => self.word(at, "true"),
            b'f' => self.word(at, "false"),
            b'n' => self.word(at, "null"),
            _ => None,
        }
    }

    fn object(&mut self, at: usize, levels: usize) -> Option<usize> {
        self.enter(levels)?;
        let (mut byte, mut at) = self.next(at + 1);
        if byte == b'}' {
            return Some(at + 1);
        }
        loop {
            if byte != b'"' {
                return None;
            }
            at = self.name(at)?;
            (byte, at) = self.next(at);
            if byte != b':' {
                return None;
            }
            (byte, at) = self.next(at + 1);
            // Most values are strings, which need no call.
            at = if byte == b'"' { self.string(at)? } else { self.value(at, levels)? };
            (byte, at) = self.next(at);
            match byte {
                b',' => (byte, at) = self.next(at + 1),
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    fn array(&mut self, at: usize, levels: usize) -> Option<usize> {
        self.enter(levels)?;
        let (mut byte, mut at) = self.next(at + 1);
        if byte == b']' {
            return Some(at + 1);
        }
        loop {
            at = self.value(at, levels)?;
            (byte, at) = self.next(at);
            match byte {
                b',' => (_, at) = self.next(at + 1),
                b']' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    fn enter(&mut self, levels: usize) -> Option<()> {
        self.traits.levels = self.traits.levels.max(levels);
        (levels <= DEPTH_MAX).then_some(())
    }

    #[inline]
    fn name(&mut self, at: usize) -> Option<usize> {
        let end = self.block.end(self.text.as_bytes(), at + 1);
        if self.byte(end) != b'"' {
            self.traits.name_lowest = 0;
            return self.escaped(end);
        }
        self.traits.name_lowest = self.traits.name_lowest.min(self.byte(at + 1));
        Some(end + 1)
    }

    #[inline]
    fn string(&mut self, at: usize) -> Option<usize> {
        let end = self.block.end(self.text.as_bytes(), at + 1);
        if self.byte(end) == b'"' { Some(end + 1) } else { self.escaped(end) }
    }

    /// Returns the end of a string from an escape on.
    #[inline(never)]
    fn escaped(&mut self, mut at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at..)? {
                [b'"', ..] => return Some(at + 1),
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at += 2,
                [b'\\', b'u', rest @ ..] => {
                    let unit = unit(rest)?;
                    at += UNIT_BYTES;
                    let low = || unit_after(bytes.get(at..)?);
                    if matches!(unit, 0xD800..=0xDBFF) && matches!(low(), Some(0xDC00..=0xDFFF)) {
                        at += UNIT_BYTES;
                    } else {
                        self.traits.is_readable &= !matches!(unit, 0xD800..=0xDFFF);
                    }
                }
                _ => return None,
            }
            at = self.block.end(bytes, at);
        }
    }

    fn number(&mut self, start: usize) -> Option<usize> {
        let whole = start + usize::from(self.byte(start) == b'-');
        let mut end = if self.byte(whole) == b'0' { whole + 1 } else { self.digits(whole)? };
        if self.byte(end) == b'.' {
            end = self.digits(end + 1)?;
        }
        self.traits.is_readable &= end - start <= MANTISSA_MAX;
        if matches!(self.byte(end), b'e' | b'E') {
            let exponent = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            end = self.digits(exponent)?;
            self.traits.is_readable &= end - exponent <= EXPONENT_DIGITS_MAX;
        }
        Some(end)
    }

    /// Returns the end of the digits that begin here, of which there must be some.
    fn digits(&self, start: usize) -> Option<usize> {
        let mut end = start;
        while self.byte(end).is_ascii_digit() {
            end += 1;
        }
        (end > start).then_some(end)
    }

    fn word(&self, at: usize, word: &str) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        rest.starts_with(word.as_bytes()).then_some(at + word.len())
    }
}

/// A block of a text that is searched for the ends of strings. Most have several, so each is searched once for all.
struct Block {
    start: usize,
    /// A bit for each byte, the first lowest: 1 if it is no plain character of a string.
    ends: u64,
}

impl Block {
    const BYTES: usize = 64;

    /// Searches the block of this place.
    #[inline]
    fn of(bytes: &[u8], at: usize) -> Self {
        let start = at - at % Self::BYTES;
        Self { start, ends: ends(bytes, start) }
    }

    /// Returns the first byte from a place on that is no plain character of a string, or the end of the text.
    #[inline]
    fn end(&mut self, bytes: &[u8], at: usize) -> usize {
        if at - at % Self::BYTES != self.start {
            *self = Self::of(bytes, at);
        }
        let ends = self.ends >> (at % Self::BYTES);
        if ends != 0 {
            return at + ends.trailing_zeros() as usize;
        }
        loop {
            *self = Self::of(bytes, self.start + Self::BYTES);
            if self.ends != 0 {
                return self.start + self.ends.trailing_zeros() as usize;
            }
        }
    }
}

/// Returns a bit for each byte of the block that begins here. Zeros follow the text, so that its end is one too.
#[inline(never)]
fn ends(bytes: &[u8], start: usize) -> u64 {
    if let Some(block) = bytes.get(start..start + Block::BYTES) {
        return ends_of(block);
    }
    let mut block = [0; Block::BYTES];
    let rest = bytes.get(start..).unwrap_or_default();
    for (to, from) in block.iter_mut().zip(rest) {
        *to = *from;
    }
    ends_of(&block)
}

fn ends_of(block: &[u8]) -> u64 {
    let (parts, _) = block.as_chunks();
    parts.iter().rev().fold(0, |ends, part| ends << u8x16::LANES | u64::from(is_end(*part)))
}

/// Returns a bit for each byte that is a quote, a backslash or a control character. With its second bit flipped a quote is
/// the first byte after the control characters, among which each changes places with another.
fn is_end(part: [u8; 16]) -> u32 {
    let part = u8x16::new(part);
    let flipped = part ^ u8x16::splat(b'"' ^ b' ');
    let is_low = flipped.min(u8x16::splat(b' ')).cmp_eq(flipped);
    let is_end = is_low | part.cmp_eq(u8x16::splat(b'\\'));
    is_end.move_mask().cast_unsigned()
}

/// The length of `\u` with its digits.
const UNIT_BYTES: usize = r"\u0000".len();

fn unit_after(escape: &[u8]) -> Option<u32> {
    unit(escape.strip_prefix(br"\u")?)
}

/// Returns the UTF-16 code unit of the four digits here.
fn unit(digits: &[u8]) -> Option<u32> {
    let digits: &[u8; 4] = digits.first_chunk()?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}
