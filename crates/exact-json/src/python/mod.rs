//! Python's text of JSON: `json.dumps(json.loads(text))` of `CPython` to the byte, in one pass.
//!
//! The text has passed [`syntax`](crate::syntax()) and [`check`](crate::check()). A repeated name keeps its last value
//! at its first place; the object is corrected when it closes. Text for a string literal is escaped as it is written.

mod float;

use std::collections::HashMap;
use std::iter;

use crate::tokens::{is_space, run_before, scalar_end};
use crate::{decode, members, short_escape};

/// Up to this number of members, comparing all pairs of names is faster than hashing the names.
const PAIRWISE_MAX: usize = 16;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends this JSON text as Python writes it.
pub fn dumps(text: &str, out: &mut String) {
    Writer::<false>::new(&mut Open::default(), Characters::Escaped, out).value(text);
}

/// Appends this JSON text as Python writes it, but with printable characters instead of their escapes.
pub fn dumps_characters(text: &str, out: &mut String) {
    Writer::<false>::new(&mut Open::default(), Characters::Written, out).value(text);
}

/// Appends the list of these JSON texts as Python writes it.
pub fn dumps_list<'a>(items: impl Iterator<Item = &'a str>, out: &mut String) {
    let mut open = Open::default();
    let mut writer = Writer::<false>::new(&mut open, Characters::Escaped, out);
    writer.open('[', false);
    for item in items {
        writer.value(item);
    }
    writer.close(']');
}

/// Appends the object as Python writes it, with only the members whose decoded name `keep` accepts.
pub fn dumps_members(object: &str, keep: impl Fn(&str) -> bool, out: &mut String) {
    Writer::<false>::new(&mut Open::default(), Characters::Escaped, out).chosen(object, keep);
}

/// The form of characters beyond ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Characters {
    /// Escaped, as Python does by default.
    #[default]
    Escaped,
    /// Printable ones as they are. Control characters stay escaped.
    Written,
}

/// Writes texts as [`dumps`] does, but as the inside of a JSON string literal. Reuse one for many texts.
#[derive(Debug, Default)]
pub struct Literal {
    open: Open,
    characters: Characters,
}

impl Literal {
    /// Creates a writer.
    #[must_use]
    pub fn new(characters: Characters) -> Self {
        Self { open: Open::default(), characters }
    }

    /// Appends this JSON text as Python writes it.
    pub fn dumps(&mut self, text: &str, out: &mut String) {
        Writer::<true>::new(&mut self.open, self.characters, out).value(text);
    }

    /// Appends the object as Python writes it, with only the members whose decoded name `keep` accepts.
    pub fn dumps_members(&mut self, object: &str, keep: impl Fn(&str) -> bool, out: &mut String) {
        Writer::<true>::new(&mut self.open, self.characters, out).chosen(object, keep);
    }
}

/// The open containers.
#[derive(Debug, Default)]
struct Open {
    /// The members read so far of all open objects, the innermost object's last.
    members: Vec<Written>,
    containers: Vec<Container>,
}

#[derive(Debug)]
struct Container {
    is_object: bool,
    /// The index of its first member among all, and the start of its text in the output.
    first: usize,
    start: usize,
    /// One bit for each name so far; equal names have the same bit.
    names: [u64; 4],
    /// True if a name may occur twice.
    may_repeat: bool,
}

/// The range of a member in the output. Equal names are written equally.
#[derive(Clone, Copy, Debug)]
struct Written {
    start: usize,
    name_end: usize,
    end: usize,
}

/// Writes a text, escaped for a string literal if `IN_LITERAL`.
struct Writer<'o, const IN_LITERAL: bool> {
    out: &'o mut String,
    open: &'o mut Open,
    characters: Characters,
    /// True after a value in the open container: a comma comes before the next.
    after_value: bool,
    /// True if the next string is a member's name.
    before_name: bool,
}

impl<'o, const IN_LITERAL: bool> Writer<'o, IN_LITERAL> {
    const QUOTE: &'static str = if IN_LITERAL { "\\\"" } else { "\"" };
    const BACKSLASH: &'static str = if IN_LITERAL { "\\\\" } else { "\\" };

    fn new(open: &'o mut Open, characters: Characters, out: &'o mut String) -> Self {
        open.members.clear();
        open.containers.clear();
        Self { out, open, characters, after_value: false, before_name: false }
    }

    fn value(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            at = match first {
                b'"' if self.before_name => self.name(text, at + 1),
                b'"' => {
                    self.separate();
                    self.after_value = true;
                    self.string(text, at + 1)
                }
                b',' => {
                    self.before_name = self.open.containers.last().is_some_and(|c| c.is_object);
                    at + 1
                }
                b'{' => {
                    self.open('{', true);
                    at + 1
                }
                b'[' => {
                    self.open('[', false);
                    at + 1
                }
                b'}' | b']' => {
                    self.close(char::from(first));
                    at + 1
                }
                b':' => at + 1,
                space if is_space(space) => at + 1,
                _ => {
                    let end = scalar_end(bytes, at + 1);
                    self.scalar(text.get(at..end).unwrap_or_default());
                    end
                }
            };
        }
    }

    fn chosen(&mut self, object: &str, keep: impl Fn(&str) -> bool) {
        self.open('{', true);
        for member in members(object).filter(|member| keep(&decode(member.name))) {
            self.name(member.name, 1);
            self.value(member.value);
        }
        self.close('}');
    }

    fn separate(&mut self) {
        if self.after_value {
            self.out.push_str(", ");
        }
    }

    fn open(&mut self, bracket: char, is_object: bool) {
        self.separate();
        self.out.push(bracket);
        (self.after_value, self.before_name) = (false, is_object);
        let (first, start) = (self.open.members.len(), self.out.len());
        let names = [0; 4];
        self.open.containers.push(Container { is_object, first, start, names, may_repeat: false });
    }

    fn close(&mut self, bracket: char) {
        self.end_member();
        if let Some(container) = self.open.containers.pop() {
            let members = self.open.members.get(container.first..).unwrap_or_default();
            if container.may_repeat && repeats(members, self.out) {
                let once = last_values(members, self.out);
                self.out.truncate(container.start);
                self.out.push_str(&once);
            }
            self.open.members.truncate(container.first);
        }
        self.out.push(bracket);
        (self.after_value, self.before_name) = (true, false);
    }

    /// Writes the name whose inside begins at `at`. Returns the offset after its quote.
    fn name(&mut self, text: &str, at: usize) -> usize {
        self.end_member();
        self.separate();
        let start = self.out.len();
        let end = self.string(text, at);
        let name_end = self.out.len();
        self.out.push_str(": ");
        let member = Written { start, name_end, end: name_end };
        if let Some(container) = self.open.containers.last_mut() {
            let others = self.open.members.get(container.first..).unwrap_or_default();
            container.note(&member, others, self.out);
        }
        self.open.members.push(member);
        (self.after_value, self.before_name) = (false, false);
        end
    }

    /// Completes the current member of the innermost object.
    fn end_member(&mut self) {
        let first = self.open.containers.last().map_or(0, |container| container.first);
        if let Some(member) = self.open.members.get_mut(first..).and_then(<[_]>::last_mut) {
            member.end = self.out.len();
        }
    }

    fn scalar(&mut self, text: &str) {
        self.separate();
        match text.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => push_number(text, self.out),
            _ => self.out.push_str(text),
        }
        self.after_value = true;
    }

    /// Writes the string whose inside begins at `at`. Returns the offset after its quote.
    fn string(&mut self, text: &str, mut at: usize) -> usize {
        self.out.push_str(Self::QUOTE);
        let bytes = text.as_bytes();
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let end =
                at + run_before(rest, |b| !matches!(b, b' '..=b'~') || matches!(b, b'"' | b'\\'));
            self.out.push_str(text.get(at..end).unwrap_or_default());
            at = match bytes.get(end) {
                Some(b'\\') => self.escape(bytes, end + 1),
                Some(b'"') | None => {
                    self.out.push_str(Self::QUOTE);
                    return end + 1;
                }
                Some(_) => self.characters(text, end),
            };
        }
    }

    /// Writes the escape whose letter is at `at`. Returns the offset after the escape.
    fn escape(&mut self, bytes: &[u8], at: usize) -> usize {
        let unit = match bytes.get(at) {
            Some(b'b') => 0x8,
            Some(b'f') => 0xC,
            Some(b'n') => 0xA,
            Some(b'r') => 0xD,
            Some(b't') => 0x9,
            Some(b'u') => return self.escaped_unit(bytes, at + 1),
            Some(itself) => u16::from(*itself),
            None => return at,
        };
        self.unit(unit);
        at + 1
    }

    /// Writes the unit of an escape whose digits are at `at`. Returns the offset after the escape.
    fn escaped_unit(&mut self, bytes: &[u8], at: usize) -> usize {
        let unit = |at: usize| {
            let digits = bytes.get(at..at + 4).unwrap_or_default();
            digits.iter().fold(0, |unit, digit| unit << 4 | hex(*digit))
        };
        let first = unit(at);
        let after = at + 4;
        if self.characters == Characters::Escaped {
            // Each half of a surrogate pair is escaped on its own, as in Python, so pairs need no special case.
            self.unit(first);
            return after;
        }
        let begins_pair = matches!(first, 0xD800..=0xDBFF)
            && bytes.get(after..after + 2).is_some_and(|next| next == b"\\u");
        let low = begins_pair.then(|| unit(after + 2)).filter(|low| matches!(low, 0xDC00..=0xDFFF));
        let after = if low.is_some() { after + 6 } else { after };
        for decoded in char::decode_utf16(iter::once(first).chain(low)) {
            match decoded {
                Ok(character) => self.character(character),
                Err(half) => self.unit(half.unpaired_surrogate()),
            }
        }
        after
    }

    /// Writes the characters from `at` on that Python escapes. Returns the offset of the first other character.
    fn characters(&mut self, text: &str, at: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find(|c| matches!(c, ' '..='~')).unwrap_or(rest.len());
        let characters = rest.get(..end).unwrap_or_default();
        match self.characters {
            Characters::Escaped => characters.encode_utf16().for_each(|unit| self.unit(unit)),
            Characters::Written => characters.chars().for_each(|c| self.character(c)),
        }
        // Always advances, even in invalid text.
        at + end.max(1)
    }

    /// Writes a character, escaped only if it is not printable or has a meaning in JSON.
    fn character(&mut self, character: char) {
        if character.is_ascii() || character.is_control() {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| self.unit(*unit));
        } else {
            self.out.push(character);
        }
    }

    fn unit(&mut self, unit: u16) {
        let ascii = u8::try_from(unit).ok().filter(u8::is_ascii).map(char::from);
        match ascii {
            Some('"') => self.out.extend([Self::BACKSLASH, Self::QUOTE]),
            Some('\\') => self.out.extend([Self::BACKSLASH; 2]),
            Some(itself @ ' '..='~') => self.out.push(itself),
            _ => {
                self.out.push_str(Self::BACKSLASH);
                match ascii.and_then(short_escape) {
                    Some(letter) => self.out.push(letter),
                    None => {
                        let digit = |shift: u16| DIGITS.get(usize::from(unit >> shift & 0xF));
                        let digits =
                            [12, 8, 4, 0].map(|shift| digit(shift).copied().unwrap_or(b'0'));
                        self.out.push('u');
                        self.out.push_str(str::from_utf8(&digits).unwrap_or_default());
                    }
                }
            }
        }
    }
}

fn hex(digit: u8) -> u16 {
    char::from(digit).to_digit(16).and_then(|digit| u16::try_from(digit).ok()).unwrap_or_default()
}

impl Container {
    /// Records a name, and sets `may_repeat` if the name may equal an earlier one.
    fn note(&mut self, member: &Written, others: &[Written], out: &str) {
        let own = name(member, out).as_bytes();
        let middle = own.get(own.len() / 2).copied().unwrap_or_default();
        let last = own.iter().rev().find(|byte| !matches!(byte, b'"' | b'\\')).copied();
        let mixed =
            own.len() * 7 + usize::from(middle) * 31 + usize::from(last.unwrap_or_default());
        let Some(bits) = self.names.get_mut(mixed / 64 % 4) else { return };
        let bit = 1 << (mixed % 64);
        if *bits & bit != 0 && !self.may_repeat {
            let is_own =
                |other: &Written| out.as_bytes().get(other.start..other.name_end) == Some(own);
            self.may_repeat = others.len() > PAIRWISE_MAX || others.iter().any(is_own);
        }
        *bits |= bit;
    }
}

fn name<'t>(member: &Written, out: &'t str) -> &'t str {
    out.get(member.start..member.name_end).unwrap_or_default()
}

fn repeats(members: &[Written], out: &str) -> bool {
    if members.len() > PAIRWISE_MAX {
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        return !members.iter().all(|member| seen.insert(name(member, out)));
    }
    let mut rest = members;
    while let Some((member, others)) = rest.split_first() {
        let name = name(member, out).as_bytes();
        let again = |other: &Written| out.as_bytes().get(other.start..other.name_end) == Some(name);
        if others.iter().any(again) {
            return true;
        }
        rest = others;
    }
    false
}

/// Returns the inside of an object with each name once, at its first place and with its last value.
fn last_values(members: &[Written], out: &str) -> String {
    let mut places = HashMap::with_capacity(members.len());
    let mut once: Vec<(&Written, &Written)> = Vec::with_capacity(members.len());
    for member in members {
        let place = *places.entry(name(member, out)).or_insert(once.len());
        match once.get_mut(place) {
            Some((_, last)) => *last = member,
            None => once.push((member, member)),
        }
    }
    let mut text = String::new();
    for (first, last) in once {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name(first, out));
        text.push_str(out.get(last.name_end..last.end).unwrap_or_default());
    }
    text
}

fn push_number(number: &str, out: &mut String) {
    if number.contains(['.', 'e', 'E']) {
        float::push(number, out);
    } else if number == "-0" {
        out.push('0');
    } else {
        out.push_str(number);
    }
}

#[cfg(test)]
mod tests;
