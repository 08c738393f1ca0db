//! Extractors for the resources named in a path, and for the author.
use axum::extract::{FromRef, FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};

use crate::access::{caller_of, is_read};
use crate::response::problem::Problem;
use crate::response::problem::{no_part, no_route};
use blackboard_address::percent_decode;
use blackboard_address::{InvalidStatePath, state_path};
use blackboard_auth::{Caller, Forbidden};
use blackboard_board::{
    AgentName, CheckpointName, Code, Digest, InvalidName, InvalidPath, LogName, Seq, SessionName,
    StatePath,
};
use blackboard_service::{Service, SessionHandle};

/// The header that names the agent of a request, unless its token does.
pub(crate) const AGENT_HEADER: &str = "x-agent-id";

/// The path of the messages to an agent.
pub(crate) const MESSAGES: &str = "/v1/sessions/{session}/agents/{agent}/messages";
/// The path of a message.
pub(crate) const MESSAGE: &str = "/v1/sessions/{session}/agents/{agent}/messages/{seq}";
/// The path of the acknowledgement of a message.
const ACK: &str = "/v1/sessions/{session}/agents/{agent}/messages/{seq}/ack";

/// The session of a path.
pub(crate) struct SessionPath(pub(crate) SessionHandle);

/// The log of a path: one of the four, or one of an agent's.
pub(crate) struct LogPath {
    pub(crate) session: SessionHandle,
    pub(crate) log: LogName,
}

/// The entry of a path.
pub(crate) struct EntryPath {
    pub(crate) session: SessionHandle,
    pub(crate) log: LogName,
    pub(crate) seq: Seq,
}

/// The agent of a path.
pub(crate) struct AgentPath {
    pub(crate) session: SessionHandle,
    pub(crate) agent: AgentName,
}

/// The checkpoint of a path.
pub(crate) struct CheckpointPath(pub(crate) CheckpointName);

/// The blob of a path.
pub(crate) struct BlobPath {
    pub(crate) session: SessionHandle,
    pub(crate) sha256: Digest,
}

/// The state path of a path.
pub(crate) struct StateAt {
    pub(crate) session: SessionHandle,
    pub(crate) path: StatePath,
}

/// The agent on whose behalf a request is made, if any: the token's, else the header's.
pub(crate) struct Author(pub(crate) Option<AgentName>);

#[derive(Clone)]
struct Named {
    session: SessionHandle,
    log: Option<LogName>,
    seq: Option<Seq>,
    checkpoint: Option<CheckpointName>,
    blob: Option<Digest>,
}

impl Named {
    async fn read<S>(parts: &mut Parts, state: &S) -> Result<Self, Problem>
    where
        S: Send + Sync,
        Service: FromRef<S>,
    {
        if let Some(named) = parts.extensions.get::<Self>() {
            return Ok(named.clone());
        }
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| {
            Problem::new(Code::InvalidEncoding, "the path is not percent-encoded UTF-8")
        })?;
        let param = |name: &str| params.iter().find(|(key, _)| *key == name).map(|(_, text)| text);
        let session = param("session").unwrap_or_default();
        let session = session.parse().map_err(|why| invalid_name("session", why))?;
        let caller = caller_of(parts)?;
        let SessionPath(session) =
            SessionPath::of(&Service::from_ref(state), &caller, &session).await?;
        let log = match (param("log"), param("agent")) {
            (_, Some(agent)) => {
                let agent = agent.parse().map_err(|why| invalid_name("agent", why))?;
                let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
                let of_messages = [MESSAGES, MESSAGE, ACK].map(Some).contains(&route);
                Some(if of_messages { LogName::Messages(agent) } else { LogName::Memory(agent) })
            }
            (Some(log), None) => Some(board_log(log)?),
            (None, None) => None,
        };
        let seq = param("seq").map(parse_seq).transpose()?;
        let checkpoint = param("checkpoint").map(str::parse).transpose();
        let checkpoint = checkpoint.map_err(|why| invalid_name("checkpoint", why))?;
        let blob = param("sha256").map(parse_digest).transpose()?;
        let named = Self { session, log, seq, checkpoint, blob };
        parts.extensions.insert(named.clone());
        Ok(named)
    }

    /// Returns the log, if the caller may read or write it.
    fn log(&self, parts: &Parts) -> Result<LogName, Problem> {
        let log = self.log.clone().unwrap_or(LogName::Screenshots);
        permits(self.session.caller(), &parts.method, &log)?;
        Ok(log)
    }
}

/// Refuses a caller who may not read or write the log with this method.
fn permits(caller: &Caller, method: &Method, log: &LogName) -> Result<(), Forbidden> {
    if is_read(method) {
        caller.sees_log(log)
    } else if *method == Method::POST {
        caller.appends_to(log)
    } else {
        caller.writes_log(log)
    }
}

impl SessionPath {
    /// Returns the session of this name for its caller.
    pub(crate) async fn of(
        service: &Service,
        caller: &Caller,
        name: &SessionName,
    ) -> Result<Self, Problem> {
        Ok(Self(Box::pin(service.session(caller, name)).await?))
    }
}

impl LogPath {
    /// Returns a log of the board of this name, if the caller may read or write it with this method.
    pub(crate) async fn of(
        service: &Service,
        caller: &Caller,
        name: &SessionName,
        log: LogName,
        method: &Method,
    ) -> Result<Self, Problem> {
        let SessionPath(session) = SessionPath::of(service, caller, name).await?;
        permits(caller, method, &log)?;
        Ok(Self { session, log })
    }
}

fn board_log(name: &str) -> Result<LogName, Problem> {
    let log = LogName::of_board(name);
    log.ok_or_else(|| no_part(name))
}

/// Parses a seq. A segment that is not a seq names no entry.
fn parse_seq(text: &str) -> Result<Seq, Problem> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let seq = text.parse().ok().filter(|_| plain).map(Seq);
    seq.ok_or_else(|| {
        Problem::new(
            Code::EntryNotFound,
            format!(
                "'{text}' is not a seq; expected a whole number of at least 1 without leading zeros"
            ),
        )
    })
}

/// Parses the digest of a blob, in digits of any case.
fn parse_digest(text: &str) -> Result<Digest, Problem> {
    Digest::from_hex(&text.to_ascii_lowercase()).ok_or_else(|| {
        let detail = "a blob's name is the SHA-256 of its bytes, as 64 hexadecimal digits";
        Problem::new(Code::InvalidName, detail)
    })
}

fn invalid_name(whose: &str, why: InvalidName) -> Problem {
    Problem::new(Code::InvalidName, format!("the {whose}'s name is invalid: {why}"))
}

impl<S> FromRequestParts<S> for SessionPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Named::read(parts, state).await?.session))
    }
}

impl<S> FromRequestParts<S> for LogPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = Named::read(parts, state).await?;
        let log = named.log(parts)?;
        Ok(Self { session: named.session, log })
    }
}

impl<S> FromRequestParts<S> for EntryPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = Named::read(parts, state).await?;
        let log = named.log(parts)?;
        Ok(Self { session: named.session, log, seq: named.seq.unwrap_or_default() })
    }
}

impl<S> FromRequestParts<S> for AgentPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Named { session, log, .. } = Named::read(parts, state).await?;
        let agent = log.as_ref().and_then(LogName::owner).cloned();
        agent.map(|agent| Self { session, agent }).ok_or_else(|| no_route(parts.uri.path()))
    }
}

impl<S> FromRequestParts<S> for CheckpointPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Named::read(parts, state)
            .await?
            .checkpoint
            .map(Self)
            .ok_or_else(|| no_route(parts.uri.path()))
    }
}

impl<S> FromRequestParts<S> for BlobPath
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Named::read(parts, state).await? {
            Named { session, blob: Some(sha256), .. } => Ok(Self { session, sha256 }),
            Named { .. } => Err(no_route(parts.uri.path())),
        }
    }
}

impl<S> FromRequestParts<S> for StateAt
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Named { session, .. } = Named::read(parts, state).await?;
        // The path as sent: a percent-encoded slash belongs to a key.
        let path = parts.uri.path().splitn(STATE_PARTS, '/').nth(STATE_PARTS - 1);
        let path = path.map_or_else(|| Ok(StatePath::root()), state_path).map_err(|why| {
            let code = match why {
                InvalidStatePath::Encoding => Code::InvalidEncoding,
                InvalidStatePath::Path(InvalidPath::TooDeep { .. }) => Code::TooDeep,
                InvalidStatePath::Path(_) => Code::InvalidName,
            };
            Problem::new(code, why.to_string())
        })?;
        Ok(Self { session, path })
    }
}

/// `/v1/sessions/{session}/state/` has five slashes, and the path follows the last.
const STATE_PARTS: usize = 6;

impl<S: Sync> FromRequestParts<S> for Author {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&caller_of(parts)?, &parts.headers)
    }
}

impl Author {
    /// Returns the agent for whom this caller makes a request with these headers.
    pub(crate) fn of(caller: &Caller, headers: &HeaderMap) -> Result<Self, Problem> {
        if let Some(agent) = caller.agent() {
            return Ok(Self(Some(agent.clone())));
        }
        let mut values = headers.get_all(AGENT_HEADER).into_iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        if values.next().is_some() {
            return Err(Problem::new(
                Code::InvalidName,
                "X-Agent-ID was sent more than once; send one agent's name",
            ));
        }
        let name = percent_decode(value.as_bytes()).ok_or_else(|| {
            Problem::new(Code::InvalidEncoding, "X-Agent-ID is not percent-encoded UTF-8")
        })?;
        let name = name.parse().map_err(|why| invalid_name("agent", why))?;
        Ok(Self(Some(name)))
    }
}
