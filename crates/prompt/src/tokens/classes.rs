//! Classes of characters: what a text consists of, as far as tokenizers care.
//!
//! Tokenizers cut a text into words, numbers, signs and spaces, and each of these into the pieces that they know. How
//! many pieces depends on the length of a word, on its letters (rare ones stand for other languages than English) and on
//! its script. Each class counts one such thing; a family of tokenizers has a weight for each class.

use super::script::{SCRIPTS, Script};

/// Words of one letter to this many have a class each; longer ones have that of the longest.
pub const WORD_LENGTHS: usize = 11;
/// Runs of one digit or sign to this many have a class each.
pub const RUN_LENGTHS: usize = 4;
/// The letters of ASCII.
pub const LETTERS: usize = 26;

/// The mean length of the pieces below which a word of letters, digits and capitals is taken for random characters.
const PIECE_LENGTH_MIN: f64 = 2.6;
/// The fewest pieces of such a word.
const PIECES_MIN: usize = 3;

/// The classes. Those of several members stand one after the other from their first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Class {
    /// Words of ASCII letters, by length.
    Word = 0,
    /// The letters of a word beyond the longest.
    WordRest = WORD_LENGTHS,
    /// The letters of words, from a to z.
    Letter,
    /// Words that end with a vowel other than e.
    VowelEnd = Class::Letter as usize + LETTERS,
    /// Words in capitals.
    Capitals,
    /// Their letters.
    CapitalLetters,
    /// Words with a Latin letter beyond ASCII.
    Accented,
    /// Their characters.
    AccentedLetters,
    /// Runs of random characters, such as hashes.
    Random,
    /// Their pieces.
    RandomPieces,
    /// Their characters.
    RandomCharacters,
    /// Their digits.
    RandomDigits,
    /// Numbers, by length.
    Number,
    /// Their digits in threes.
    NumberThrees = Class::Number as usize + RUN_LENGTHS,
    /// Their digits.
    NumberDigits,
    /// Line feeds with the white space after them.
    Line,
    /// The characters of that white space.
    Indent,
    /// Single spaces.
    Space,
    /// Runs of several spaces.
    Spaces,
    /// The spaces of a run beyond the second.
    SpacesRest,
    /// Runs of ASCII signs, by length.
    Signs,
    /// The signs of a run beyond the longest.
    SignsRest = Class::Signs as usize + RUN_LENGTHS,
    /// Runs of one sign.
    Repeated,
    /// Their signs.
    RepeatedSigns,
    /// Characters beyond ASCII, by script.
    Script,
    /// Runs of characters of one script.
    ScriptRun = Class::Script as usize + SCRIPTS,
    /// Escaped characters such as `\u00e9`, by script.
    Escape = Class::ScriptRun as usize + SCRIPTS,
}

/// The number of classes.
pub const CLASSES: usize = Class::Escape as usize + SCRIPTS;

/// The counts of a text, by class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub [u32; CLASSES]);

impl Counts {
    /// Counts a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut counts = Self([0; CLASSES]);
        let (mut rest, mut before) = (text, None);
        while let Some(first) = rest.chars().next() {
            let (length, script) = counts.take(rest, first, before);
            before = script;
            rest = rest.get(length..).unwrap_or_default();
        }
        counts
    }

    #[inline]
    fn add(&mut self, class: Class, member: usize, count: usize) {
        if let Some(place) = self.0.get_mut(class as usize + member) {
            *place = place.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Counts the first run of a text. Returns its length, and its script if it is beyond ASCII.
    fn take(&mut self, rest: &str, first: char, before: Option<Script>) -> (usize, Option<Script>) {
        let bytes = rest.as_bytes();
        if let Some(code) = escaped(bytes) {
            self.add(Class::Escape, Script::of_code(code) as usize, 1);
            return (6, None);
        }
        let length = match first {
            'a'..='z' | 'A'..='Z' | '0'..='9' => self.word(rest),
            '\n' => {
                let length = run(bytes, |byte| matches!(byte, b'\n' | b'\r' | b'\t' | b' '));
                self.add(Class::Line, 0, 1);
                self.add(Class::Indent, 0, length - 1);
                length
            }
            ' ' | '\t' | '\r' => self.spaces(bytes),
            _ if first.is_ascii_punctuation() => self.signs(bytes),
            _ if is_latin(first) => self.word(rest),
            _ => {
                let script = Script::of(first);
                self.add(Class::Script, script as usize, 1);
                if before != Some(script) {
                    self.add(Class::ScriptRun, script as usize, 1);
                }
                return (first.len_utf8(), Some(script));
            }
        };
        (length, None)
    }

    fn spaces(&mut self, bytes: &[u8]) -> usize {
        let length = run(bytes, |byte| matches!(byte, b' ' | b'\t' | b'\r'));
        if length == 1 {
            self.add(Class::Space, 0, 1);
        } else {
            self.add(Class::Spaces, 0, 1);
            self.add(Class::SpacesRest, 0, length - 2);
        }
        length
    }

    /// Counts a run of signs, which ends before an escape.
    fn signs(&mut self, bytes: &[u8]) -> usize {
        let mut length = 1;
        while let Some(rest) = bytes.get(length..) {
            let Some(sign) = rest.first().filter(|byte| byte.is_ascii_punctuation()) else { break };
            let begins = *sign == b'\\' && bytes.get(length - 1) != Some(&b'\\');
            if begins && escaped(rest).is_some() {
                break;
            }
            length += 1;
        }
        let signs = bytes.get(..length).unwrap_or_default();
        if length >= RUN_LENGTHS && signs.iter().all(|sign| Some(sign) == signs.first()) {
            self.add(Class::Repeated, 0, 1);
            self.add(Class::RepeatedSigns, 0, length);
        } else {
            self.add(Class::Signs, length.min(RUN_LENGTHS) - 1, 1);
            self.add(Class::SignsRest, 0, length.saturating_sub(RUN_LENGTHS));
        }
        length
    }

    /// Counts a run of letters and digits.
    fn word(&mut self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        let small = run(bytes.get(1..).unwrap_or_default(), |byte| byte.is_ascii_lowercase());
        let (piece, after) = bytes.split_at_checked(1 + small).unwrap_or((bytes, &[]));
        let ends =
            after.first().is_none_or(|next| next.is_ascii() && !next.is_ascii_alphanumeric());
        if ends && piece.first().is_some_and(u8::is_ascii_alphabetic) {
            // Most words are one piece.
            self.piece(piece);
            return piece.len();
        }
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !is_latin(c) && !is_mark(c))
            .unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        if !word.is_ascii() {
            self.accented(word);
            return length;
        }
        let word = word.as_bytes();
        let count = pieces(word).count();
        let has_digit = word.iter().any(u8::is_ascii_digit);
        let is_short = (length as f64) < PIECE_LENGTH_MIN * count as f64;
        if count >= PIECES_MIN && (has_digit || is_short) {
            self.add(Class::Random, 0, 1);
            self.add(Class::RandomPieces, 0, count);
            self.add(Class::RandomCharacters, 0, length);
            self.add(Class::RandomDigits, 0, word.iter().filter(|b| b.is_ascii_digit()).count());
            return length;
        }
        for piece in pieces(word) {
            self.piece(piece);
        }
        length
    }

    fn accented(&mut self, word: &str) {
        self.add(Class::Accented, 0, 1);
        for c in word.chars() {
            self.add(Class::AccentedLetters, 0, 1);
            if c.is_ascii() {
                self.letters(&[c as u8]);
            } else {
                self.add(Class::Script, Script::of(c) as usize, 1);
            }
        }
    }

    /// Counts letters of ASCII.
    fn letters(&mut self, letters: &[u8]) {
        let first = Class::Letter as usize;
        let Some(counts) = self.0.get_mut(first..first + LETTERS) else { return };
        for letter in letters {
            let index = usize::from((letter | 0x20).wrapping_sub(b'a'));
            if let Some(count) = counts.get_mut(index) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Counts digits, capitals or a word.
    fn piece(&mut self, piece: &[u8]) {
        let length = piece.len();
        match *piece {
            [b'0'..=b'9', ..] => {
                self.add(Class::Number, length.min(RUN_LENGTHS) - 1, 1);
                self.add(Class::NumberThrees, 0, length.div_ceil(3));
                self.add(Class::NumberDigits, 0, length);
            }
            [b'A'..=b'Z', b'A'..=b'Z', ..] => {
                self.add(Class::Capitals, 0, 1);
                self.add(Class::CapitalLetters, 0, length);
            }
            _ => {
                self.add(Class::Word, length.min(WORD_LENGTHS) - 1, 1);
                self.add(Class::WordRest, 0, length.saturating_sub(WORD_LENGTHS));
                self.letters(piece);
                if length >= 4 && piece.last().is_some_and(|last| b"aiou".contains(last)) {
                    self.add(Class::VowelEnd, 0, 1);
                }
            }
        }
    }
}

/// Splits a word into digits, capitals, and words with or without a capital before them: `HTTPServer2` into `HTTP`,
/// `Server` and `2`.
fn pieces(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let capitals = run(rest, |byte| byte.is_ascii_uppercase());
        let small = run(rest.get(capitals..)?, |byte| byte.is_ascii_lowercase());
        let length = match (capitals, small) {
            (0, 0) => run(rest, |byte| byte.is_ascii_digit()),
            (0 | 1, small) => capitals + small,
            (capitals, 0) => capitals,
            (capitals, _) => capitals - 1,
        };
        let (piece, after) = rest.split_at_checked(length)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the number of bytes at the beginning for which `is` holds.
fn run(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is(*byte)).unwrap_or(bytes.len())
}

/// Returns the code of an escape such as `\u00e9` at the beginning.
fn escaped(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    let digits = str::from_utf8(digits).ok()?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns true for a Latin letter beyond ASCII.
const fn is_latin(c: char) -> bool {
    matches!(c, '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}')
}

/// Returns true for a combining mark.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}')
}
