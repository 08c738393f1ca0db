//! The secret of a token: 256 random bits as `bb_` and 43 characters. It is shown once and never stored.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What every token begins with, so that one is found where it should not be.
const PREFIX: &str = "bb_";

const RANDOM_BYTES: usize = 32;

/// How long a token is.
pub const SECRET_CHARS: usize = 46;

/// A token as its holder has it. It is no part of any log: its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct Secret(String);

/// The text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is {PREFIX} and 43 characters, as 'blackboard token create' shows it")]
pub struct InvalidSecret;

/// What is kept of a token: its SHA-256. Of 256 random bits no slower hash is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretHash(pub(super) [u8; 32]);

impl Secret {
    /// A new one, from the system's random bits.
    ///
    /// # Errors
    ///
    /// Where the system has none.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The token, to be shown once.
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
    /// Whether both are of one token; how long that takes tells nothing of them.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// By which it is looked up. An attacker who learns from the time of a look-up how far this part agrees
    /// learns nothing of the token: it is of the hash.
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
