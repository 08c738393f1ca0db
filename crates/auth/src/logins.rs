//! Logins of browsers: a random id in place of a token, kept in memory until it expires or its token ends.
//!
//! Where other servers share the store, the id has the token's id and its time, signed with the store's key, so that each
//! of them accepts it. Such a login ends after a fixed time, or by a logout, which the store keeps until then: it holds on
//! each server, whatever follows, and after a restart. Elsewhere a restart ends all logins.
//!
//! The end of a login ends its streams and waits.

mod logouts;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use logouts::TOKEN_LOGOUTS_MAX;

use super::caller::LoginEnd;
use super::{Caller, Token, TokenId, Tokens, Unauthorized};
use blackboard_board::{Digest, Timestamp};
use blackboard_store::{LogoutRow, LogoutStore, StoreError};
use logouts::Logouts;

/// The maximum number of logins in memory; beyond, the one that was used least recently ends. Of one that is signed only the
/// streams end.
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

/// The logins of one server. Clones share them.
#[derive(Clone)]
pub struct Logins(Arc<Inner>);

struct Inner {
    tokens: Tokens,
    known: Mutex<Known>,
    /// Held while logouts are read, so that each is taken in once and in order.
    reading: Mutex<()>,
}

/// The logins in use by the hashes of their ids, and the logouts of all servers.
#[derive(Default)]
struct Known {
    held: HashMap<Digest, ActiveLogin>,
    logouts: Logouts,
}

/// A login by the hash of its id.
struct ActiveLogin {
    token: TokenId,
    made_at: Timestamp,
    used_at: Timestamp,
    /// True if other servers accept it too.
    is_signed: bool,
    /// Cancelled when it is dropped, so that nothing outlives it.
    ended: CancellationToken,
}

/// The content of a signed id.
struct Signed {
    token: TokenId,
    made_at: Timestamp,
}

impl Drop for ActiveLogin {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl ActiveLogin {
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
        Self(Arc::new(Inner { tokens, known: Mutex::default(), reading: Mutex::default() }))
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
    /// [`Unauthorized`] if the token is not live; [`BeginError::RateLimited`] beyond the token's rate.
    pub fn begin(&self, token: &str) -> Result<Option<(String, Login)>, BeginError> {
        let caller = self.0.tokens.authenticate(Some(token))?;
        let Some(grant) = caller.grant() else { return Ok(None) };
        grant.count_request().map_err(BeginError::RateLimited)?;
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes)?;
        let (token, now) = (grant.token().clone(), self.0.tokens.now());
        let is_signed = self.0.tokens.logout_store().is_some();
        let id = if is_signed {
            self.signed(&bytes, token.id, now)
        } else {
            URL_SAFE_NO_PAD.encode(bytes)
        };
        let ended = grant.ended().child_token();
        let made = ActiveLogin { token: token.id, made_at: now, used_at: now, is_signed, ended };
        let login = Login { expires_at: made.expires_at(), token };
        let mut known = self.0.known.lock();
        known.held.retain(|_, login| login.is_live(now));
        known.hold(Digest::of(id.as_bytes()), made);
        Ok(Some((id, login)))
    }

    /// Returns the caller and the login of an id, and counts as a use of it.
    ///
    /// # Errors
    ///
    /// [`Unauthorized::LoggedOut`] if the login has ended, or the end of its token.
    pub fn find(&self, id: &str) -> Result<(Caller, Login), Unauthorized> {
        let (now, hash) = (self.0.tokens.now(), Digest::of(id.as_bytes()));
        let (token, end) = {
            let mut known = self.0.known.lock();
            if !known.held.contains_key(&hash)
                && let Some(signed) = self.signed_by_any(id, now)
                && !known.logouts.have(signed.token, hash, signed.made_at)
            {
                let Signed { token, made_at } = signed;
                let holder = self.0.tokens.holder(token)?;
                let ended = holder.grant().ok_or(Unauthorized::LoggedOut)?.ended().child_token();
                let made = ActiveLogin { token, made_at, used_at: now, is_signed: true, ended };
                known.hold(hash, made);
            }
            let login = known.held.get_mut(&hash);
            let login = login.filter(|login| login.is_live(now)).ok_or(Unauthorized::LoggedOut)?;
            login.used_at = now;
            let (ended, expires_at) = (login.ended.clone(), login.expires_at());
            (login.token, LoginEnd { ended, expires_at })
        };
        let caller = self.0.tokens.holder(token)?;
        let token = caller.grant().ok_or(Unauthorized::LoggedOut)?.token().clone();
        let login = Login { token, expires_at: end.expires_at };
        Ok((caller.until(end), login))
    }

    /// Ends a login, durably and for all servers of the store. Reads the store, so it blocks.
    ///
    /// # Errors
    ///
    /// The store cannot be reached: the login goes on.
    pub fn end(&self, id: &str) -> Result<(), StoreError> {
        let hash = Digest::of(id.as_bytes());
        if let Some(signed) = self.signed_by_any(id, self.0.tokens.now())
            && let Some(store) = self.0.tokens.logout_store()
            && self.0.tokens.holder(signed.token).is_ok()
            && !self.0.known.lock().logouts.have(signed.token, hash, signed.made_at)
        {
            let (token, login, made_at) = (signed.token.0, Some(hash), signed.made_at);
            store.log_out(&LogoutRow { token, login, made_at }, TOKEN_LOGOUTS_MAX)?;
            self.read_logouts(store)?;
        }
        self.0.known.lock().held.remove(&hash);
        Ok(())
    }

    /// Takes in the logouts of other servers of the store. One holds here from then on.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.0.tokens.logout_store().map_or(Ok(()), |store| self.read_logouts(store))
    }

    fn read_logouts(&self, store: &dyn LogoutStore) -> Result<(), StoreError> {
        let _reading = self.0.reading.lock();
        let seen = self.0.known.lock().logouts.seen();
        let read = store.logouts(seen)?;
        let before = Timestamp(self.0.tokens.now().0 - LOGIN_IDLE_MS_MAX);
        let mut known = self.0.known.lock();
        let Known { held, logouts } = &mut *known;
        let has_news = !read.is_empty();
        logouts.take_in(read, before);
        if has_news {
            held.retain(|hash, login| !logouts.have(login.token, *hash, login.made_at));
        }
        Ok(())
    }

    /// Returns an id that each server of the store accepts.
    fn signed(&self, random: &[u8], token: TokenId, now: Timestamp) -> String {
        let mut bytes = [random, token.0.as_bytes(), &now.0.to_be_bytes()].concat();
        let signature = self.0.tokens.signing_key().sign(&[PURPOSE, &bytes].concat());
        bytes.extend_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the login of an id that a server of the store signed, unless it is too old.
    fn signed_by_any(&self, id: &str, now: Timestamp) -> Option<Signed> {
        if self.0.tokens.logout_store().is_none() || id.len() > SIGNED_ID_MAX {
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
        (now.0 - made_at.0 < LOGIN_IDLE_MS_MAX).then_some(Signed { token, made_at })
    }
}

/// A login that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The token is not live.
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),
    /// The token exceeded its rate, for so long.
    #[error("the token exceeded its rate for {0:?}")]
    RateLimited(Duration),
    /// The system returned no random bits.
    #[error("the system returned no random bits")]
    Random(#[from] getrandom::Error),
}

impl Known {
    /// Holds one more login. Beyond a bound, the one that was used least recently makes room.
    fn hold(&mut self, hash: Digest, made: ActiveLogin) {
        let of_token = self.held.values().filter(|login| login.token == made.token).count();
        if of_token >= TOKEN_LOGINS_MAX {
            self.drop_oldest(|login| login.token == made.token);
        } else if self.held.len() >= LOGINS_MAX {
            self.drop_oldest(|_| true);
        }
        self.held.insert(hash, made);
    }

    /// Drops the login that was used least recently among some. It ends, unless it is signed.
    fn drop_oldest(&mut self, among: impl Fn(&ActiveLogin) -> bool) {
        let some = self.held.iter().filter(|(_, login)| among(login));
        let oldest =
            some.min_by_key(|(hash, login)| (login.used_at, **hash)).map(|(hash, _)| *hash);
        if let Some(oldest) = oldest {
            self.held.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
