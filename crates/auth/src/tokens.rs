//! Creates, looks up and revokes the tokens of a store. A change takes effect once it is durable.

mod refused_tokens;
mod stored_token;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::secret::SecretHash;
use super::{
    Caller, Created, Grant, NewToken, PATTERNS_MAX, Scope, Secret, Token, TokenId, TokenLimits,
    Unauthorized,
};
use blackboard_board::{Code, Timestamp, TokenName};
use blackboard_clock::Clock;
use blackboard_fairness::Client;
use blackboard_store::{LogoutStore, SigningKey, Store, StoreError, TokenRow};
use refused_tokens::RefusedTokens;
use stored_token::{Unreadable, decode, encode};

/// The maximum number of stored tokens; beyond, the one that ended first is deleted.
pub const TOKENS_MAX: usize = 10_000;

/// A token that was not created, found or revoked.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A live token has this name.
    #[error("a token named {name} exists; revoke it first, or choose another name")]
    NameTaken {
        /// The name.
        name: TokenName,
    },
    /// The store has the same token already.
    #[error("this token already exists under the name {name}")]
    Known {
        /// The name of that token.
        name: TokenName,
    },
    /// The store is full of live tokens.
    #[error("the limit of {TOKENS_MAX} live tokens is reached; revoke one first")]
    TooMany,
    /// The token would grant nothing.
    #[error("a token needs at least one scope, and 1 to {PATTERNS_MAX} session patterns")]
    Nothing,
    /// The first token would leave nobody with all rights.
    #[error(
        "once the first token exists, every request needs a token, so the first needs the scope admin; add --scopes \
         admin, or --anyway"
    )]
    FirstWithoutAdmin,
    /// The server must not run without tokens.
    #[error("tokens stay required: {0}")]
    Kept(KeptBecause),
    /// No token has this id, and no live token this name.
    #[error("no live token has the name or id {0:?}")]
    Unknown(String),
    /// The token of another store cannot be read.
    #[error("the token cannot be read: {0}")]
    Unreadable(String),
    /// The system returned no random bits.
    #[error("the system returned no random bits")]
    Random(#[from] getrandom::Error),
    /// The token has no stored form.
    #[error("the token cannot be stored")]
    Unstorable(#[from] serde_json::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NameTaken { .. }
            | Self::Known { .. }
            | Self::TooMany
            | Self::Nothing
            | Self::Unreadable(_)
            | Self::FirstWithoutAdmin
            | Self::Kept(_) => Code::InvalidField,
            Self::Unknown(_) => Code::Unauthorized,
            Self::Random(_) | Self::Unstorable(_) | Self::Store(_) => Code::Internal,
        }
    }
}

/// The reason for which a running server keeps its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeptBecause {
    /// Other machines can reach the server.
    #[error(
        "other machines can reach {0}; first restart the server on a loopback address such as 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The configuration asks for tokens.
    #[error(
        "the server was started with --require-token or --admin-token-file; first restart it without them"
    )]
    Configured,
}

/// The tokens of one store. Clones share them.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Clock,
    limits: TokenLimits,
    known: RwLock<Known>,
    /// Held during a change, so that names stay unique.
    changing: Mutex<()>,
    kept: OnceLock<KeptBecause>,
    refused: RefusedTokens,
    /// The version of the rows that were read last. It is read before them, so that a change in between is seen next time.
    version: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// Cancelled once requests need a token.
    open: Arc<CancellationToken>,
    by_place: HashMap<[u8; 8], Vec<TokenId>>,
    by_id: BTreeMap<TokenId, KnownToken>,
}

struct KnownToken {
    hash: SecretHash,
    grant: Arc<Grant>,
}

impl Tokens {
    /// Loads the tokens of a store. An unreadable token grants nothing, and is reported in the log.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn open(
        store: Arc<dyn Store>,
        clock: Clock,
        limits: TokenLimits,
    ) -> Result<Self, StoreError> {
        let version = AtomicU64::new(store.tokens_version()?);
        let mut known = Known::default();
        for row in store.tokens()? {
            known.open.cancel();
            match row.body.as_deref().map(|body| decode(row.id, body)) {
                Some(Ok((token, hash))) => known.put(KnownToken::new(token, hash, limits)),
                Some(Err(why)) => tracing::error!(id = %row.id, %why, "a token cannot be read"),
                None => tracing::error!(id = %row.id, "a token is damaged"),
            }
        }
        let (known, changing) = (RwLock::new(known), Mutex::default());
        let (kept, refused) = (OnceLock::new(), RefusedTokens::new(limits.rate));
        Ok(Self(Arc::new(Inner { store, clock, limits, known, changing, kept, refused, version })))
    }

    /// The key with which the servers of the store sign.
    pub(super) fn signing_key(&self) -> &SigningKey {
        self.0.store.signing_key()
    }

    /// The logouts of the servers that accept each other's logins, if this one has such.
    pub(super) fn logout_store(&self) -> Option<&dyn LogoutStore> {
        self.0.store.logout_store()
    }

    /// Takes in what other servers of the store changed. A revocation by one holds here from then on.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn refresh(&self) -> Result<(), StoreError> {
        let version = self.0.store.tokens_version()?;
        if self.0.version.load(Ordering::Acquire) == version {
            return Ok(());
        }
        let rows = self.0.store.tokens()?;
        let mut known = self.0.known.write();
        let stored: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
        let gone: Vec<TokenId> =
            known.by_id.keys().filter(|id| !stored.contains(&id.0)).copied().collect();
        gone.into_iter().for_each(|id| known.remove(id));
        for row in &rows {
            match row.body.as_deref().map(|body| decode(row.id, body)) {
                Some(Ok((token, hash))) => {
                    let same = known.by_id.get(&token.id).map(|held| held.grant.token());
                    if same != Some(&token) {
                        let event = if token.revoked_at.is_some() { "revoked" } else { "created" };
                        tracing::info!(token = %token.name, id = %token.id, by_another_server = true, "{event} a token");
                        known.put(KnownToken::new(token, hash, self.0.limits));
                    }
                }
                Some(Err(why)) => tracing::error!(id = %row.id, %why, "a token cannot be read"),
                None => tracing::error!(id = %row.id, "a token is damaged"),
            }
        }
        if !rows.is_empty() {
            known.open.cancel();
        } else if known.open.is_cancelled() && self.0.kept.get().is_none() {
            known.open = Arc::default();
        }
        drop(known);
        self.0.version.store(version, Ordering::Release);
        Ok(())
    }

    /// Refuses to disable tokens from now on. Only the first reason is kept.
    pub fn keep(&self, because: KeptBecause) {
        self.0.kept.get_or_init(|| because);
    }

    /// Returns true if requests need a token, as they do from the first token until tokens are disabled.
    #[must_use]
    pub fn are_required(&self) -> bool {
        self.0.known.read().open.is_cancelled()
    }

    /// Returns the caller that sends a request with this token, or with none.
    ///
    /// # Errors
    ///
    /// [`Unauthorized`] if a live token is needed.
    pub fn authenticate(&self, presented: Option<&str>) -> Result<Caller, Unauthorized> {
        let known = self.0.known.read();
        if !known.open.is_cancelled() {
            return Ok(Caller::anyone(Arc::clone(&known.open)));
        }
        let secret: Secret =
            presented.ok_or(Unauthorized::Missing)?.parse().map_err(|_| Unauthorized::Unknown)?;
        let grant = known.find(&secret.hash()).ok_or(Unauthorized::Unknown)?;
        self.live_holder(grant)
    }

    /// Returns the caller that a token's id stands for, as in a login.
    ///
    /// # Errors
    ///
    /// [`Unauthorized`] if the token is not live any more.
    pub fn holder(&self, id: TokenId) -> Result<Caller, Unauthorized> {
        let grant = self.0.known.read().by_id.get(&id).map(|held| Arc::clone(&held.grant));
        self.live_holder(grant.ok_or(Unauthorized::Unknown)?)
    }

    fn live_holder(&self, grant: Arc<Grant>) -> Result<Caller, Unauthorized> {
        if grant.token().revoked_at.is_some() {
            return Err(Unauthorized::Revoked);
        }
        if grant.token().is_expired(self.0.clock.now()) {
            return Err(Unauthorized::Expired);
        }
        Ok(Caller::with(grant))
    }

    /// Counts a refused token of this client.
    ///
    /// # Errors
    ///
    /// The time until the client may send another one.
    pub fn count_refused(&self, client: Client) -> Result<(), Duration> {
        self.0.refused.count(client)
    }

    /// Creates a token, and returns its secret with its description.
    ///
    /// # Errors
    ///
    /// [`AuthError`]; no token was created then.
    pub fn create(&self, new: NewToken) -> Result<(Created, Secret), AuthError> {
        let secret = Secret::random()?;
        Ok((self.adopt(new, &secret)?, secret))
    }

    /// Creates a token with a given secret.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub fn adopt(&self, new: NewToken, secret: &Secret) -> Result<Created, AuthError> {
        self.adopt_as(TokenId(Uuid::now_v7()), new, secret)
    }

    /// Creates a token with a given secret under an id that another server may choose too.
    pub(super) fn adopt_as(
        &self,
        id: TokenId,
        new: NewToken,
        secret: &Secret,
    ) -> Result<Created, AuthError> {
        let _changing = self.0.changing.lock();
        self.refresh()?;
        let now = self.0.clock.now();
        let NewToken { name, scopes, sessions, agent, expires_at, anyway } = new;
        if scopes.iter().next().is_none() || !(1..=PATTERNS_MAX).contains(&sessions.len()) {
            return Err(AuthError::Nothing);
        }
        let first = !self.are_required();
        if first && !anyway && !scopes.allow(Scope::Admin) {
            return Err(AuthError::FirstWithoutAdmin);
        }
        let hash = secret.hash();
        if let Some(known) = self.0.known.read().find(&hash) {
            return Err(AuthError::Known { name: known.token().name.clone() });
        }
        if self.live(name.as_str()).is_some() {
            return Err(AuthError::NameTaken { name });
        }
        self.make_room(now)?;
        let revoked_at = None;
        let token =
            Token { id, name, scopes, sessions, agent, created_at: now, expires_at, revoked_at };
        self.0.store.put_token(id.0, Some(&encode(&token, &hash)?))?;
        let mut known = self.0.known.write();
        known.put(KnownToken::new(token.clone(), hash, self.0.limits));
        known.open.cancel();
        tracing::info!(token = %token.name, id = %token.id, first, "created a token");
        Ok(Created { token, first })
    }

    /// Returns all tokens as stored, for another store: with hashes, without secrets.
    ///
    /// # Errors
    ///
    /// The store's error. A damaged token is left out.
    pub fn rows(&self) -> Result<Vec<(TokenId, String)>, StoreError> {
        let text = |row: TokenRow| Some((TokenId(row.id), String::from_utf8(row.body?).ok()?));
        Ok(self.0.store.tokens()?.into_iter().filter_map(text).collect())
    }

    /// Takes in a token as another store has it. Returns `None` if this store has it already.
    ///
    /// # Errors
    ///
    /// [`AuthError`]; the token was not taken then.
    pub fn take_in(&self, id: TokenId, body: &str) -> Result<Option<Token>, AuthError> {
        let unreadable = |why: Unreadable| AuthError::Unreadable(why.to_string());
        let (token, hash) = decode(id.0, body.as_bytes()).map_err(unreadable)?;
        let _changing = self.0.changing.lock();
        self.refresh()?;
        let now = self.0.clock.now();
        if self.0.known.read().by_id.contains_key(&id) {
            return Ok(None);
        }
        if let Some(known) = self.0.known.read().find(&hash) {
            return Err(AuthError::Known { name: known.token().name.clone() });
        }
        if token.is_live(now) && self.live(token.name.as_str()).is_some() {
            return Err(AuthError::NameTaken { name: token.name });
        }
        self.make_room(now)?;
        self.0.store.put_token(id.0, Some(&encode(&token, &hash)?))?;
        let mut known = self.0.known.write();
        known.put(KnownToken::new(token.clone(), hash, self.0.limits));
        known.open.cancel();
        tracing::info!(token = %token.name, id = %token.id, "imported a token of another store");
        Ok(Some(token))
    }

    /// Returns all tokens, oldest first, with those that ended.
    #[must_use]
    pub fn list(&self) -> Vec<Token> {
        let known = self.0.known.read();
        known.by_id.values().map(|held| held.grant.token().clone()).collect()
    }

    /// Revokes a token by its id or name, and ends its requests and streams.
    ///
    /// # Errors
    ///
    /// [`AuthError::Unknown`] if there is no such token, or the store's error.
    pub fn revoke(&self, which: &str) -> Result<Token, AuthError> {
        let _changing = self.0.changing.lock();
        self.refresh()?;
        let unknown = || AuthError::Unknown(which.to_owned());
        let id = self.live(which).ok_or_else(unknown)?;
        let (token, hash) = {
            let known = self.0.known.read();
            let held = known.by_id.get(&id).ok_or_else(unknown)?;
            let revoked_at = Some(self.0.clock.now());
            (Token { revoked_at, ..held.grant.token().clone() }, held.hash)
        };
        self.0.store.put_token(id.0, Some(&encode(&token, &hash)?))?;
        self.0.known.write().put(KnownToken::new(token.clone(), hash, self.0.limits));
        tracing::info!(token = %token.name, id = %token.id, "revoked a token");
        Ok(token)
    }

    /// Deletes all tokens, and ends their requests and streams: requests need no token any more. Returns the number of
    /// deleted tokens.
    ///
    /// The oldest token goes last, since it probably has the scope `admin`: a crash in between locks nobody out.
    ///
    /// # Errors
    ///
    /// [`AuthError::Kept`] if the server must not run without tokens, or the store's error.
    pub fn disable(&self) -> Result<usize, AuthError> {
        let _changing = self.0.changing.lock();
        self.refresh()?;
        if let Some(because) = self.0.kept.get() {
            return Err(AuthError::Kept(*because));
        }
        // Rows that cannot be read require tokens too.
        let mut ids: Vec<_> = self.0.store.tokens()?.into_iter().map(|row| row.id).collect();
        ids.sort_unstable();
        for id in ids.iter().rev() {
            self.0.store.put_token(*id, None)?;
            self.0.known.write().remove(TokenId(*id));
        }
        self.0.known.write().open = Arc::default();
        tracing::warn!(tokens = ids.len(), "deleted all tokens: requests need none");
        Ok(ids.len())
    }

    /// Returns the server's time, by which tokens expire.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Finds the live token with this id or name.
    fn live(&self, which: &str) -> Option<TokenId> {
        let (known, now) = (self.0.known.read(), self.0.clock.now());
        let mut tokens = known.by_id.values().map(|held| held.grant.token());
        let id = which.parse::<TokenId>().ok();
        let is = |token: &&Token| Some(token.id) == id || token.name.as_str() == which;
        tokens.find(|token| token.is_live(now) && is(token)).map(|token| token.id)
    }

    /// Deletes the token that ended first if the store is full.
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

    /// Replaces the token with the same id, and ends the old grant.
    fn put(&mut self, held: KnownToken) {
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

impl KnownToken {
    fn new(token: Token, hash: SecretHash, limits: TokenLimits) -> Self {
        Self { hash, grant: Arc::new(Grant::new(token, limits)) }
    }
}

#[cfg(test)]
mod tests;
