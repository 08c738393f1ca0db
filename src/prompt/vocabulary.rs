//! Token counts for `OpenAI`'s models, by their vocabulary `o200k_base`.
//!
//! It is compiled in and built on first use, which takes half a second, and stays in memory. Special tokens such as
//! `<|endoftext|>` are plain text here.

use std::borrow::Cow;

use tiktoken_rs::o200k_base_singleton;

use crate::board::json;

/// The maximum length of a text that is counted at once, in bytes. The vocabulary's regular expression fails on a
/// mebibyte of spaces and is superlinear without a place to split. In pieces of this size a mebibyte takes at most
/// half a second.
const COUNTED_AT_ONCE_MAX: usize = 16 * 1024;

/// Counts the tokens of the text. The count is exact if each 16 KiB contain a space; otherwise each cut may change it
/// by one or two.
pub(super) fn count(text: &str) -> u64 {
    let vocabulary = o200k_base_singleton();
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at_checked(cut(rest)).unwrap_or((rest, ""));
        tokens += vocabulary.encode_ordinary(piece).len() as u64;
        rest = after;
    }
    tokens
}

/// Counts the tokens of a JSON string literal's decoded inside.
pub(super) fn count_literal(literal: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(literal);
    if !text.contains('\\') {
        return count(&text);
    }
    let quoted = format!("\"{text}\"");
    count(match json::decode(&quoted) {
        Cow::Borrowed(_) => &text,
        Cow::Owned(ref said) => said,
    })
}

/// Returns the end of the first piece of a text. No token spans a space after a visible character, so a cut there
/// does not change the count.
fn cut(text: &str) -> usize {
    if text.len() <= COUNTED_AT_ONCE_MAX {
        return text.len();
    }
    let end = text.floor_char_boundary(COUNTED_AT_ONCE_MAX);
    let head = text.get(..end).unwrap_or_default();
    let mut spaces = head.rmatch_indices(' ').map(|(at, _)| at);
    let harmless = |at: &usize| {
        let before = head.get(..*at).and_then(|before| before.chars().next_back());
        before.is_some_and(|character| !character.is_whitespace())
    };
    spaces.find(harmless).unwrap_or(end)
}

#[cfg(test)]
mod tests;
