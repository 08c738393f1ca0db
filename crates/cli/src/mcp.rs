//! `blackboard mcp`: MCP on standard input and output, passed on to a server's `/mcp`.

mod bridge;
mod channel;
mod endpoint;
mod failure;
mod headers;
mod lines;
mod message;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use self::bridge::Bridge;
use self::endpoint::{Endpoint, Identity};
use crate::Failure;
use crate::connection::{Connected, Connection, EXPOSED, Unusable};
use crate::remote::{Arrivals, InvalidJson, Wanted};
use crate::system::{Signals, paints};
use blackboard_board::{AgentName, ImagesShown, SessionName};
use blackboard_client::Limits;

/// Time limits of requests. A call of the server waits for at most 50 s, and a stream has a comment every 15 s.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(10), silence: Duration::from_secs(75) };

/// Connect a program that speaks MCP over standard input to a server
///
/// Reads JSON-RPC messages from standard input, a line each, sends each to the server's /mcp, and writes the server's
/// messages to standard output, a line each; nothing else is written there. Ends when its input ends, 10 s later if
/// requests are still open. A token comes from --token-file or the environment variable BLACKBOARD_TOKEN, never from
/// an argument, which other users of the machine could read.
///
/// A host's configuration names the command 'blackboard' with the arguments 'mcp', '--session', 'demo', '--agent',
/// 'writer', and gives BLACKBOARD_URL and BLACKBOARD_TOKEN as its environment.
#[derive(Args, Debug)]
#[expect(clippy::doc_markdown, reason = "the text is printed as it stands")]
#[command(after_help = "Examples:\n\
\x20 blackboard mcp --session demo --agent writer --tools worker")]
pub struct Mcp {
    /// Session for calls that do not name one
    #[arg(long, env = "BLACKBOARD_SESSION", value_name = "SESSION")]
    session: Option<SessionName>,

    /// Tools to offer to the model; by default the server chooses
    #[arg(long, env = "BLACKBOARD_TOOLS", value_name = "SET", value_enum)]
    tools: Option<Tools>,

    /// Maximum tokens of a tool's reading, from 100 to 100000, unless the call gives its own; 5000 by default
    #[arg(long, env = "BLACKBOARD_MAX_TOKENS", value_name = "TOKENS")]
    max_tokens: Option<u64>,

    /// Form of images in answers, for hosts that turn images into text
    #[arg(long, env = "BLACKBOARD_IMAGES", value_name = "FORM", value_parser = ImagesShown::NAMED.map(|(name, _)| name))]
    images: Option<String>,

    /// Add structured content to answers, for programs
    #[arg(long, env = "BLACKBOARD_STRUCTURED", value_parser = BoolishValueParser::new())]
    structured: bool,

    /// Push what waits for the agent to Claude Code as it comes; needs --session and --agent
    #[arg(long, env = "BLACKBOARD_CHANNEL", value_parser = BoolishValueParser::new())]
    channel: bool,

    #[command(flatten)]
    wanted: Wanted,

    /// Log level on standard error: error, warn, info, debug or trace, optionally by target
    #[arg(long, env = "BLACKBOARD_LOG", value_name = "FILTER", default_value = "warn")]
    log: String,

    #[command(flatten)]
    connection: Connection,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tools {
    /// Claims requests and works on them
    Worker,
    /// Passes questions to people, and their answers back
    Asker,
    /// Every tool that the token allows
    All,
}

impl Tools {
    const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Asker => "asker",
            Self::All => "all",
        }
    }
}

/// A text that is no filter of the log.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a log filter such as info or warn,blackboard=debug")]
struct InvalidFilter(String);

/// A channel that cannot be set up.
#[derive(Debug, thiserror::Error)]
enum NoChannel {
    #[error("--channel needs --session (BLACKBOARD_SESSION) and --agent (BLACKBOARD_AGENT)")]
    Nameless,
    #[error("--include and --match are for --channel")]
    Unused,
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error(transparent)]
    Json(#[from] InvalidJson),
}

impl Mcp {
    /// Passes messages on until the input ends or a signal comes.
    ///
    /// # Errors
    ///
    /// The usage is invalid, or the command failed.
    pub fn run(self) -> Result<(), Failure> {
        log(&self.log).map_err(Failure::usage)?;
        let arrivals = self.arrivals().map_err(Failure::usage)?;
        let endpoint = self.endpoint().map_err(Failure::usage)?;
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        let bridged = runtime.block_on(async {
            let mut signals = Signals::new()?;
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            Bridge::run(endpoint, arrivals, input, output, signals.next()).await
        });
        // A thread may wait for input that never comes.
        runtime.shutdown_background();
        bridged.map_err(Failure::failed)
    }

    fn endpoint(&self) -> Result<Endpoint, Unusable> {
        let connected = self.connection.client(LIMITS)?;
        let Connected { client, token, agent, is_exposed } = connected;
        if is_exposed {
            tracing::warn!("{EXPOSED}");
        }
        let identity = Identity {
            session: self.session.as_ref().map(SessionName::as_str),
            agent: agent.as_ref().map(AgentName::as_str),
            options: &self.options(),
        };
        Ok(Endpoint::new(client, token, identity)?)
    }

    /// Returns what waits for the agent, if the host is to get it.
    fn arrivals(&self) -> Result<Option<Arrivals>, NoChannel> {
        if !self.channel {
            let is_plain = self.wanted.is_all();
            return if is_plain { Ok(None) } else { Err(NoChannel::Unused) };
        }
        let mut connected = self.connection.client(LIMITS)?;
        let (Some(session), Some(agent)) = (self.session.clone(), connected.agent.take()) else {
            return Err(NoChannel::Nameless);
        };
        Ok(Some(Arrivals::new(connected, session, &agent, self.wanted.clone())?))
    }

    /// Returns the parameters of the server's address that options name.
    fn options(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("tools", self.tools.map(|tools| tools.name().to_owned())),
            ("structured", self.structured.then(|| "1".to_owned())),
            ("max_tokens", self.max_tokens.map(|tokens| tokens.to_string())),
            ("images", self.images.clone()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Starts the log on standard error: standard output belongs to the protocol.
fn log(filter: &str) -> Result<(), InvalidFilter> {
    let parsed = EnvFilter::builder().parse(filter);
    let parsed = parsed.map_err(|_| InvalidFilter(filter.to_owned()))?;
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && paints())
        .with_target(false)
        .without_time()
        .init();
    Ok(())
}
