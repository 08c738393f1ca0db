//! Documents on one line, for formats with one document a line.

use std::borrow::Cow;

use super::tokens::run_before;

/// Returns the text without line breaks and the white space after each. Borrowed if it is on one line already.
///
/// JSON strings contain no line breaks, so no value changes.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    let end = run_before(text.as_bytes(), |byte| matches!(byte, b'\n' | b'\r'));
    let Some((first, rest)) = text.split_at_checked(end).filter(|(_, rest)| !rest.is_empty())
    else {
        return Cow::Borrowed(text);
    };
    let mut line = String::with_capacity(text.len());
    line.push_str(first);
    for part in rest.split(['\n', '\r']) {
        line.push_str(part.trim_start_matches([' ', '\t']));
    }
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
