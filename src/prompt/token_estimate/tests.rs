//! Tests of token estimates of texts and images.

use proptest::prelude::*;

use super::*;
use crate::board::json::{decode, quote};

const FORMATS: [PromptFormat; 5] = [
    PromptFormat::Parts,
    PromptFormat::Responses,
    PromptFormat::Anthropic,
    PromptFormat::Gemini,
    PromptFormat::Markdown,
];

fn image(format: PromptFormat, width: u32, height: u32) -> u64 {
    Estimator::of(format).image(Some((width, height))).tokens()
}

#[test]
fn costs_are_added_in_quarters_and_rounded_up_at_the_end() {
    let byte = Estimator::of(PromptFormat::Gemini).text("x");
    assert_eq!(Cost::default().tokens(), 0);
    assert_eq!(byte.tokens(), 1);
    assert_eq!(std::iter::repeat_n(byte, 8).sum::<Cost>(), Cost::of_tokens(2));
    let mut cost = Cost::of_tokens(1) + byte;
    cost += byte;
    assert_eq!(cost.tokens(), 2);
    assert_eq!((cost - byte - byte).tokens(), 1);
    assert_eq!(byte - cost, Cost::default());
}

#[test]
fn a_text_costs_a_quarter_of_its_bytes() {
    let estimator = Estimator::of(PromptFormat::Anthropic);
    assert_eq!(estimator.text("twelve bytes").tokens(), 3);
    assert_eq!(estimator.text("中文🚀").tokens(), 3);
    assert_eq!(estimator.text("").tokens(), 0);
}

#[test]
fn openais_images_cost_their_tiles() {
    for format in [PromptFormat::Parts, PromptFormat::Responses] {
        for (width, height, tokens) in [
            (1_024, 1_024, 765),
            (2_048, 4_096, 1_105),
            (4_096, 8_192, 1_105),
            (512, 512, 255),
            (513, 512, 425),
            (1, 1, 255),
            (1_920, 1_080, 1_105),
            (2_048, 768, 1_445),
            (100_000, 10, 765),
            (0, 0, 255),
            (u32::MAX, u32::MAX, 765),
            (u32::MAX, 1, 765),
        ] {
            assert_eq!(image(format, width, height), tokens, "{width} by {height}");
            assert_eq!(image(format, height, width), tokens, "{height} by {width}");
        }
    }
}

#[test]
fn anthropics_images_cost_their_patches_after_scaling_down() {
    for (width, height, tokens) in [
        (28, 28, 1),
        (29, 28, 2),
        (1, 1, 1),
        (0, 0, 1),
        (1_000, 1_000, 36 * 36),
        (1_920, 1_080, 69 * 39),
        // 92 by 52 patches: both limits at once.
        (2_576, 1_456, 4_784),
        // 69 by 69 patches are 4,761, and 70 by 70 are too many.
        (8_000, 8_000, 4_761),
        (u32::MAX, u32::MAX, 4_761),
        (8_000, 10, 92),
        (u32::MAX, 1, 92),
    ] {
        let format = PromptFormat::Anthropic;
        assert_eq!(image(format, width, height), tokens, "{width} by {height}");
        assert_eq!(image(format, height, width), tokens, "{height} by {width}");
    }
}

#[test]
fn geminis_images_cost_the_same_and_in_markdown_they_are_text() {
    assert_eq!(image(PromptFormat::Gemini, 1, 1), 1_120);
    assert_eq!(image(PromptFormat::Gemini, 8_000, 8_000), 1_120);
    assert_eq!(image(PromptFormat::Markdown, 8_000, 8_000), 0);
}

#[test]
fn escapes_count_as_what_they_say() {
    for (literal, bytes) in [
        (r"plain", 5),
        (r#"\"\\\/\n"#, 4),
        (r"\u0041\u007F", 2),
        (r"\u0080\u00e9\u07ff", 6),
        (r"\u0800\u4E2D\uffff", 9),
        (r"\ud83d\uDE80", 4),
        (r"\ud83d", 3),
        (r"\ude80\ud83d", 6),
        (r"\ud83dx\ude80", 7),
        (r"\ud83d\u0041", 4),
        (r"\\u4e2d", 6),
        ("\\", 0),
        ("\\u12", 0),
    ] {
        assert_eq!(said(literal.as_bytes()), bytes, "{literal}");
    }
}

proptest! {
    #[test]
    fn a_literal_costs_what_it_says(text in any::<String>(), units in "(\\\\\\\\u(d[89c]0[01]|00[048]1|0[08]00|4e2d)|x|\\\\\\\\n){0,8}") {
        let mut literal = String::new();
        quote(&text, &mut literal);
        literal.insert_str(1, &units);
        let inside = &literal[1..literal.len() - 1];
        let said = decode(&literal);
        for format in FORMATS {
            let estimator = Estimator::of(format);
            prop_assert_eq!(estimator.literal(inside.as_bytes()), estimator.text(&said), "{}", inside);
        }
    }

    #[test]
    fn no_image_costs_more_than_one_of_unknown_size(width: u32, height: u32) {
        for format in FORMATS {
            let most = Estimator::of(format).image(None);
            prop_assert!(Estimator::of(format).image(Some((width, height))) <= most);
            prop_assert!(Estimator::of(format).image(Some((width % 5_000, height % 5_000))) <= most);
        }
    }
}
