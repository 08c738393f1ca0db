//! The stored form of a token: versioned JSON.
//!
//! A token of an unknown version, or with an unknown member, grants nothing.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::secret::SecretHash;
use crate::{PATTERNS_MAX, Scope, SessionPattern, Token, TokenId};
use blackboard_board::{AgentName, Digest, Timestamp, TokenName};

/// The only form that is written and read.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    form: u32,
    name: TokenName,
    /// SHA-256 of the token, in hexadecimal digits.
    hash: String,
    scopes: Vec<Scope>,
    sessions: Vec<SessionPattern>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
}

/// An unreadable stored token.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the version is unknown")]
    Json(#[from] serde_json::Error),
    #[error("version {0} is unknown; this server reads version {FORM}")]
    Form(u32),
    #[error("the hash is invalid")]
    Hash,
    #[error("a token has 1 to {PATTERNS_MAX} session patterns, not {0}")]
    Patterns(usize),
}

/// Encodes a token with its hash.
pub(super) fn encode(token: &Token, hash: &SecretHash) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&StoredToken {
        form: FORM,
        name: token.name.clone(),
        hash: Digest(hash.0).to_string(),
        scopes: token.scopes.iter().collect(),
        sessions: token.sessions.clone(),
        agent: token.agent.clone(),
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
    })
}

/// Decodes a token with its hash.
pub(super) fn decode(id: Uuid, bytes: &[u8]) -> Result<(Token, SecretHash), Unreadable> {
    let stored: StoredToken = serde_json::from_slice(bytes)?;
    if stored.form != FORM {
        return Err(Unreadable::Form(stored.form));
    }
    if !(1..=PATTERNS_MAX).contains(&stored.sessions.len()) {
        return Err(Unreadable::Patterns(stored.sessions.len()));
    }
    let hash = Digest::from_hex(&stored.hash).ok_or(Unreadable::Hash)?;
    let token = Token {
        id: TokenId(id),
        name: stored.name,
        scopes: stored.scopes.into_iter().collect(),
        sessions: stored.sessions,
        agent: stored.agent,
        created_at: stored.created_at,
        expires_at: stored.expires_at,
        revoked_at: stored.revoked_at,
    };
    Ok((token, SecretHash(hash.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_these_bytes_and_stays_so() {
        let text = r#"{"form":1,"name":"a","hash":"0707070707070707070707070707070707070707070707070707070707070707","scopes":["read","memory:read"],"sessions":["demo-*","x"],"agent":"A","created_at":1,"expires_at":2,"revoked_at":3}"#;
        let (token, hash) = decode(Uuid::nil(), text.as_bytes()).unwrap();
        assert_eq!(token.scopes, [Scope::Read, Scope::MemoryRead].into_iter().collect());
        assert_eq!(hash.0, [7; 32]);
        assert_eq!(String::from_utf8(encode(&token, &hash).unwrap()).unwrap(), text);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let good = r#"{"form":1,"name":"a","hash":"0707070707070707070707070707070707070707070707070707070707070707","scopes":["read"],"sessions":["*"],"created_at":1}"#;
        assert!(decode(Uuid::nil(), good.as_bytes()).is_ok());
        for (from, to) in [
            ("\"form\":1", "\"form\":2"),
            ("\"read\"", "\"root\""),
            ("[\"*\"]", "[]"),
            ("[\"*\"]", "[\"a/b\"]"),
            ("\"created_at\":1", "\"created_at\":1,\"more\":1"),
            ("0707", "07"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(decode(Uuid::nil(), bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
