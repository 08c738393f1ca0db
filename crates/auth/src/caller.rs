//! The caller of a request: nobody, anyone, a signed address, or the holder of a token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, pending};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Grant, Unauthorized};
use blackboard_board::{AgentName, Timestamp};
use blackboard_fairness::Client;

/// The caller of a request.
#[derive(Clone, Debug)]
pub struct Caller(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// An unauthenticated caller of a public route.
    Nobody,
    /// Any caller of a server without tokens, until a first one is created. Shared, since cloning a cancellation token
    /// takes a lock that all requests would wait for.
    Anyone(Arc<CancellationToken>),
    /// The holder of a signed image address; its signature is checked with the image.
    Signed,
    /// The holder of a token, perhaps by a login of a browser.
    Bearer { grant: Arc<Grant>, login: Option<LoginEnd> },
}

/// The end of a login, which ends its requests and streams before their token does.
#[derive(Clone, Debug)]
pub(super) struct LoginEnd {
    /// Cancelled by a logout or by the end of the token.
    pub(super) ended: CancellationToken,
    /// The time at which the login ends at the latest.
    pub(super) expires_at: Timestamp,
}

impl Caller {
    /// Returns the caller of a public route, who sees no board.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(Kind::Nobody)
    }

    /// Returns the reader of an image by a signed address.
    #[must_use]
    pub const fn signed() -> Self {
        Self(Kind::Signed)
    }

    /// Returns the owner of the data directory, who reaches everything.
    #[must_use]
    pub fn owner() -> Self {
        Self::anyone(Arc::default())
    }

    pub(super) const fn anyone(ended: Arc<CancellationToken>) -> Self {
        Self(Kind::Anyone(ended))
    }

    pub(super) const fn with(grant: Arc<Grant>) -> Self {
        Self(Kind::Bearer { grant, login: None })
    }

    /// Returns the caller that has these rights until the end of a login.
    pub(super) fn until(self, login: LoginEnd) -> Self {
        match self.0 {
            Kind::Bearer { grant, login: _ } => Self(Kind::Bearer { grant, login: Some(login) }),
            kind @ (Kind::Nobody | Kind::Anyone(_) | Kind::Signed) => Self(kind),
        }
    }

    /// Returns the token of the request, if any.
    #[must_use]
    pub fn grant(&self) -> Option<&Arc<Grant>> {
        match &self.0 {
            Kind::Bearer { grant, .. } => Some(grant),
            Kind::Nobody | Kind::Anyone(_) | Kind::Signed => None,
        }
    }

    /// Returns the end of the login by which the caller holds its token, if any.
    const fn login(&self) -> Option<&LoginEnd> {
        match &self.0 {
            Kind::Bearer { login, .. } => login.as_ref(),
            Kind::Nobody | Kind::Anyone(_) | Kind::Signed => None,
        }
    }

    /// Returns true if rights that have ended did so with a login, and not with its token.
    #[must_use]
    pub fn is_logged_out(&self) -> bool {
        let (Some(grant), Some(login)) = (self.grant(), self.login()) else { return false };
        if grant.ended().is_cancelled() || login.ended.is_cancelled() {
            return !grant.ended().is_cancelled();
        }
        grant.token().expires_at.is_none_or(|expires_at| login.expires_at < expires_at)
    }

    /// Returns the client whose share the requests take: the token, else the address.
    #[must_use]
    pub fn client(&self) -> Client {
        self.grant()
            .map_or_else(Client::current, |grant| Client::Token(grant.token().id.0.into_bytes()))
    }

    /// Returns true if the only right is a signed address.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        matches!(self.0, Kind::Signed)
    }

    /// Returns the signal that ends the rights: a logout, a revocation, or the creation of the first token.
    #[must_use]
    pub fn ended(&self) -> Option<&CancellationToken> {
        match &self.0 {
            Kind::Anyone(ended) => Some(ended),
            Kind::Bearer { login: Some(login), .. } => Some(&login.ended),
            Kind::Bearer { grant, login: None } => Some(grant.ended()),
            Kind::Nobody | Kind::Signed => None,
        }
    }

    /// Returns the time until the token or the login expires.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let login = self.login().map(|login| login.expires_at);
        let expires_at = self.grant()?.token().expires_at.into_iter().chain(login).min()?;
        Some(Duration::from_millis(u64::try_from(expires_at.0 - now.0).unwrap_or(0)))
    }

    /// Checks that the rights have not ended since the request came.
    ///
    /// # Errors
    ///
    /// The reason why they have.
    pub fn still_may(&self, now: Timestamp) -> Result<(), Unauthorized> {
        let is_over = self.ended().is_some_and(CancellationToken::is_cancelled)
            || self.left(now).is_some_and(|left| left.is_zero());
        if is_over { Err(self.why_over()) } else { Ok(()) }
    }

    /// Returns the reason why the rights have ended, once they have.
    #[must_use]
    pub fn why_over(&self) -> Unauthorized {
        if self.is_logged_out() {
            return Unauthorized::LoggedOut;
        }
        match (self.grant(), self.ended().is_some_and(CancellationToken::is_cancelled)) {
            // The first token was created meanwhile.
            (None, _) => Unauthorized::Missing,
            (Some(_), true) => Unauthorized::Revoked,
            (Some(_), false) => Unauthorized::Expired,
        }
    }

    /// Waits until the rights end, perhaps for ever, and returns the reason.
    pub async fn over(&self, now: Timestamp) -> Unauthorized {
        let revoked = OptionFuture::from(self.ended().map(CancellationToken::cancelled));
        let expired = OptionFuture::from(self.left(now).map(sleep));
        tokio::select! {
            Some(()) = revoked => {}
            Some(()) = expired => {}
            else => pending().await,
        }
        self.why_over()
    }

    /// Returns the agent that the token is bound to.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        self.grant()?.token().agent.as_ref()
    }

    /// Returns the id of a token without an agent, which tells callers apart that write under the same name.
    #[must_use]
    pub fn identity(&self) -> Option<[u8; 16]> {
        let token = self.grant()?.token();
        token.agent.is_none().then(|| token.id.0.into_bytes())
    }
}

impl fmt::Display for Caller {
    /// Formats the caller as the log names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Nobody | Kind::Anyone(_) => f.write_str("anyone"),
            Kind::Signed => f.write_str("signed"),
            Kind::Bearer { grant, .. } => grant.token().name.fmt(f),
        }
    }
}
