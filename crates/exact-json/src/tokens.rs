//! Tokens of checked JSON text, with their offsets.
//!
//! Nothing recurses or allocates. Text that is not JSON yields some tokens and then ends.

/// A token of a document. Commas and colons are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{`.
    ObjectOpen,
    /// `}`.
    ObjectClose,
    /// `[`.
    ArrayOpen,
    /// `]`.
    ArrayClose,
    /// A member's name as written, with its quotes.
    Name(&'a str),
    /// A string value as written, with its quotes.
    String(&'a str),
    /// A number as written.
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word(&'a str),
}

/// The tokens of a text with the offset of each.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Creates an iterator over the tokens of this text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = skip(bytes, self.at, |b| is_space(b) || matches!(b, b',' | b':'));
        let first = *bytes.get(start)?;
        let end = match first {
            b'{' | b'}' | b'[' | b']' => start + 1,
            _ => value_end(bytes, start),
        };
        self.at = end;
        let text = self.text.get(start..end)?;
        let token = match first {
            b'{' => Token::ObjectOpen,
            b'}' => Token::ObjectClose,
            b'[' => Token::ArrayOpen,
            b']' => Token::ArrayClose,
            b'"' if bytes.get(skip(bytes, end, is_space)) == Some(&b':') => Token::Name(text),
            b'"' => Token::String(text),
            b'-' | b'0'..=b'9' => Token::Number(text),
            _ => Token::Word(text),
        };
        Some((start, token))
    }
}

/// Returns true if this byte is white space in JSON.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns the first offset from `at` on whose byte does not match.
pub(crate) fn skip(bytes: &[u8], at: usize, these: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|&&b| these(b)).count()
}

/// Counts the bytes before the first match, sixteen at a time, so that the compiler vectorizes the loop.
#[inline]
pub fn run_before(bytes: &[u8], these: impl Fn(u8) -> bool) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let clean = |block: &&[u8; 16]| !block.iter().fold(false, |any, &b| any | these(b));
    let whole = 16 * blocks.iter().take_while(clean).count();
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|&&b| !these(b)).count()
}

/// Returns the end of the value at `at`, always beyond `at` and within the bytes.
pub(crate) fn value_end(bytes: &[u8], at: usize) -> usize {
    let end = match bytes.get(at) {
        Some(b'"') => string_end(bytes, at + 1),
        Some(b'{' | b'[') => container_end(bytes, at + 1),
        _ => scalar_end(bytes, at + 1),
    };
    end.min(bytes.len())
}

/// Returns the end of the string whose first character is at `at`, after its closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at += run_before(bytes.get(at..).unwrap_or_default(), |b| matches!(b, b'"' | b'\\'));
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            _ => return at + 1,
        }
    }
}

/// Returns the end of the object or array opened just before `at`.
fn container_end(bytes: &[u8], mut at: usize) -> usize {
    let mut open = 1_usize;
    while open > 0 {
        at += run_before(bytes.get(at..).unwrap_or_default(), |b| {
            matches!(b, b'"' | b'{' | b'}' | b'[' | b']')
        });
        at += 1;
        match bytes.get(at - 1) {
            Some(b'"') => at = string_end(bytes, at),
            Some(b'{' | b'[') => open += 1,
            Some(_) => open -= 1,
            None => break,
        }
    }
    at
}

/// Returns the end of the number or word that continues at `at`.
pub(crate) fn scalar_end(bytes: &[u8], at: usize) -> usize {
    skip(bytes, at, |b| {
        !is_space(b) && !matches!(b, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_run_of_tokens() {
        let text = r#" {"a" : [1,-2.5e3 ,"x\"}"], "b":{"c":null}, "d":true} "#;
        let tokens: Vec<_> = Tokens::new(text).map(|(_, token)| token).collect();
        assert_eq!(
            tokens,
            [
                Token::ObjectOpen,
                Token::Name("\"a\""),
                Token::ArrayOpen,
                Token::Number("1"),
                Token::Number("-2.5e3"),
                Token::String(r#""x\"}""#),
                Token::ArrayClose,
                Token::Name("\"b\""),
                Token::ObjectOpen,
                Token::Name("\"c\""),
                Token::Word("null"),
                Token::ObjectClose,
                Token::Name("\"d\""),
                Token::Word("true"),
                Token::ObjectClose,
            ]
        );
    }

    #[test]
    fn a_value_ends_where_it_ends_however_long_it_is() {
        for length in 0..70 {
            for value in [
                format!("\"{}\"", "x".repeat(length)),
                format!("\"{}\\\"\\\\\"", "é".repeat(length)),
                format!("[{}]", "[\"]\"],".repeat(length)),
            ] {
                let text = format!("{value},1]");
                assert_eq!(value_end(text.as_bytes(), 0), value.len(), "{text}");
            }
        }
    }

    #[test]
    fn an_unfinished_text_ends() {
        for text in ["\"", "\"\\", "[", "{\"a\":[", "\"é", "é", "[\"\\"] {
            assert!(value_end(text.as_bytes(), 0) <= text.len(), "{text}");
            assert!(Tokens::new(text).count() <= text.len(), "{text}");
        }
    }
}
