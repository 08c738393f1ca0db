//! Tokens: create, list, revoke.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Done, Refusal, done};
use crate::auth::{AuthError, NewToken, Scope, SessionPattern, Token, Tokens};
use crate::board::{AgentName, Timestamp, TokenName};
use crate::service::ServiceError;

/// A token as a line tells of it; it does not have the token itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenLine {
    /// Which one.
    pub id: String,
    /// What it is called.
    pub name: TokenName,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Which sessions it reaches.
    pub sessions: Vec<SessionPattern>,
    /// The agent as which it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Whether it opens anything: `live`, `expired` or `revoked`.
    pub state: String,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// When it ends or ended, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
}

/// The token itself, which is told once.
#[derive(Serialize, Deserialize)]
pub struct MadeToken {
    /// `bb_` and 43 characters.
    pub token: String,
}

/// How many lines are written at once.
const LINES_AT_ONCE: usize = 256;

impl TokenLine {
    fn of(token: &Token, now: Timestamp) -> Self {
        let state = match (token.revoked_at, token.is_expired(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "live",
        };
        Self {
            id: token.id.to_string(),
            name: token.name.clone(),
            scopes: token.scopes.iter().collect(),
            sessions: token.sessions.clone(),
            agent: token.agent.clone(),
            state: state.to_owned(),
            created_at: token.created_at.to_string(),
            ends_at: token.revoked_at.or(token.expires_at).map(|at| at.to_string()),
        }
    }
}

/// Makes one.
pub(super) async fn create(tokens: &Tokens, new: NewToken, answer: &mut Answer) -> Done {
    let (token, secret) = blocking(tokens, move |tokens| tokens.create(new)).await?;
    write(tokens, &[token], answer).await?;
    done(&MadeToken { token: secret.reveal().to_owned() })
}

/// Lists all of them.
pub(super) async fn list(tokens: &Tokens, answer: &mut Answer) -> Done {
    let all = tokens.list();
    for some in all.chunks(LINES_AT_ONCE) {
        write(tokens, some, answer).await?;
    }
    done(&serde_json::json!({ "tokens": all.len() }))
}

/// Ends one.
pub(super) async fn revoke(tokens: &Tokens, which: String, answer: &mut Answer) -> Done {
    let token = blocking(tokens, move |tokens| tokens.revoke(&which)).await?;
    write(tokens, &[token], answer).await?;
    done(&serde_json::json!({}))
}

async fn write(tokens: &Tokens, some: &[Token], answer: &mut Answer) -> Result<(), Refusal> {
    let mut lines = String::new();
    for token in some {
        let line = serde_json::to_string(&TokenLine::of(token, tokens.now()));
        lines.push_str(&line.map_err(Refusal::Unwritten)?);
        lines.push('\n');
    }
    answer.lines(&lines).await
}

/// The store is written on a thread that may block.
async fn blocking<T: Send + 'static>(
    tokens: &Tokens,
    work: impl FnOnce(&Tokens) -> Result<T, AuthError> + Send + 'static,
) -> Result<T, Refusal> {
    let tokens = tokens.clone();
    let worked = tokio::task::spawn_blocking(move || work(&tokens)).await;
    Ok(worked.map_err(|_| ServiceError::Fault)??)
}
