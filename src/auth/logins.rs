//! Logins of browsers: a random id in place of a token, kept in memory until it expires or its token ends.
//!
//! Where other servers share the store, the id has the token's id and its time, signed with the store's key, so that each
//! of them accepts it. Such a login ends after a fixed time; a logout is known to the server that took it.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

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

/// The message that a signature of an id begins with, so that it is good for nothing else.
const PURPOSE: &[u8] = b"blackboard login 1\n";

/// The length of a signed id.
const SIGNED_ID_MAX: usize = 128;

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
    /// True if other servers accept it too.
    is_signed: bool,
    /// True after a logout.
    has_ended: bool,
}

impl Held {
    fn is_live(&self, now: Timestamp) -> bool {
        now.0 - self.used_at.0 < LOGIN_IDLE_MS_MAX && now.0 < self.expires_at().0
    }

    fn expires_at(&self) -> Timestamp {
        let longest = if self.is_signed { LOGIN_IDLE_MS_MAX } else { LOGIN_MS_MAX };
        Timestamp(self.made_at.0 + longest)
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
        let (token, now) = (grant.token().clone(), self.0.tokens.now());
        let is_signed = self.0.tokens.are_shared();
        let id = if is_signed {
            self.signed(&bytes, token.id, now)
        } else {
            URL_SAFE_NO_PAD.encode(bytes)
        };
        let has_ended = false;
        let made = Held { token: token.id, made_at: now, used_at: now, is_signed, has_ended };
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
            if !held.contains_key(&hash(id))
                && let Some(login) = self.of_another(id, now)
            {
                if held.len() >= LOGINS_MAX {
                    end_oldest(&mut held, |_| true);
                }
                held.insert(hash(id), login);
            }
            let login = held.get_mut(&hash(id));
            let login = login.filter(|login| login.is_live(now) && !login.has_ended);
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
        let mut held = self.0.held.lock();
        match held.get_mut(&hash(id)) {
            // It must not come back by its signature.
            Some(login) if login.is_signed => login.has_ended = true,
            Some(_) | None => drop(held.remove(&hash(id))),
        }
    }

    /// Returns an id that each server of the store accepts.
    fn signed(&self, random: &[u8], token: TokenId, now: Timestamp) -> String {
        let mut bytes = [random, token.0.as_bytes(), &now.0.to_be_bytes()].concat();
        let signature = self.0.tokens.signing_key().sign(&[PURPOSE, &bytes].concat());
        bytes.extend_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the login of an id that another server of the store signed.
    fn of_another(&self, id: &str, now: Timestamp) -> Option<Held> {
        if !self.0.tokens.are_shared() || id.len() > SIGNED_ID_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (said, signature) = bytes.split_at_checked(ID_BYTES + 16 + 8)?;
        let message = [PURPOSE, said].concat();
        if !self.0.tokens.signing_key().has_signed(&message, signature) {
            return None;
        }
        let (token, made_at) = said.get(ID_BYTES..)?.split_at_checked(16)?;
        let token = TokenId(Uuid::from_slice(token).ok()?);
        let made_at = Timestamp(i64::from_be_bytes(made_at.try_into().ok()?));
        let login = Held { token, made_at, used_at: now, is_signed: true, has_ended: false };
        login.is_live(now).then_some(login)
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
