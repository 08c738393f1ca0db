//! Folded texts: without case, accents and forms of writing, by Unicode's own tables, and with gaps between words that no
//! space separates.
//!
//! Texts and queries are folded before they reach SQLite's tokenizer, whose own folding knows Latin best. Each part of a folded
//! text remembers its place in the original, which a snippet shows.

use std::ops::Range;

use caseless::Caseless as _;
use exact_json::tokens::run_before;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// Separates characters that are words of their own.
pub(super) const GAP: char = '\u{200B}';

/// A text as it is searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Folded {
    pub(super) text: String,
    /// The places of its parts, ascending.
    parts: Vec<Part>,
}

/// A part of a folded text in the original: a run of characters that are the same in both, or what one character, with the
/// marks on it, became.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Where it begins in the folded text.
    at: u32,
    /// The number of bytes that are the same in the original; 0 if they are not.
    same: u32,
    /// Its bytes in the original, with those that folding removes behind it.
    from: u32,
    to: u32,
}

/// Returns the folded text.
pub(super) fn folded(text: &str) -> String {
    let mut folding = Folding { keeps_places: false, ..Folding::default() };
    folding.add_all(text);
    folding.folded.text
}

/// Returns a query's term folded, and whether its last word is only the beginning of one.
///
/// In Korean, particles follow a word without a space, so that words are indexed by pairs of syllables. The last syllable of
/// a term may be followed by more.
pub(super) fn folded_term(text: &str) -> (String, bool) {
    let mut text = folded(text);
    let end = text.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
    if !text[..end].ends_with(is_syllable) {
        return (text, false);
    }
    text.truncate(end);
    let mut before = text.chars().rev().skip(1);
    let is_in_pair = before.next() == Some(GAP) && before.next().is_some_and(is_syllable);
    if is_in_pair {
        text.pop();
    }
    (text, !is_in_pair)
}

/// Returns true for a character of a script that has no spaces between words: each is indexed as a word, and several
/// in a query are a phrase.
const fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}' // iteration marks of Chinese characters
        | '\u{3040}'..='\u{312F}' // Hiragana, Katakana, Bopomofo
        | '\u{31A0}'..='\u{31BF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Chinese characters
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Returns true for a character that may be searched by itself.
pub(super) const fn is_word_alone(c: char) -> bool {
    stands_alone(c) || is_syllable(c)
}

/// Returns true for a syllable of Korean. Words are indexed by pairs of them, and by the last one.
const fn is_syllable(c: char) -> bool {
    matches!(c, '\u{AC00}'..='\u{D7A3}')
}

/// Returns true for a character that is part of no word.
pub(super) fn is_between_words(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_punctuation() || c == GAP
}

/// Returns true for a sign, which is part of no word. The tokenizer takes signs that are newer than its tables for letters.
fn is_sign(c: char) -> bool {
    let is_private = matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}');
    !c.is_alphanumeric() && !is_combining_mark(c) && !is_private
}

/// Returns true for one sign outside of ASCII.
fn is_one_sign(letter: &str) -> bool {
    let mut chars = letter.chars();
    chars.next().is_some_and(|c| !c.is_ascii() && is_sign(c)) && chars.next().is_none()
}

/// Returns true for a character that folding surely leaves as it is. It is looked up in no table of Unicode's.
const fn is_folded(c: char) -> bool {
    is_syllable(c)
        || matches!(c,
            '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Chinese characters
            | '–'..='―' | '‘'..='•' | '₩'..='₹' // dashes, quotation marks, currencies
            | 'а'..='и' | 'к'..='я' // Cyrillic
            | 'α'..='ρ' | 'σ'..='ω' // Greek
            | '\u{5D0}'..='\u{5EA}' // Hebrew
            | '\u{627}'..='\u{63A}' | '\u{641}'..='\u{64A}' // Arabic
            | '\u{904}'..='\u{928}' | '\u{92A}'..='\u{930}' | '\u{935}'..='\u{939}' | '\u{93E}'..='\u{94C}' // Devanagari
            | '\u{E01}'..='\u{E32}' | '\u{E34}'..='\u{E37}' | '\u{E40}'..='\u{E46}' // Thai
            | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}') // Hiragana, Katakana
}

/// Returns true for a text in which folding changes at most control characters.
pub(super) fn is_plain(text: &str) -> bool {
    let mut rest = text;
    loop {
        let ascii = run_before(rest.as_bytes(), |byte| !byte.is_ascii());
        let mut chars = rest[ascii..].chars();
        match chars.next() {
            Some(c) if is_folded(c) && !is_word_alone(c) => rest = chars.as_str(),
            other => return other.is_none(),
        }
    }
}

/// Returns true for a character that belongs to the one before it.
fn goes_on(c: char) -> bool {
    match c {
        '\u{0}'..='\u{2FF}' => false,
        // Vowels and final consonants of Korean; marks of half width on Katakana.
        '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FB}' | '\u{FF9E}' | '\u{FF9F}' => true,
        other => canonical_combining_class(other) != 0,
    }
}

/// Returns true for a character of no meaning of its own: hints for joining, hyphenation, direction and variants of glyphs, and
/// what stretches an Arabic word.
const fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{640}' | '\u{180B}'..='\u{180F}' | '\u{200C}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{E0100}'..='\u{E01EF}')
}

/// Returns true for a mark that a reader of the script passes over: an accent, a point of Hebrew, a vowel of Arabic.
///
/// The class tells them from marks that are parts of letters, which have classes of their own: vowels and viramas of India,
/// tones of Thai, voicing of Kana.
const fn is_accent(base: char, mark: char, class: u8) -> bool {
    match mark {
        // й is a letter of its own, and so are ؤ and ئ.
        '\u{306}' => !matches!(base, 'и' | 'И'),
        '\u{654}' => !matches!(base, 'و' | 'ي' | 'ی' | 'ى'),
        _ => matches!(class, 1 | 10..=36 | 200..=240),
    }
}

/// Returns the letter without a stroke, which Unicode does not take apart. Without its dot, i is the same letter in capitals.
const fn without_stroke(c: char) -> char {
    match c {
        'đ' => 'd',
        'ħ' => 'h',
        'ı' => 'i',
        'ł' => 'l',
        'ø' => 'o',
        'ŧ' => 't',
        other => other,
    }
}

/// A text that is being folded.
struct Folding {
    folded: Folded,
    keeps_places: bool,
    /// The last character that is no mark.
    base: char,
    /// One character with its marks, taken apart, then without case.
    apart: String,
    letter: String,
}

impl Default for Folding {
    fn default() -> Self {
        let (apart, letter) = (String::new(), String::new());
        Self { folded: Folded::default(), keeps_places: true, base: ' ', apart, letter }
    }
}

impl Folding {
    fn add_all(&mut self, text: &str) {
        self.folded.text.reserve(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let same = run_before(rest.as_bytes(), |byte| !byte.is_ascii());
            if same > 0 {
                self.add_ascii(&rest[..same], at);
                at += same;
                continue;
            }
            let mut after = rest.char_indices().skip(1).skip_while(|(_, c)| goes_on(*c));
            let end = after.next().map_or(rest.len(), |(end, _)| end);
            self.add_letter(&rest[..end], at..at + end);
            at += end;
        }
    }

    /// Adds ASCII as it is; the tokenizer knows its case.
    fn add_ascii(&mut self, text: &str, at: usize) {
        if self.folded.text.ends_with(is_syllable) {
            self.gap();
        }
        self.begin(at..at + text.len(), text.len());
        if run_before(text.as_bytes(), |byte| byte.is_ascii_control()) < text.len() {
            let without = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            self.folded.text.extend(without);
        } else {
            self.folded.text.push_str(text);
        }
        self.base = ' ';
    }

    /// Adds one character with the marks on it.
    fn add_letter(&mut self, text: &str, from: Range<usize>) {
        let mut chars = text.chars();
        let Some(first) = chars.next() else { return };
        if is_folded(first) && chars.next().is_none() {
            self.base = first;
            return self.put(first, &from);
        }
        if first.is_control() {
            return self.put(' ', &from);
        }
        // In Persian it separates a word from its endings; elsewhere it separates glyphs.
        if first == '\u{200C}' && matches!(self.base, '\u{600}'..='\u{6FF}') {
            return self.put(' ', &from);
        }
        self.take_apart(text);
        if is_one_sign(&self.letter) {
            return self.put(' ', &from);
        }
        // "5™" is two words, and so is "1½"; "5㎏" is one, as "5kg" is. A mark is on the letter before it.
        let is_symbol = |first: char| {
            !first.is_alphanumeric()
                && canonical_combining_class(first) == 0
                && !matches!(first, '\u{3371}'..='\u{33FF}')
        };
        let is_same = self.letter.strip_prefix(first) == Some("");
        let is_word = !is_same
            && (self.letter.contains('\u{2044}')
                || is_symbol(first) && self.letter.contains(char::is_alphanumeric));
        if is_word {
            self.gap();
        }
        let letter = std::mem::take(&mut self.letter);
        for c in letter.chars() {
            self.put(c, &from);
        }
        if is_word {
            self.gap();
        }
        if letter.is_empty()
            && let Some(part) = self.folded.parts.last_mut()
        {
            part.to = short(from.end);
        }
        self.letter = letter;
    }

    /// Takes a character with its marks apart, and removes accents and case.
    fn take_apart(&mut self, text: &str) {
        self.apart.clear();
        self.letter.clear();
        for c in text.nfkd().filter(|c| !is_ignored(*c)) {
            let class = canonical_combining_class(c);
            if class == 0 {
                self.base = c;
            } else if is_accent(self.base, c, class) {
                continue;
            }
            self.apart.push(c);
        }
        let folded = self.apart.chars().default_case_fold().map(without_stroke);
        // These are put together again, since each is a word or half of one.
        if self
            .apart
            .starts_with(|c| matches!(c, '\u{1100}'..='\u{11FF}' | '\u{3040}'..='\u{30FF}'))
        {
            self.letter.extend(folded.nfc());
        } else {
            self.letter.extend(folded);
        }
    }

    /// Adds a character that is folded.
    fn put(&mut self, c: char, from: &Range<usize>) {
        let is_after_syllable = self.folded.text.ends_with(is_syllable);
        if is_syllable(c) {
            if is_after_syllable {
                // The end of a pair, and the beginning of the next one.
                self.begin(from.clone(), 0);
                self.folded.text.push(c);
            }
            self.gap();
            self.begin(from.clone(), 0);
            self.folded.text.push(c);
        } else if stands_alone(c) {
            self.gap();
            self.begin(from.clone(), 0);
            self.folded.text.extend([c, GAP]);
        } else {
            if is_after_syllable {
                self.gap();
            }
            self.begin(from.clone(), 0);
            self.folded.text.push(c);
        }
    }

    fn gap(&mut self) {
        if !self.folded.text.is_empty() && !self.folded.text.ends_with(GAP) {
            self.folded.text.push(GAP);
        }
    }

    /// Notes the place of what is added next.
    fn begin(&mut self, from: Range<usize>, same: usize) {
        if self.keeps_places {
            let (at, same) = (short(self.folded.text.len()), short(same));
            self.folded.parts.push(Part { at, same, from: short(from.start), to: short(from.end) });
        }
    }
}

/// No text is longer.
fn short(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Folded {
    pub(super) fn of(text: &str) -> Self {
        let mut folding = Folding::default();
        folding.add_all(text);
        folding.folded
    }

    /// Returns the bytes of the original that some bytes of the folded text, at least one, come from.
    pub(super) fn original(&self, Range { start, end }: &Range<usize>) -> Range<usize> {
        let part = |at: usize| {
            let next = self.parts.partition_point(|part| part.at as usize <= at);
            self.parts.get(next.saturating_sub(1))
        };
        let first = part(*start).map_or(0, |part| {
            let within = start.saturating_sub(part.at as usize).min(part.same as usize);
            part.from as usize + within
        });
        let last = part(end.saturating_sub(1)).map_or(first, |part| {
            let within = end.saturating_sub(part.at as usize);
            let is_within = within < part.same as usize;
            if is_within { part.from as usize + within } else { part.to as usize }
        });
        first..last.max(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_without_spaces_have_gaps() {
        let with_gaps = |text: &str| folded(text).replace(GAP, "|");
        assert_eq!(with_gaps("a日本b\u{2}"), "a|日|本|b ");
        assert_eq!(with_gaps("게임을 했다"), "게임|임을|을| |했다|다");
        assert_eq!(with_gaps("a게b"), "a|게|b");
        assert_eq!(with_gaps("Windows™ 5㎏ 1½"), "Windows|tm| 5kg 1|1⁄2|");
    }

    #[test]
    fn signs_are_parts_of_no_word() {
        // The last of them are newer than the tokenizer's tables.
        for sign in "✅🚀👍😀€🤖🙂🟢🫡🟰🗑🛠⏸₽₿₺🏽".chars() {
            let text = format!("done{sign}100 {sign} {sign}go");
            assert_eq!(words_of(&text), ["done", "100", "go"], "{text}");
        }
        let private = "a\u{E000}b";
        assert_eq!(words_of(private), [private]);
    }

    fn words_of(text: &str) -> Vec<String> {
        let words = crate::words::Words::new().unwrap().of(text).unwrap();
        words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn a_term_in_korean_may_go_on() {
        let term = |text: &str| {
            let (text, goes_on) = folded_term(text);
            (text.replace(GAP, "|"), goes_on)
        };
        assert_eq!(term("게임"), ("게임|".to_owned(), false));
        assert_eq!(term("게임을!"), ("게임|임을|".to_owned(), false));
        assert_eq!(term("집"), ("집".to_owned(), true));
        assert_eq!(term("내 집."), ("내| |집".to_owned(), true));
        assert_eq!(term("disk!"), ("disk!".to_owned(), false));
    }

    #[test]
    fn folded_bytes_have_their_place_in_the_original() {
        let text = "a cafe\u{301} Straße 게임을 日";
        let folded = Folded::of(text);
        let of = |part: &str| {
            let at = folded.text.find(part).unwrap();
            &text[folded.original(&(at..at + part.len()))]
        };
        assert_eq!(of("cafe"), "cafe\u{301}");
        assert_eq!(of("caf"), "caf");
        assert_eq!(of("Strasse"), "Straße");
        assert_eq!(of("게임"), "게임");
        assert_eq!(of("임을"), "임을");
        assert_eq!(of("日"), "日");
        assert_eq!(folded.original(&(0..folded.text.len())), 0..text.len());
    }

    #[test]
    fn characters_that_are_folded_stay_as_they_are() {
        for c in ('\u{80}'..=char::MAX).filter(|c| is_folded(*c)) {
            let mut folding = Folding::default();
            folding.take_apart(&c.to_string());
            assert_eq!(folding.letter, c.to_string());
            // Of these the base is another one, which no accent asks for.
            assert!(folding.base == c || is_syllable(c) || matches!(c, '\u{3041}'..='\u{30FA}'));
            assert!(!c.is_control() && !goes_on(c));
        }
    }

    /// Characters that folding leaves as they are, and some that it does not.
    const MIXED: &str =
        "[ -~€“”’–…«а-яα-ωא-תآ-ي\\u{904}-\\u{94D}ก-ูア日가é\\u{200C}\\u{1}\\u{7F}\\u{301}]{0,12}";

    proptest! {
        #[test]
        fn normal_forms_of_a_text_fold_to_one(text in "[\\PCa-zé가-힣ㄱ-ㅎ\\u{300}-\\u{345}\\u{1100}-\\u{11FF}]{0,24}") {
            // The tokenizer folds the case of ASCII.
            let form = |text: String| folded(&text).to_ascii_lowercase();
            let one = form(text.nfc().collect());
            prop_assert_eq!(&form(text.nfd().collect()), &one);
        }

        #[test]
        fn a_plain_text_changes_its_control_characters_alone(text in MIXED) {
            let without_control = text.replace(char::is_control, " ");
            prop_assert!(!is_plain(&text) || folded(&text) == without_control);
        }

        #[test]
        fn every_part_of_a_folded_text_is_in_the_original(text in "\\PC{0,24}") {
            let folded = Folded::of(&text);
            let mut before = 0;
            for (at, c) in folded.text.char_indices() {
                let place = folded.original(&(at..at + c.len_utf8()));
                prop_assert!(text.get(place.clone()).is_some(), "{:?} of {:?}", place, text);
                prop_assert!(before <= place.end);
                before = place.end;
            }
        }
    }
}
