//! JSON pointers (RFC 6901): paths into a document, for patches and errors.

use std::borrow::Cow;

/// Appends one reference token.
pub(super) fn push(name: &str, pointer: &mut String) {
    pointer.push('/');
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Parses a pointer into names. `None` if it is not a pointer.
pub(super) fn parse(pointer: &str) -> Option<Vec<Cow<'_, str>>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    pointer.strip_prefix('/')?.split('/').map(token).collect()
}

fn token(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('~') {
        return Some(Cow::Borrowed(text));
    }
    let mut name = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(Cow::Owned(name))
}

/// Parses a reference token as an array index: digits without a leading zero.
pub(super) fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = token.len() > 1 && token.starts_with('0');
    if !digits || leading_zero {
        return None;
    }
    token.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_read_as_it_was_written() {
        let names = ["", "a/b", "m~n", "~1", "é", "0"];
        let mut pointer = String::new();
        for name in names {
            push(name, &mut pointer);
        }
        assert_eq!(pointer, "//a~1b/m~0n/~01/é/0");
        assert_eq!(parse(&pointer).unwrap(), names);
        assert_eq!(parse("").unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in ["a", "a/b", "/~", "/a~2", "/~01/~x", "#/a"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_index_has_no_leading_zero_and_no_sign() {
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("10"), Some(10));
        for text in ["", "00", "01", "-1", "+1", "1e0", "-", "٣", "99999999999999999999"] {
            assert_eq!(index(text), None, "{text}");
        }
    }
}
