//! The reason why a request has no rights.

/// A request without rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthorized {
    /// The request has no token.
    #[error(
        "the request needs a token: send 'Authorization: Bearer bb_…'; 'blackboard token create --name NAME' makes one"
    )]
    Missing,
    /// The request has more than one token.
    #[error("the request has several tokens; send one, in Authorization or X-API-Key")]
    Several,
    /// The `Authorization` header has no scheme.
    #[error("the Authorization header lacks the scheme; send 'Authorization: Bearer bb_…'")]
    NoScheme,
    /// The token was never created here.
    #[error("the token is unknown to this server")]
    Unknown,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// The login of a browser has ended.
    #[error("the login has ended; log in again")]
    LoggedOut,
}
