//! Documents on one line, for formats with one document a line.

use std::borrow::Cow;

use memchr::memchr2;

use super::tokens::skip;

/// Returns the text without line breaks and the white space after each. Borrowed if it is on one line already.
///
/// JSON strings contain no line breaks, so no value changes.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut line = String::new();
    while let Some(end) = memchr2(b'\n', b'\r', rest.as_bytes()) {
        line.reserve(rest.len());
        line.push_str(rest.get(..end).unwrap_or_default());
        let next = skip(rest.as_bytes(), end + 1, |byte| matches!(byte, b' ' | b'\t'));
        rest = rest.get(next..).unwrap_or_default();
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    line.push_str(rest);
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_on_one_line_is_borrowed() {
        let text = r#"{"a": "x\ny",  "b": [1, 2]}"#;
        assert!(matches!(one_line(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn line_breaks_go_with_the_white_space_after_them() {
        let text = "{\r\n  \"a\" : [ 1 ,\t2 ] ,\n\n\t \"b\":{ \"c\" : null }\r}";
        assert_eq!(one_line(text), "{\"a\" : [ 1 ,\t2 ] ,\"b\":{ \"c\" : null }}");
        assert_eq!(one_line("\n[\n]\n"), "[]");
    }
}
