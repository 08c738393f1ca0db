//! The key of a write, by which a repeated write is done once.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use uuid::Uuid;

/// The longest key.
const KEY_BYTES_MAX: usize = 255;

/// The flag of commands that write.
#[derive(Args, Clone, Debug)]
pub(super) struct Repeat {
    /// Idempotency key: a command repeated with the same key takes effect once [default: a new one]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<Key>,
}

impl Repeat {
    /// Returns the given key, or a new one.
    pub(super) fn key(self) -> Key {
        self.idempotency_key.unwrap_or_else(Key::new)
    }
}

/// A key that fits a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 1 to {KEY_BYTES_MAX} visible ASCII characters")]
pub(super) struct InvalidKey;

impl Key {
    /// Makes a key that no other write has.
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let is_key = (1..=KEY_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_key { Ok(Self(text.to_owned())) } else { Err(InvalidKey) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
