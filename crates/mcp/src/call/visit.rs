//! A request to the door: its caller, and the defaults that its address gives.

use axum::http::request::Parts;
use rmcp::model::Extensions;
use tokio_util::sync::CancellationToken;

use blackboard_address::percent_decode;
use blackboard_api::params::{Params, invalid};
use blackboard_api::refusal::Refusal;
use blackboard_auth::Caller;
use blackboard_board::{AgentName, ImagesShown, SessionName, TraceId};
use blackboard_fairness::Client;

/// The header in which a client names its agent.
const AGENT_HEADER: &str = "x-agent-id";

/// Values of a parameter that is on or off.
const SWITCH: [(&str, bool); 2] = [("1", true), ("0", false)];

/// The tokens of a reading unless another number is asked for, in the address or by the call: what the hosts show whole.
const TOKENS_DEFAULT: u64 = 5_000;

/// The smallest number of tokens that can be asked for.
pub(crate) const TOKENS_MIN: u64 = 100;

/// The largest number of tokens that can be asked for.
pub(crate) const TOKENS_MAX: u64 = 100_000;

/// A set of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolSet {
    /// Every tool.
    #[default]
    All,
    /// The tools of an agent that works on requests.
    Worker,
    /// The tools of an agent that passes questions on to people.
    Asker,
}

impl ToolSet {
    const NAMED: [(&str, Self); 3] =
        [("all", Self::All), ("worker", Self::Worker), ("asker", Self::Asker)];
}

/// A request to the door.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) caller: Caller,
    /// The client whose share of everything the request takes.
    pub(crate) client: Client,
    /// The session that tools use unless told otherwise.
    pub(crate) session: Option<SessionName>,
    /// The agent that the client names, unless the token is bound to one.
    agent: Option<AgentName>,
    pub(crate) tools: ToolSet,
    /// True if answers have structured content beside their text.
    pub(crate) structured: bool,
    /// The tokens of a reading unless the call asks for another number.
    pub(crate) max_tokens: u64,
    /// How answers show images: some hosts turn an image into text.
    pub(crate) images: ImagesShown,
    /// Cancelled when the client departs.
    pub(crate) departed: CancellationToken,
    pub(crate) trace: Option<TraceId>,
}

impl Visit {
    /// Reads the request that carried a message, from the message's extensions.
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, Refusal> {
        match extensions.get() {
            Some(parts) => Self::of_request(parts),
            None => Ok(Self::by(Caller::nobody())),
        }
    }

    /// Reads the request that carries a message.
    pub(crate) fn of_request(parts: &Parts) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::nobody);
        let mut params = Params::parse(parts.uri.query().unwrap_or_default())?;
        let session = params.parsed("session")?;
        let agent = params.parsed("agent")?;
        let tools = params.choice("tools", &ToolSet::NAMED)?.unwrap_or_default();
        let structured = params.choice("structured", &SWITCH)?.unwrap_or_default();
        let max_tokens = params.number("max_tokens", TOKENS_MIN..=TOKENS_MAX)?;
        let images = params.choice("images", &ImagesShown::NAMED)?;
        params.finish()?;
        Ok(Self {
            session: session.or_else(|| caller.only_session()),
            agent: match agent {
                Some(agent) => Some(agent),
                None => named_agent(parts)?,
            },
            tools,
            structured,
            max_tokens: max_tokens.unwrap_or(TOKENS_DEFAULT),
            images: images.unwrap_or(ImagesShown::Inline),
            client: parts.extensions.get::<Client>().copied().unwrap_or_default(),
            departed: parts.extensions.get::<CancellationToken>().cloned().unwrap_or_default(),
            trace: parts.extensions.get::<TraceId>().copied(),
            caller,
        })
    }

    fn by(caller: Caller) -> Self {
        Self {
            caller,
            client: Client::default(),
            session: None,
            agent: None,
            tools: ToolSet::All,
            structured: false,
            max_tokens: TOKENS_DEFAULT,
            images: ImagesShown::Inline,
            departed: CancellationToken::new(),
            trace: None,
        }
    }

    /// Returns the agent that the caller is, if it is known before a call.
    pub(crate) fn agent(&self) -> Option<&AgentName> {
        self.caller.agent().or(self.agent.as_ref())
    }

    /// Returns true if calls may name their agent.
    pub(crate) fn may_name_agent(&self) -> bool {
        self.caller.agent().is_none()
    }
}

fn named_agent(parts: &Parts) -> Result<Option<AgentName>, Refusal> {
    let Some(value) = parts.headers.get(AGENT_HEADER) else { return Ok(None) };
    let name = percent_decode(value.as_bytes());
    let name = name.ok_or_else(|| invalid("X-Agent-ID", "is not percent-encoded UTF-8"))?;
    name.parse().map(Some).map_err(|why| invalid("X-Agent-ID", why))
}
