//! JSON text as `CPython`'s `json.dumps(json.loads(text))` writes it, to the byte, in one pass over the text.
//!
//! The text has passed [`syntax`](crate::board::json::syntax) and [`check`](crate::board::json::check). Of a
//! repeated name the last value stands at the place of the first; the object is put right when it closes.

use std::collections::HashMap;

use crate::board::json::tokens::{Token, Tokens, run_before};
use crate::board::json::{Piece, decode, members, pieces, short_escape};

use super::python_float;

/// Up to this many members, comparing each name with each other beats hashing them.
const PAIRWISE_MAX: usize = 16;

/// Appends what Python writes for this JSON text.
pub fn dumps(text: &str, out: &mut String) {
    Writer::new(out).value(text);
}

/// Appends what Python writes for the list of these JSON texts.
pub fn dumps_list<'a>(items: impl Iterator<Item = &'a str>, out: &mut String) {
    let mut writer = Writer::new(out);
    writer.open('[');
    for item in items {
        writer.value(item);
    }
    writer.close(']');
}

/// Appends what Python writes for this object with only the members whose decoded name is to be kept.
pub fn dumps_members(object: &str, keep: impl Fn(&str) -> bool, out: &mut String) {
    let mut writer = Writer::new(out);
    writer.open_object();
    for member in members(object) {
        if keep(&decode(member.name)) {
            writer.name(member.name);
            writer.value(member.value);
        }
    }
    writer.close_object();
}

/// Appends printable ASCII, such as [`dumps`] writes, as the inside of a JSON string literal.
pub fn escape_into(ascii_json: &str, out: &mut String) {
    let mut rest = ascii_json;
    loop {
        let plain = run_before(rest.as_bytes(), |b| matches!(b, b'"' | b'\\'));
        let (head, tail) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.push_str(head);
        let mut chars = tail.chars();
        let Some(special) = chars.next() else { break };
        out.extend(['\\', special]);
        rest = chars.as_str();
    }
}

struct Writer<'o> {
    out: &'o mut String,
    /// Whether a value has ended in the container that is open, so that a comma comes before the next.
    after_value: bool,
    /// The members so far of every object that is open, the innermost object's last.
    members: Vec<Written>,
    /// Where each open object's members begin in `members`, and its text in `out`.
    objects: Vec<(usize, usize)>,
}

/// Where a member lies in the output. Equal names are written equally.
#[derive(Clone, Copy)]
struct Written {
    start: usize,
    name_end: usize,
    end: usize,
}

impl<'o> Writer<'o> {
    const fn new(out: &'o mut String) -> Self {
        Self { out, after_value: false, members: Vec::new(), objects: Vec::new() }
    }

    fn value(&mut self, text: &str) {
        for (_, token) in Tokens::new(text) {
            match token {
                Token::ObjectOpen => self.open_object(),
                Token::ObjectClose => self.close_object(),
                Token::ArrayOpen => self.open('['),
                Token::ArrayClose => self.close(']'),
                Token::Name(literal) => self.name(literal),
                Token::String(literal) => {
                    self.separate();
                    push_string(literal, self.out);
                    self.after_value = true;
                }
                Token::Number(number) => {
                    self.separate();
                    push_number(number, self.out);
                    self.after_value = true;
                }
                Token::Word(word) => {
                    self.separate();
                    self.out.push_str(word);
                    self.after_value = true;
                }
            }
        }
    }

    fn separate(&mut self) {
        if self.after_value {
            self.out.push_str(", ");
        }
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket);
        self.after_value = false;
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.after_value = true;
    }

    fn open_object(&mut self) {
        self.open('{');
        self.objects.push((self.members.len(), self.out.len()));
    }

    fn name(&mut self, literal: &str) {
        self.end_member();
        self.separate();
        let start = self.out.len();
        push_string(literal, self.out);
        let name_end = self.out.len();
        self.members.push(Written { start, name_end, end: name_end });
        self.out.push_str(": ");
        self.after_value = false;
    }

    fn close_object(&mut self) {
        self.end_member();
        if let Some((first, start)) = self.objects.pop() {
            let members = self.members.get(first..).unwrap_or_default();
            if repeats(members, self.out) {
                let once = last_values(members, self.out);
                self.out.truncate(start);
                self.out.push_str(&once);
            }
            self.members.truncate(first);
        }
        self.close('}');
    }

    /// The member that was being written in the innermost object, if any, has its whole value.
    fn end_member(&mut self) {
        let first = self.objects.last().map_or(0, |(first, _)| *first);
        if let Some(member) = self.members.get_mut(first..).and_then(<[_]>::last_mut) {
            member.end = self.out.len();
        }
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

/// The inside of an object with each name once, where it first stood, and the last of its values.
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
        python_float::push(number, out);
    } else if number == "-0" {
        out.push('0');
    } else {
        out.push_str(number);
    }
}

fn push_string(literal: &str, out: &mut String) {
    out.push('"');
    for piece in pieces(literal) {
        match piece {
            Piece::Plain(text) => push_plain(text, out),
            // Half of a pair stands for itself, as in Python, so that pairs need no care.
            Piece::Unit(unit) => push_unit(unit, out),
        }
    }
    out.push('"');
}

fn push_plain(text: &str, out: &mut String) {
    let mut rest = text;
    while !rest.is_empty() {
        let plain = run_before(rest.as_bytes(), |b| is_special(char::from(b)));
        let (head, tail) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.push_str(head);
        let end = tail.find(|c| !is_special(c)).unwrap_or(tail.len());
        let (special, tail) = tail.split_at_checked(end).unwrap_or((tail, ""));
        for unit in special.encode_utf16() {
            push_unit(unit, out);
        }
        rest = tail;
    }
}

/// Whether Python writes this character as an escape. So it does every byte of one beyond ASCII.
const fn is_special(c: char) -> bool {
    !matches!(c, ' '..='~') || matches!(c, '"' | '\\')
}

fn push_unit(unit: u16, out: &mut String) {
    let ascii = char::from_u32(u32::from(unit)).filter(char::is_ascii);
    if let Some(letter) = ascii.and_then(short_escape) {
        out.extend(['\\', letter]);
    } else if let Some(itself) = ascii.filter(|c| !c.is_ascii_control()) {
        out.push(itself);
    } else {
        let digit = |shift: u32| char::from_digit(u32::from(unit) >> shift & 0xF, 16);
        out.push_str("\\u");
        out.extend([12, 8, 4, 0].into_iter().filter_map(digit));
    }
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod tests;
