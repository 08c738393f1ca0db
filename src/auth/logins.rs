//! Logins of browsers: a random id in place of a token, kept in memory until it expires or its token ends.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::{Caller, Token, TokenId, Tokens, Unauthorized};
use crate::board::Timestamp;

/// The maximum number of logins; beyond, the one that was used least recently ends.
pub const LOGINS_MAX: usize = 10_000;

/// The maximum number of logins with one token; beyond, the one that was used least recently ends.
pub const TOKEN_LOGINS_MAX: usize = 100;

/// The time after which an unused login ends, in milliseconds.
const LOGIN_IDLE_MS_MAX: i64 = 12 * 60 * 60 * 1000;

/// The time after which every login ends, in milliseconds.
const LOGIN_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;

const ID_BYTES: usize = 32;

/// The logins of one server. Clones share them; a restart ends all.
#[derive(Clone)]
pub struct Logins(Arc<Inner>);

struct Inner {
    tokens: Tokens,
    held: Mutex<HashMap<[u8; 32], Held>>,
}

/// A login by the hash of its id.
struct Held {
    token: TokenId,
    made_at: Timestamp,
    used_at: Timestamp,
}

impl Held {
    fn is_live(&self, now: Timestamp) -> bool {
        now.0 - self.used_at.0 < LOGIN_IDLE_MS_MAX && now.0 < self.expires_at().0
    }

    fn expires_at(&self) -> Timestamp {
        Timestamp(self.made_at.0 + LOGIN_MS_MAX)
    }
}

/// A login with its token.
#[derive(Clone, Debug)]
pub struct Login {
    /// The token that the login stands for.
    pub token: Token,
    /// The time at which it ends at the latest.
    pub expires_at: Timestamp,
}

impl Logins {
    /// Creates the logins with these tokens.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self(Arc::new(Inner { tokens, held: Mutex::default() }))
    }

    /// Returns the tokens.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// Begins a login with a token. Returns its id, which is shown once, or `None` if no token is needed.
    ///
    /// # Errors
    ///
    /// [`Unauthorized`] if the token is not live.
    pub fn begin(&self, token: &str) -> Result<Option<(String, Login)>, BeginError> {
        let caller = self.0.tokens.authenticate(Some(token))?;
        let Some(grant) = caller.grant() else { return Ok(None) };
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes)?;
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let (token, now) = (grant.token().clone(), self.0.tokens.now());
        let made = Held { token: token.id, made_at: now, used_at: now };
        let login = Login { expires_at: made.expires_at(), token };
        let mut held = self.0.held.lock();
        held.retain(|_, login| login.is_live(now));
        let of_token = held.values().filter(|login| login.token == made.token).count();
        if of_token >= TOKEN_LOGINS_MAX {
            end_oldest(&mut held, |login| login.token == made.token);
        } else if held.len() >= LOGINS_MAX {
            end_oldest(&mut held, |_| true);
        }
        held.insert(hash(&id), made);
        Ok(Some((id, login)))
    }

    /// Returns the caller and the login of an id, and counts as a use of it.
    ///
    /// # Errors
    ///
    /// [`Unauthorized::LoggedOut`] if the login has ended, or the end of its token.
    pub fn find(&self, id: &str) -> Result<(Caller, Login), Unauthorized> {
        let now = self.0.tokens.now();
        let (token, expires_at) = {
            let mut held = self.0.held.lock();
            let login = held.get_mut(&hash(id)).filter(|login| login.is_live(now));
            let login = login.ok_or(Unauthorized::LoggedOut)?;
            login.used_at = now;
            (login.token, login.expires_at())
        };
        let caller = self.0.tokens.holder(token)?;
        let token = caller.grant().ok_or(Unauthorized::LoggedOut)?.token().clone();
        Ok((caller, Login { token, expires_at }))
    }

    /// Ends a login.
    pub fn end(&self, id: &str) {
        self.0.held.lock().remove(&hash(id));
    }
}

/// A login that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The token is not live.
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),
    /// The system returned no random bits.
    #[error("the system returned no random bits")]
    Random(#[from] getrandom::Error),
}

fn hash(id: &str) -> [u8; 32] {
    Sha256::digest(id).into()
}

/// Ends the login that was used least recently among some.
fn end_oldest(held: &mut HashMap<[u8; 32], Held>, among: impl Fn(&Held) -> bool) {
    let some = held.iter().filter(|(_, login)| among(login));
    let oldest = some.min_by_key(|(id, login)| (login.used_at, **id)).map(|(id, _)| *id);
    if let Some(oldest) = oldest {
        held.remove(&oldest);
    }
}

#[cfg(test)]
mod tests;
