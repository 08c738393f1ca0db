//! Tokens: create, list, revoke, disable.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Done, Refusal, done};
use super::request::CarriedToken;
use blackboard_auth::{
    AuthError, Created, NewToken, Scope, SessionPattern, Token, TokenId, Tokens,
};
use blackboard_board::{AgentName, Timestamp, TokenName};
use blackboard_service::ServiceError;

/// A token as listed, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenLine {
    /// The id.
    pub id: String,
    /// The name.
    pub name: TokenName,
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// The patterns of the sessions that it reaches.
    pub sessions: Vec<SessionPattern>,
    /// The agent that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The status: `live`, `expired` or `revoked`.
    pub state: String,
    /// The time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// The time of its expiry or revocation, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
}

/// The secret of a new token, shown once.
#[derive(Serialize, Deserialize)]
pub struct MadeToken {
    /// `bb_` and 43 characters.
    pub token: String,
    /// True if no request needed a token before.
    pub first: bool,
}

/// The result of disabling tokens.
#[derive(Serialize, Deserialize)]
pub struct DisabledTokens {
    /// The number of deleted tokens, with expired and revoked ones.
    pub deleted: usize,
}

/// The result of an import of a token.
#[derive(Serialize, Deserialize)]
pub struct ImportedToken {
    /// Its name, unless the store had it already.
    pub name: Option<TokenName>,
}

/// The number of lines written at once.
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

/// Creates a token.
pub(super) async fn create(tokens: &Tokens, new: NewToken, answer: &mut Answer) -> Done {
    let (created, secret) = blocking(tokens, move |tokens| tokens.create(new)).await?;
    let Created { token, first } = created;
    write(tokens, &[token], answer).await?;
    done(&MadeToken { token: secret.reveal().to_owned(), first })
}

/// Exports all tokens.
pub(super) async fn export(tokens: &Tokens, answer: &mut Answer) -> Done {
    let rows = blocking(tokens, |tokens| Ok(tokens.rows()?)).await?;
    for some in rows.chunks(LINES_AT_ONCE) {
        let mut lines = String::new();
        for (id, stored) in some {
            let carried = CarriedToken { id: id.0, stored: stored.clone() };
            lines.push_str(&serde_json::to_string(&carried).map_err(Refusal::Unwritten)?);
            lines.push('\n');
        }
        answer.lines(&lines).await?;
    }
    done(&serde_json::json!({ "tokens": rows.len() }))
}

/// Takes in a token of another store.
pub(super) async fn import(tokens: &Tokens, carried: CarriedToken) -> Done {
    let CarriedToken { id, stored } = carried;
    let taken = blocking(tokens, move |tokens| tokens.take_in(TokenId(id), &stored)).await?;
    done(&ImportedToken { name: taken.map(|token| token.name) })
}

/// Lists all tokens.
pub(super) async fn list(tokens: &Tokens, answer: &mut Answer) -> Done {
    let all = tokens.list();
    for some in all.chunks(LINES_AT_ONCE) {
        write(tokens, some, answer).await?;
    }
    done(&serde_json::json!({ "tokens": all.len() }))
}

/// Revokes a token.
pub(super) async fn revoke(tokens: &Tokens, which: String, answer: &mut Answer) -> Done {
    let token = blocking(tokens, move |tokens| tokens.revoke(&which)).await?;
    write(tokens, &[token], answer).await?;
    done(&serde_json::json!({}))
}

/// Deletes all tokens.
pub(super) async fn disable(tokens: &Tokens) -> Done {
    let deleted = blocking(tokens, Tokens::disable).await?;
    done(&DisabledTokens { deleted })
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

/// Runs a change of the store on a blocking thread.
async fn blocking<T: Send + 'static>(
    tokens: &Tokens,
    work: impl FnOnce(&Tokens) -> Result<T, AuthError> + Send + 'static,
) -> Result<T, Refusal> {
    let tokens = tokens.clone();
    let worked = tokio::task::spawn_blocking(move || work(&tokens)).await;
    Ok(worked.map_err(|_| ServiceError::Fault)??)
}
