//! All tokens of a store: created, looked up, revoked. A change takes effect once it is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::secret::SecretHash;
use super::stored_token::{decode, encode};
use super::{Caller, Grant, NewToken, PATTERNS_MAX, Secret, Token, TokenId, TokenLimits};
use crate::board::{Code, Timestamp, TokenName};
use crate::service::Clock;
use crate::store::{Store, StoreError};

/// How many tokens a store keeps; the first to go for another one is that which ended first.
pub const TOKENS_MAX: usize = 10_000;

/// Why a token was not made, found or revoked.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A live token is called so.
    #[error("there is a token called {name} already; revoke it first, or choose another name")]
    NameTaken {
        /// What it is called.
        name: TokenName,
    },
    /// The very same token is known already.
    #[error("this token is known already, as {name}")]
    Known {
        /// What it is called.
        name: TokenName,
    },
    /// There are as many as a store keeps, all of them live.
    #[error("there are {TOKENS_MAX} live tokens, which is as many as there may be; revoke some")]
    TooMany,
    /// It would open nothing.
    #[error("a token needs a scope, and 1 to {PATTERNS_MAX} patterns of sessions")]
    Nothing,
    /// No token has this id, and no live one this name.
    #[error("there is no live token with the name or id {0:?}")]
    Unknown(String),
    /// The system has no random bits.
    #[error("the system gives no random bits")]
    Random(#[from] getrandom::Error),
    /// It has no stored form.
    #[error("the token cannot be stored")]
    Unstorable(#[from] serde_json::Error),
    /// The store cannot keep it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NameTaken { .. } | Self::Known { .. } | Self::TooMany | Self::Nothing => {
                Code::InvalidField
            }
            Self::Unknown(_) => Code::Unauthorized,
            Self::Random(_) | Self::Unstorable(_) | Self::Store(_) => Code::Internal,
        }
    }
}

/// Why a request has no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthorized {
    /// It came without a token.
    #[error(
        "a token is needed: send 'Authorization: Bearer bb_…'; 'blackboard token create' makes one"
    )]
    Missing,
    /// It came with more than one.
    #[error("one token is taken, in Authorization or in X-API-Key, not several")]
    Several,
    /// No such token was ever made here.
    #[error("the token is not one of this server's")]
    Unknown,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// It was revoked.
    #[error("the token was revoked")]
    Revoked,
}

/// The tokens of one store. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Clock,
    limits: TokenLimits,
    known: RwLock<Known>,
    /// Taken by who changes something, so that names stay unique.
    changing: Mutex<()>,
    /// Cancelled once a token is needed.
    open: CancellationToken,
}

#[derive(Default)]
struct Known {
    by_place: HashMap<[u8; 8], Vec<TokenId>>,
    by_id: BTreeMap<TokenId, Held>,
}

struct Held {
    hash: SecretHash,
    grant: Arc<Grant>,
}

impl Tokens {
    /// The tokens of a store. One that cannot be read opens nothing, and is told of in the log.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub fn open(
        store: Arc<dyn Store>,
        clock: Clock,
        limits: TokenLimits,
    ) -> Result<Self, StoreError> {
        let (mut known, open) = (Known::default(), CancellationToken::new());
        for row in store.tokens()? {
            open.cancel();
            match row.body.as_deref().map(|body| decode(row.id, body)) {
                Some(Ok((token, hash))) => known.put(Held::new(token, hash, limits)),
                Some(Err(why)) => tracing::error!(id = %row.id, %why, "a token cannot be read"),
                None => tracing::error!(id = %row.id, "a token is damaged"),
            }
        }
        let (known, changing) = (RwLock::new(known), Mutex::default());
        Ok(Self(Arc::new(Inner { store, clock, limits, known, changing, open })))
    }

    /// Whether a request needs a token: once there was one, for ever.
    #[must_use]
    pub fn are_required(&self) -> bool {
        self.0.open.is_cancelled()
    }

    /// Who sends a request with this token, or with none.
    ///
    /// # Errors
    ///
    /// [`Unauthorized`] where it takes one that is live.
    pub fn authenticate(&self, presented: Option<&str>) -> Result<Caller, Unauthorized> {
        if !self.are_required() {
            return Ok(Caller::anyone(self.0.open.clone()));
        }
        let secret: Secret =
            presented.ok_or(Unauthorized::Missing)?.parse().map_err(|_| Unauthorized::Unknown)?;
        let found = self.0.known.read().find(&secret.hash());
        let grant = found.ok_or(Unauthorized::Unknown)?;
        if grant.token().revoked_at.is_some() {
            return Err(Unauthorized::Revoked);
        }
        if grant.token().is_expired(self.0.clock.now()) {
            return Err(Unauthorized::Expired);
        }
        Ok(Caller::with(grant))
    }

    /// Makes a token, and gives it with what is known of it.
    ///
    /// # Errors
    ///
    /// [`AuthError`]; nothing was made then.
    pub fn create(&self, new: NewToken) -> Result<(Token, Secret), AuthError> {
        let secret = Secret::random()?;
        Ok((self.adopt(new, &secret)?, secret))
    }

    /// Makes a token of a secret that was given.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub fn adopt(&self, new: NewToken, secret: &Secret) -> Result<Token, AuthError> {
        let _changing = self.0.changing.lock();
        let now = self.0.clock.now();
        let NewToken { name, scopes, sessions, agent, expires_at } = new;
        if scopes.iter().next().is_none() || !(1..=PATTERNS_MAX).contains(&sessions.len()) {
            return Err(AuthError::Nothing);
        }
        let hash = secret.hash();
        if let Some(known) = self.0.known.read().find(&hash) {
            return Err(AuthError::Known { name: known.token().name.clone() });
        }
        if self.live(name.as_str()).is_some() {
            return Err(AuthError::NameTaken { name });
        }
        self.make_room(now)?;
        let id = TokenId(Uuid::now_v7());
        let revoked_at = None;
        let token =
            Token { id, name, scopes, sessions, agent, created_at: now, expires_at, revoked_at };
        self.0.store.put_token(id.0, Some(&encode(&token, &hash)?))?;
        self.0.known.write().put(Held::new(token.clone(), hash, self.0.limits));
        self.0.open.cancel();
        Ok(token)
    }

    /// All tokens, the oldest first, also those that ended.
    #[must_use]
    pub fn list(&self) -> Vec<Token> {
        let known = self.0.known.read();
        known.by_id.values().map(|held| held.grant.token().clone()).collect()
    }

    /// Ends a token, by its id or name: what goes on with it ends too.
    ///
    /// # Errors
    ///
    /// [`AuthError::Unknown`] where there is none, or why it could not be noted.
    pub fn revoke(&self, which: &str) -> Result<Token, AuthError> {
        let _changing = self.0.changing.lock();
        let unknown = || AuthError::Unknown(which.to_owned());
        let id = self.live(which).ok_or_else(unknown)?;
        let (token, hash) = {
            let known = self.0.known.read();
            let held = known.by_id.get(&id).ok_or_else(unknown)?;
            let revoked_at = Some(self.0.clock.now());
            (Token { revoked_at, ..held.grant.token().clone() }, held.hash)
        };
        self.0.store.put_token(id.0, Some(&encode(&token, &hash)?))?;
        self.0.known.write().put(Held::new(token.clone(), hash, self.0.limits));
        Ok(token)
    }

    /// The server's time, by which tokens expire.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The live token with this id or name.
    fn live(&self, which: &str) -> Option<TokenId> {
        let (known, now) = (self.0.known.read(), self.0.clock.now());
        let mut tokens = known.by_id.values().map(|held| held.grant.token());
        let id = which.parse::<TokenId>().ok();
        let is = |token: &&Token| Some(token.id) == id || token.name.as_str() == which;
        tokens.find(|token| token.is_live(now) && is(token)).map(|token| token.id)
    }

    /// Forgets the token that ended first, where there are as many as there may be.
    fn make_room(&self, now: Timestamp) -> Result<(), AuthError> {
        let oldest = {
            let known = self.0.known.read();
            if known.by_id.len() < TOKENS_MAX {
                return Ok(());
            }
            let tokens = known.by_id.values().map(|held| held.grant.token());
            let ended = tokens.filter_map(|token| Some((token.ended_at(now)?, token.id)));
            ended.min().map(|(_, id)| id)
        };
        let oldest = oldest.ok_or(AuthError::TooMany)?;
        self.0.store.put_token(oldest.0, None)?;
        self.0.known.write().remove(oldest);
        Ok(())
    }
}

impl Known {
    fn find(&self, hash: &SecretHash) -> Option<Arc<Grant>> {
        let ids = self.by_place.get(&hash.place())?;
        let held = ids.iter().filter_map(|id| self.by_id.get(id)).find(|held| held.hash.is(hash));
        held.map(|held| Arc::clone(&held.grant))
    }

    /// Puts one in the place of the one with its id, which ends.
    fn put(&mut self, held: Held) {
        let (id, place) = (held.grant.token().id, held.hash.place());
        match self.by_id.insert(id, held) {
            Some(before) => before.grant.ended().cancel(),
            None => self.by_place.entry(place).or_default().push(id),
        }
    }

    fn remove(&mut self, id: TokenId) {
        let Some(held) = self.by_id.remove(&id) else { return };
        held.grant.ended().cancel();
        if let Some(ids) = self.by_place.get_mut(&held.hash.place()) {
            ids.retain(|other| *other != id);
        }
    }
}

impl Held {
    fn new(token: Token, hash: SecretHash, limits: TokenLimits) -> Self {
        Self { hash, grant: Arc::new(Grant::new(token, limits)) }
    }
}

#[cfg(test)]
mod tests;
