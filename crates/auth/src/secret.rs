//! The secret of a token: 256 random bits as `bb_` and 43 characters. It is shown once and never stored.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of every token, by which scanners find leaked ones.
const PREFIX: &str = "bb_";

const RANDOM_BYTES: usize = 32;

/// The length of a token.
pub const SECRET_CHARS: usize = 46;

/// A token's secret. Its `Debug` shows nothing, so that no log has it.
#[derive(Clone)]
pub struct Secret(String);

/// The text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token is {PREFIX} followed by 43 characters, as 'blackboard token create --name NAME' prints it"
)]
pub struct InvalidSecret;

/// The stored SHA-256 of a token. A token has 256 random bits, so no slower hash is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretHash(pub(super) [u8; 32]);

impl Secret {
    /// Creates a token from the system's random bits.
    ///
    /// # Errors
    ///
    /// The system has no random bits.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// Returns the secret as text, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(&self.0).into())
    }
}

impl FromStr for Secret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let code = text.strip_prefix(PREFIX).filter(|_| text.len() == SECRET_CHARS);
        let bytes = code.and_then(|code| URL_SAFE_NO_PAD.decode(code).ok());
        bytes.map(|_| Self(text.to_owned())).ok_or(InvalidSecret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl SecretHash {
    /// Compares in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Returns the part of the hash that look-ups use. The time of a look-up may tell an attacker how much of this
    /// part agrees, which says nothing about the token.
    pub(super) fn place(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_256_random_bits_and_not_shown_by_debug() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(one.reveal().len(), SECRET_CHARS);
        assert!(one.reveal().starts_with("bb_"));
        assert!(one.hash().is(&one.hash()) && !one.hash().is(&other.hash()));
        assert_eq!(format!("{one:?}"), "Secret");
        assert!(one.reveal().parse::<Secret>().is_ok());
    }

    #[test]
    fn what_is_not_of_its_form_is_no_token() {
        let good = Secret::random().unwrap().reveal().to_owned();
        let long = format!("{good}A");
        for text in ["", "bb_", &good[3..], &good[..45], &long, &good.replace("bb_", "cc_")] {
            assert!(text.parse::<Secret>().is_err(), "{text}");
        }
    }
}
