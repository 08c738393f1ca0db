//! Authentication: tokens and the rights that they grant.
//!
//! A server without tokens grants everything to anyone. Once a token was created, every request needs one, even after
//! the last was revoked. A token is shown once, when it is created; only its hash is stored.
//!
//! [`Caller`] is the only place that decides who may see or do something. A door takes a caller with the request, and
//! asks it; nothing here knows HTTP.

mod caller;
mod first_token;
mod grant;
mod logins;
mod origin;
mod pattern;
mod rate;
mod rights;
mod scope;
mod secret;
mod token;
mod tokens;
mod unauthorized;
mod visible_commit;

pub use caller::Caller;
pub use first_token::{ADMIN_TOKEN_FILE, FirstTokenError, first_token, given_token};
pub use grant::{Grant, TokenLimits};
pub use logins::{BeginError, LOGINS_MAX, Login, Logins, TOKEN_LOGINS_MAX, TOKEN_LOGOUTS_MAX};
pub use origin::RequestOrigin;
pub use pattern::{InvalidPattern, SessionPattern};
pub use rights::Forbidden;
pub use scope::{InvalidScope, Scope, Scopes};
pub use secret::{InvalidSecret, SECRET_CHARS, Secret};
pub use token::{Created, NewToken, PATTERNS_MAX, Token, TokenId};
pub use tokens::{AuthError, KeptBecause, TOKENS_MAX, Tokens};
pub use unauthorized::Unauthorized;
pub use visible_commit::is_open;
