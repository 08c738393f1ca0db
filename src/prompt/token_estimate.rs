//! Token estimates: texts by a rule of thumb, images by their providers' rules.
//!
//! A token is estimated as four bytes of UTF-8. That is about right for English, too many for code with long names, and
//! too few for scripts that a vocabulary covers badly. With the feature `openai-tokens`, texts for `OpenAI`'s models
//! are counted by their own vocabulary.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

#[cfg(feature = "openai-tokens")]
use super::vocabulary;
use crate::board::json::tokens::run_before;
use crate::board::{PromptFormat, Scale};

/// A number of tokens in quarters, since the estimate of a text is its bytes / 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    /// The bytes of text that count as one token.
    const BYTES_PER_TOKEN: u64 = 4;

    /// Creates a cost from whole tokens.
    #[must_use]
    pub const fn of_tokens(tokens: u64) -> Self {
        Self(tokens.saturating_mul(Self::BYTES_PER_TOKEN))
    }

    /// Creates the estimated cost of a text from its length in bytes.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        Self(bytes as u64)
    }

    /// Creates a cost from quarters of a token.
    #[must_use]
    pub const fn of_quarters(quarters: u64) -> Self {
        Self(quarters)
    }

    /// Returns the cost in quarters of a token.
    #[must_use]
    pub const fn quarters(self) -> u64 {
        self.0
    }

    /// Returns the cost in whole tokens, rounded up.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.0.div_ceil(Self::BYTES_PER_TOKEN)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Subtracts, down to zero.
impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// An estimator of tokens for a prompt's format.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    format: PromptFormat,
}

impl Estimator {
    /// Creates the estimator for a format.
    #[must_use]
    pub const fn of(format: PromptFormat) -> Self {
        Self { format }
    }

    /// The scale on which texts are weighed.
    #[must_use]
    pub const fn scale(&self) -> Scale {
        #[cfg(feature = "openai-tokens")]
        if self.counts() {
            return Scale::Vocabulary;
        }
        Scale::Bytes
    }

    /// Returns the cost of a text.
    #[must_use]
    pub fn text(&self, text: &str) -> Cost {
        #[cfg(feature = "openai-tokens")]
        if self.counts() {
            return Cost::of_tokens(vocabulary::count(text));
        }
        Cost::of_bytes(text.len())
    }

    /// Returns the cost of the inside of a JSON string literal, decoded.
    #[must_use]
    pub fn literal(&self, literal: &[u8]) -> Cost {
        #[cfg(feature = "openai-tokens")]
        if self.counts() {
            return Cost::of_tokens(vocabulary::count_literal(literal));
        }
        Cost::of_bytes(said(literal))
    }

    /// Returns the cost of an image of this width and height. An unknown size costs the maximum.
    #[must_use]
    pub fn image(&self, size: Option<(u32, u32)>) -> Cost {
        Cost::of_tokens(match self.format {
            PromptFormat::Parts | PromptFormat::Responses => openai_image(size),
            PromptFormat::Anthropic => anthropic_image(size),
            PromptFormat::Gemini => GEMINI_IMAGE,
            // In Markdown an image is text and counted as text.
            PromptFormat::Markdown => 0,
        })
    }

    /// Returns true if texts are counted by the model's own vocabulary.
    #[cfg(feature = "openai-tokens")]
    const fn counts(self) -> bool {
        match self.format {
            PromptFormat::Parts | PromptFormat::Responses => true,
            PromptFormat::Anthropic | PromptFormat::Gemini | PromptFormat::Markdown => false,
        }
    }
}

/// Counts the UTF-8 bytes of a string literal's decoded inside. An unpaired surrogate counts as U+FFFD.
fn said(literal: &[u8]) -> usize {
    let mut bytes = 0;
    let mut rest = literal;
    loop {
        let plain = run_before(rest, |byte| byte == b'\\');
        bytes += plain;
        let (said, after) = match rest.get(plain..).unwrap_or_default() {
            [b'\\', b'u', escape @ ..] => said_by_unit(escape),
            [b'\\', _, after @ ..] => (1, after),
            // A backslash at the end belongs to a literal that was cut.
            _ => return bytes,
        };
        (bytes, rest) = (bytes + said, after);
    }
}

/// Counts the bytes of an escape with its surrogate partner, and returns the rest.
fn said_by_unit(escape: &[u8]) -> (usize, &[u8]) {
    let Some((digits, after)) = escape.split_first_chunk::<4>() else { return (0, &[]) };
    match *digits {
        [b'0', b'0', b'0'..=b'7', _] => (1, after),
        [b'0', b'0'..=b'7', ..] => (2, after),
        [b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B', ..] => match after {
            [b'\\', b'u', b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', _, _, after @ ..] => (4, after),
            _ => (3, after),
        },
        _ => (3, after),
    }
}

/// `OpenAI` scales images down to fit this square, in pixels,
const OPENAI_FIT: u64 = 2_048;
/// and then until the shorter side has at most this many pixels.
const OPENAI_SHORTER: u64 = 768;
/// The side of a tile, in pixels.
const OPENAI_TILE: u64 = 512;
/// The cost of an image, and of each tile.
const OPENAI_IMAGE: u64 = 85;
const OPENAI_EACH_TILE: u64 = 170;
/// The maximum number of tiles of an image: two by four.
const OPENAI_TILES_MAX: u64 =
    OPENAI_SHORTER.div_ceil(OPENAI_TILE) * OPENAI_FIT.div_ceil(OPENAI_TILE);

/// `OpenAI`'s rule for tiles, in high detail: scaled down to fit 2048 by 2048, then until the shorter side is at
/// most 768; 85 tokens, and 170 for each 512 by 512 tile that is touched.
///
/// So count GPT-4o and GPT-4.1; GPT-5, o1 and o3 take a little less for each. Models that count patches of 32
/// pixels take another number, for large images up to about twice this one, and GPT-4o mini many times as much.
fn openai_image(size: Option<(u32, u32)>) -> u64 {
    let tiles = size.map_or(OPENAI_TILES_MAX, |(width, height)| {
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        let (longer, shorter) = (width.max(height), width.min(height));
        // Both steps shrink by one factor, the smaller of the two, kept as a fraction of whole numbers.
        let by_fit = (OPENAI_FIT, longer);
        let by_shorter = (OPENAI_SHORTER, shorter);
        let (to, from) =
            if OPENAI_FIT * shorter <= OPENAI_SHORTER * longer { by_fit } else { by_shorter };
        let (to, from) = if to < from { (to, from) } else { (1, 1) };
        let along = |side: u64| (side * to).div_ceil(from * OPENAI_TILE);
        along(longer) * along(shorter)
    });
    OPENAI_IMAGE + OPENAI_EACH_TILE * tiles
}

/// The side of a patch of Anthropic's, in pixels.
const ANTHROPIC_PATCH: u64 = 28;
/// The maximum length of the longer side, in pixels.
const ANTHROPIC_LONGER: u64 = 2_576;
/// The maximum number of tokens of an image.
const ANTHROPIC_TOKENS_MAX: u64 = 4_784;

/// Anthropic's rule: a token for each patch of 28 by 28 pixels that is touched, of the largest size of the same
/// aspect that has at most 2,576 pixels on its longer side and at most 4,784 tokens.
///
/// So count its models of high resolution. The others scale down to 1,568 of both and take fewer.
fn anthropic_image(size: Option<(u32, u32)>) -> u64 {
    let Some((width, height)) = size else { return ANTHROPIC_TOKENS_MAX };
    let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    let (longer, shorter) = (width.max(height), width.min(height));
    let tokens = |side: u64| {
        let other = (shorter * side + longer / 2) / longer;
        side.div_ceil(ANTHROPIC_PATCH) * other.max(1).div_ceil(ANTHROPIC_PATCH)
    };
    // Tokens never decrease as the side grows, so a binary search finds the largest side that fits.
    let (mut fits, mut too_long) = (0, longer.min(ANTHROPIC_LONGER) + 1);
    while too_long - fits > 1 {
        let side = fits.midpoint(too_long);
        if tokens(side) <= ANTHROPIC_TOKENS_MAX {
            fits = side;
        } else {
            too_long = side;
        }
    }
    tokens(fits)
}

/// Google's rule since Gemini 3: an image costs what `media_resolution` says, by default 1,120 tokens at any size.
const GEMINI_IMAGE: u64 = 1_120;

#[cfg(test)]
mod tests;
