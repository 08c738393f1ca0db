//! Texts as they are indexed: the strings and numbers of JSON, and words of scripts without spaces.

use exact_json::Kind;

/// The maximum length of a text that is indexed, in bytes. Further text is not found.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// Separates characters that are words of their own. It is invisible, and is removed from snippets.
pub(super) const GAP: char = '\u{200B}';

/// Returns true for a character of a script that has no spaces between words: each is indexed as a word, and several
/// in a query are a phrase.
pub(super) const fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}' // iteration marks of Chinese characters
        | '\u{3040}'..='\u{312F}' // Hiragana, Katakana, Bopomofo
        | '\u{31A0}'..='\u{31BF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Chinese characters
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' // Katakana of half width
        | '\u{20000}'..='\u{3FFFF}')
}

/// Returns the text with gaps around each character that is a word of its own, and without control characters.
pub(super) fn segmented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() || stands_alone(c)) {
        out.push_str(&rest[..at]);
        let mut after = rest[at..].chars();
        match after.next() {
            Some(c) if stands_alone(c) => {
                if !out.ends_with(GAP) {
                    out.push(GAP);
                }
                out.extend([c, GAP]);
            }
            Some(_) | None => out.push(' '),
        }
        rest = after.as_str();
    }
    out.push_str(rest);
    out
}

/// Adds the strings and numbers of a JSON value to `out`, one per line, as far as [`TEXT_BYTES_MAX`] allows. Names of
/// members are left out: every item of a log has the same ones.
pub fn text_of(value: &str, out: &mut String) {
    match exact_json::kind(value) {
        Kind::Object => exact_json::members(value).for_each(|member| text_of(member.value, out)),
        Kind::Array => exact_json::elements(value).for_each(|element| text_of(element, out)),
        Kind::String => add(&exact_json::decode(value), out),
        Kind::Number => add(value.trim(), out),
        Kind::Bool | Kind::Null => {}
    }
}

fn add(text: &str, out: &mut String) {
    let room = TEXT_BYTES_MAX.saturating_sub(out.len() + 1);
    if text.is_empty() || room == 0 {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let end = text.floor_char_boundary(room.min(text.len()));
    out.push_str(&text[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        let mut out = String::new();
        text_of(value, &mut out);
        out
    }

    #[test]
    fn a_text_is_its_strings_and_numbers() {
        let value = r#" {"a": "x \"y\"\n", "b": [1.50, true, null, {"c":"\u65e5"}], "a": ""} "#;
        assert_eq!(text(value), "x \"y\"\n\n1.50\n日");
        assert_eq!(text("null"), "");
    }

    #[test]
    fn a_text_ends_at_its_bound() {
        let value = format!("[\"a\",\"{}\",\"z\"]", "é".repeat(TEXT_BYTES_MAX));
        let text = text(&value);
        assert!((TEXT_BYTES_MAX - 2..=TEXT_BYTES_MAX).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn characters_without_spaces_stand_alone() {
        assert_eq!(segmented("a日本b\u{2}"), "a\u{200b}日\u{200b}本\u{200b}b ");
    }
}
