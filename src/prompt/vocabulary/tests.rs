//! Tests against counts of Python's tiktoken 0.14: `len(get_encoding("o200k_base").encode_ordinary(text))`.

use proptest::prelude::*;

use super::*;
use crate::board::PromptFormat;
use crate::prompt::token_estimate::{Cost, Estimator};

#[test]
fn tokens_are_counted_as_tiktoken_counts_them() {
    for (text, tokens) in [
        ("", 0),
        ("hello world", 2),
        ("<|endoftext|>", 7),
        ("中文 🚀 naïve", 5),
        (r#"{"step": 1, "action": "click", "results": [{"status": "FAIL"}]}"#, 22),
        (r"\u4e2d\u6587", 8),
        ("tabs\t\tand\n\n  lines\r\n", 7),
        (&" ".repeat(1_000), 9),
        (&"a".repeat(1_000), 125),
    ] {
        assert_eq!(count(text), tokens, "{text}");
    }
}

#[test]
fn long_texts_with_spaces_are_counted_exactly() {
    for (text, tokens) in [
        ("The quick brown fox jumps over the lazy dog. ", 20_001),
        (r#"{"step": 1, "action": "click the button", "ms": 40.5}, "#, 44_001),
        ("an indented line\n    of some code;\n\n\t\t x = 1\n", 32_000),
    ] {
        assert_eq!(count(&text.repeat(2_000)), tokens, "{text}");
    }
}

#[test]
fn long_texts_without_a_place_to_split_are_counted() {
    for piece in ["\t ", "\n", "_", "中", "🚀", "1", "\u{301}"] {
        let text = piece.repeat((1 << 17) / piece.len());
        let tokens = count(&text);
        assert!((1 << 10..1 << 17).contains(&tokens), "{tokens} for {piece:?}");
    }
    assert_eq!(count(&"a".repeat(1 << 17)), 16_384);
    // Of so many the vocabulary's regular expression, asked for all at once, says that it has no room.
    assert_eq!(count(&" ".repeat(1 << 20)), 8_192);
}

#[test]
fn only_openais_formats_are_counted() {
    let text = "hello world";
    for (format, tokens) in [
        (PromptFormat::Parts, 2),
        (PromptFormat::Responses, 2),
        (PromptFormat::Anthropic, 3),
        (PromptFormat::Gemini, 3),
        (PromptFormat::Markdown, 3),
    ] {
        assert_eq!(Estimator::of(format).text(text).tokens(), tokens, "{format:?}");
    }
    let literal = Estimator::of(PromptFormat::Parts).literal(br#"\"hello\" \ud83d\ude80\n"#);
    assert_eq!(literal, Cost::of_tokens(count("\"hello\" 🚀\n")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_cut_before_a_space_changes_nothing(
        texts in proptest::collection::vec("[a-zA-Z0-9 .,'/\"{}\\\\\r\n\t中é🚀\u{a0}\u{2028}]{1,20}", 200),
    ) {
        let text = texts.concat().repeat(16);
        let whole = o200k_base_singleton().encode_ordinary(&text).len();
        prop_assert_eq!(count(&text), whole as u64);
    }
}
