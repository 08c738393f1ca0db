//! The secret of webhooks: from a file or a variable, never from an argument and never in a text.
//!
//! Standard Webhooks writes it as `whsec_` and base64, and signs with HMAC-SHA256.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The variable that holds a secret.
pub const SECRET_VARIABLE: &str = "BLACKBOARD_WEBHOOK_SECRET";

/// The beginning of a secret.
const PREFIX: &str = "whsec_";

/// The fewest and the most bytes of a secret, by the specification.
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;

/// The maximum size of a secret's file, in bytes: more than base64 of a secret takes, with its line end.
const FILE_BYTES_MAX: u64 = 1 << 10;

/// A key that signs messages.
#[derive(Clone)]
pub(super) struct Secret(Hmac<Sha256>);

/// A text that is no secret; the text is not in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is whsec_ and base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes, such as from: echo \
     \"whsec_$(openssl rand -base64 32)\""
)]
pub(super) struct InvalidSecret;

/// A secret that is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSecret {
    #[error("no secret to sign with; give one with --secret-file or {SECRET_VARIABLE}")]
    Absent,
    #[error("cannot read the secret from {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} holds no secret", path.display())]
    File { path: PathBuf, source: InvalidSecret },
    #[error("{SECRET_VARIABLE} holds no secret")]
    Variable(#[source] InvalidSecret),
}

impl Secret {
    /// Reads the secret of this file, or of the environment.
    pub(super) fn given(file: Option<&Path>) -> Result<Self, NoSecret> {
        if let Some(path) = file {
            return Self::from_file(path);
        }
        // Hosts set a variable of their configuration that has no value to nothing.
        match env::var_os(SECRET_VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => value.to_string_lossy().parse().map_err(NoSecret::Variable),
            None => Err(NoSecret::Absent),
        }
    }

    fn from_file(path: &Path) -> Result<Self, NoSecret> {
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
            .map_err(|source| NoSecret::Unreadable { path: path.to_owned(), source })?;
        text.parse().map_err(|source| NoSecret::File { path: path.to_owned(), source })
    }

    /// Returns the header `webhook-signature` of a message.
    pub(super) fn signature(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl FromStr for Secret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let text = text.trim().strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let key = STANDARD.decode(text).map_err(|_| InvalidSecret)?;
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&key.len()) {
            return Err(InvalidSecret);
        }
        Hmac::new_from_slice(&key).map(Self).map_err(|_| InvalidSecret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the reference implementations of Standard Webhooks.
    const EXAMPLE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_examples_signature_is_made() {
        let secret: Secret = EXAMPLE.parse().unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signature = secret.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{secret:?}").contains("MfKQ"));
    }

    #[test]
    fn a_file_holds_a_secret_and_a_line_end() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        std::fs::write(&path, format!("{EXAMPLE}\r\n")).unwrap();
        let same: Secret = EXAMPLE.parse().unwrap();
        let read = Secret::given(Some(&path)).unwrap();
        assert_eq!(read.signature("a", 1, b"b"), same.signature("a", 1, b"b"));
        let absent = Secret::given(Some(&home.path().join("absent")));
        assert!(matches!(absent, Err(NoSecret::Unreadable { .. })));
    }

    #[test]
    fn a_text_that_is_no_secret_is_refused_unshown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_?", &of(23), &of(65)]
        {
            std::fs::write(&path, text).unwrap();
            let refused = Secret::given(Some(&path)).unwrap_err();
            assert!(matches!(refused, NoSecret::File { .. }), "{text}");
            assert!(text.len() < 9 || !refused.to_string().contains(text));
        }
        assert!(of(24).parse::<Secret>().is_ok() && of(64).parse::<Secret>().is_ok());
    }
}
