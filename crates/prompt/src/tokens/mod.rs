//! Token estimates: texts by classes of characters, images by their providers' rules.
//!
//! The weights of the classes are fitted to real tokenizers (`benches/tokens`), rather high than low: a prompt that exceeds
//! its budget is rejected by the provider, one that stays below it shows a little less.

mod classes;
mod images;
mod script;
mod weights;

use std::borrow::Cow;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use blackboard_board::{Tokenizer, json};

pub use classes::{CLASSES, Counts, LETTERS, RUN_LENGTHS, WORD_LENGTHS};
pub use script::SCRIPTS_NAMED;
use weights::{BASE64, WEIGHTS};

/// A number of tokens in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    const TOKEN: u64 = 1_000;

    /// Creates a cost from whole tokens.
    #[must_use]
    pub const fn of_tokens(tokens: u64) -> Self {
        Self(tokens.saturating_mul(Self::TOKEN))
    }

    /// Creates a cost from thousandths of a token.
    #[must_use]
    pub const fn of_thousandths(thousandths: u64) -> Self {
        Self(thousandths)
    }

    /// Returns the cost in thousandths of a token.
    #[must_use]
    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Returns the cost in whole tokens, rounded up.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.0.div_ceil(Self::TOKEN)
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

/// More than a byte of a text costs.
const BYTE_MAX: Cost = Cost(4 * Cost::TOKEN);

/// How much less than fits a beginning may have, in bytes.
const PIECE_BYTES: usize = 64;

/// An estimator of tokens for a family of tokenizers.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    tokenizer: Tokenizer,
}

impl Estimator {
    /// Creates the estimator for a family of tokenizers.
    #[must_use]
    pub const fn of(tokenizer: Tokenizer) -> Self {
        Self { tokenizer }
    }

    /// Returns the family.
    #[must_use]
    pub const fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// Returns the cost of a text.
    #[must_use]
    pub fn text(&self, text: &str) -> Cost {
        let Counts(counts) = Counts::of(text);
        let costs = counts.iter().zip(&WEIGHTS).map(|(count, weights)| {
            Cost(u64::from(*count) * u64::from(self.tokenizer.of_each(*weights)))
        });
        costs.sum()
    }

    /// Returns the cost of the inside of a JSON string literal, decoded.
    #[must_use]
    pub fn literal(&self, literal: &[u8]) -> Cost {
        let text = String::from_utf8_lossy(literal);
        if !text.contains('\\') {
            return self.text(&text);
        }
        let quoted = format!("\"{text}\"");
        match json::decode(&quoted) {
            Cow::Borrowed(_) => self.text(&text),
            Cow::Owned(said) => self.text(&said),
        }
    }

    /// Returns the cost of base64 of this length.
    #[must_use]
    pub fn base64(&self, bytes: u64) -> Cost {
        Cost(bytes.saturating_mul(u64::from(self.tokenizer.of_each(BASE64))))
    }

    /// Returns true if a text costs no more than `max`.
    #[must_use]
    pub fn fits(&self, text: &str, max: Cost) -> bool {
        let is_short = (text.len() as u64).saturating_mul(BYTE_MAX.0) <= max.0;
        is_short || self.text(text) <= max
    }

    /// Returns the length of a beginning of a text that costs no more than `max`. About 64 bytes more would not fit.
    #[must_use]
    pub fn beginning(&self, text: &str, max: Cost) -> usize {
        if self.fits(text, max) {
            return text.len();
        }
        let (mut fits, mut exceeds) = (0, text.len());
        while exceeds - fits > PIECE_BYTES {
            let middle = text.floor_char_boundary(fits.midpoint(exceeds));
            if self.text(text.get(..middle).unwrap_or_default()) <= max {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        fits
    }

    /// Returns the cost of an image of this width and height. An unknown size costs the maximum.
    #[must_use]
    pub fn image(&self, size: Option<(u32, u32)>) -> Cost {
        let (openai, anthropic) = (images::openai(size), images::anthropic(size));
        let gemini = images::GEMINI;
        let most = openai.max(anthropic).max(gemini);
        Cost::of_tokens(self.tokenizer.of_each([openai, anthropic, gemini, most]))
    }
}

#[cfg(test)]
mod tests;
