//! Texts that are indexed: the strings and numbers of JSON.

use exact_json::Kind;

/// The maximum length of a text that is indexed, in bytes. Further text is not found.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

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
}
