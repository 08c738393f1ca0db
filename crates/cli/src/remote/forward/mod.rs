//! `blackboard forward`
//!
//! The cursor moves once a message is acknowledged, so one that is not is sent again by the next run: at least once.

mod attention;
mod cursor;
mod message;
mod questions;
mod receiver;
mod secret;
mod stopped;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use tokio::time::timeout;

use self::attention::{Attention, Outbox};
use self::cursor::CursorFile;
use self::message::Message;
use self::questions::Questions;
use self::receiver::Receiver;
pub use self::secret::SECRET_VARIABLE;
use self::secret::Secret;
pub(crate) use self::stopped::Stopped;
use super::access;
use super::end::End;
use super::feed::{Feed, News, Resync};
use super::place::json;
use super::query::Query;
use super::refusal::Refusal;
use super::server::Server;
use crate::Failure;
use crate::connection::Connection;
use blackboard_address::session_url;
use blackboard_board::{AgentName, SessionName};
use blackboard_roots::Roots;

/// The time without a wanted event after which the cursor moves over those that the filters leave out.
const IDLE_TIME: Duration = Duration::from_secs(15);

/// The most attempts that a message may have.
const ATTEMPTS_MAX: u32 = 10_000;

/// Forward events, open questions, or what waits for an agent, as signed webhooks
///
/// Posts one message per event to a URL, in order and at least once, until it is interrupted. Headers and signature
/// follow Standard Webhooks; a message that is sent again keeps its webhook-id. A 2xx answer acknowledges a message.
/// After 408, 425, 429, 5xx or no answer the message is sent again, with growing pauses or after Retry-After. Any
/// other answer, or too many attempts, end the command with exit code 12.
///
/// With --attention a message also ends once the agent has acknowledged all messages to it that it holds.
///
/// With --cursor, the next run continues where this one ended. Without it, forwarding begins with new events, with all
/// questions that are open, or with all that waits for the agent.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard forward demo --to https://hooks.example.org/board --cursor demo.cursor\n\
\x20 blackboard forward demo --attention LinuxAgent --to http://127.0.0.1:9000/ --cursor agent.cursor")]
pub struct Forward {
    /// Session to follow; without it, --questions forwards those of all sessions
    #[arg(value_name = "SESSION", required_unless_present = "questions")]
    session: Option<SessionName>,

    /// URL of the receiver, http or https; it may have a query
    #[arg(long, env = "BLACKBOARD_FORWARD_TO", hide_env_values = true, value_name = "URL")]
    to: String,

    /// Forward each open question once, instead of events
    #[arg(long)]
    questions: bool,

    /// Forward what waits for this agent, instead of events: messages, answers, requests to claim, cancel or review
    #[arg(long, value_name = "AGENT", requires = "session", conflicts_with_all = ["questions", "on", "by"])]
    attention: Option<AgentName>,

    /// File that records what the receiver has acknowledged; it takes precedence over --after
    #[arg(long, value_name = "PATH")]
    cursor: Option<PathBuf>,

    /// Begin after this revision; 0 begins with the first. With --attention only for answers and requests to claim
    #[arg(long, value_name = "REVISION", conflicts_with = "questions")]
    after: Option<u64>,

    /// Only changes of these parts: logs, agents, agents/NAME, state, state/path
    #[arg(long, value_name = "PART,…", value_delimiter = ',', conflicts_with = "questions")]
    on: Vec<String>,

    /// Only commits by this agent
    #[arg(long, value_name = "AGENT", conflicts_with = "questions")]
    by: Option<String>,

    /// Only questions of sessions whose names begin with this text
    #[arg(long, value_name = "TEXT", requires = "questions", conflicts_with = "session")]
    prefix: Option<String>,

    /// Only questions of sessions with this label, as name:value
    #[arg(long, value_name = "NAME:VALUE", requires = "questions", conflicts_with = "session")]
    label: Option<String>,

    /// Only these lists: messages, claimable, answers, cancels, reviews
    #[arg(long, value_name = "LIST,…", value_delimiter = ',', requires = "attention")]
    include: Vec<String>,

    /// Members that requests to claim and to review must have, as a JSON object
    #[arg(long = "match", value_name = "JSON", requires = "attention")]
    wanted: Option<String>,

    /// Skip messages that the receiver rejects with 4xx, instead of ending; 410 still ends the command
    #[arg(long)]
    skip_refused: bool,

    /// Attempts to deliver a message before the command ends; the 20 by default take about ten minutes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(ATTEMPTS_MAX))
    )]
    attempts: u32,

    /// File that holds the secret, whsec_…; it takes precedence over BLACKBOARD_WEBHOOK_SECRET
    #[arg(long, env = "BLACKBOARD_WEBHOOK_SECRET_FILE", value_name = "PATH")]
    #[expect(clippy::doc_markdown, reason = "the text is printed as it stands")]
    secret_file: Option<PathBuf>,

    /// PEM file with the root certificates to trust for the receiver, instead of those of the system
    #[arg(long, env = "BLACKBOARD_FORWARD_TO_CA", value_name = "PATH")]
    to_ca: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

/// A page of events, of which only the place is read.
#[derive(Deserialize)]
struct Now {
    next: u64,
}

impl Forward {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let secret = Secret::given(self.secret_file.as_deref()).map_err(Failure::usage)?;
        let roots = self.to_ca.map_or(Roots::System, Roots::File);
        let receiver = Receiver::new(&self.to, &roots, secret, self.attempts, self.skip_refused);
        let receiver = receiver.map_err(Failure::usage)?;
        let cursor = CursorFile(self.cursor);
        access::run(&self.connection, async |server| {
            let mut end = End::new()?;
            let session = match (self.session, self.attention) {
                (Some(session), Some(agent)) => {
                    let (include, wanted) = (self.include, self.wanted);
                    let wanted = wanted.map(|wanted| json("--match", wanted)).transpose()?;
                    let attention = Attention { server, session, agent, include, wanted };
                    let outbox = Outbox { receiver: &receiver, cursor: &cursor, end: &mut end };
                    return attention.forward(outbox, self.after).await;
                }
                (Some(session), None) if !self.questions => session,
                (session, _) => {
                    let (prefix, label) = (self.prefix, self.label);
                    let questions = Questions { server, session, prefix, label };
                    return questions.forward(&receiver, &cursor, &mut end).await;
                }
            };
            let address = Query::of(format!("{}/events", session_url(&session)))
                .list("on", &self.on)
                .with("agent", self.by)
                .address();
            let after = match cursor.revision(session.as_str())?.or(self.after) {
                Some(after) => after,
                None => now(server, &session).await?,
            };
            // Another run goes on from here, even if nothing is ever delivered; and the file can be written.
            cursor.write_revision(session.as_str(), after)?;
            let feed = Feed::new(server, address, Some(after));
            let mut events = Events { session, receiver, cursor, after };
            events.forward(feed, &mut end).await
        })
    }
}

/// Returns the session's revision; it need not exist.
async fn now(server: &Server, session: &SessionName) -> Result<u64, Refusal> {
    let received = server.get(&format!("{}/events", session_url(session))).await?;
    let now: Now = received.read()?;
    Ok(now.next)
}

/// Returns the next event, or nothing after a while without one. Only the wait for an event ends then: a server may take
/// longer to open the stream.
async fn next(feed: &mut Feed<'_>) -> Result<Option<News>, Refusal> {
    feed.connect().await?;
    timeout(IDLE_TIME, feed.next()).await.ok().transpose()
}

/// The events of a session on their way to a receiver.
struct Events {
    session: SessionName,
    receiver: Receiver,
    cursor: CursorFile,
    /// The revision up to which everything was acknowledged.
    after: u64,
}

impl Events {
    /// Delivers events until a signal comes.
    async fn forward(&mut self, mut feed: Feed<'_>, end: &mut End) -> Result<(), Refusal> {
        loop {
            let Some(read) = end.or(next(&mut feed)).await else {
                return self.advance(feed.position());
            };
            let Some(news) = read? else {
                self.advance(feed.position())?;
                continue;
            };
            let (kind, data) = match news {
                News::Commit { kind, data } => (kind, data),
                News::Resync(resync) => return Err(self.gap(resync).into()),
            };
            let message = Message::of_commit(self.session.as_str(), &kind, &data)?;
            if !self.receiver.deliver(&message, end).await? {
                return Ok(());
            }
            self.advance(feed.position())?;
        }
    }

    /// Moves the cursor.
    fn advance(&mut self, position: Option<u64>) -> Result<(), Refusal> {
        if let Some(position) = position.filter(|position| *position > self.after) {
            self.cursor.write_revision(self.session.as_str(), position)?;
            self.after = position;
        }
        Ok(())
    }

    /// Returns the refusal to leave out events without a word.
    fn gap(&self, resync: Resync) -> Stopped {
        let Resync { revision: head, oldest_revision: oldest } = resync;
        let remedy = match &self.cursor.0 {
            Some(path) => format!("delete {} and give", path.display()),
            None => "give".to_owned(),
        };
        let after = self.after;
        if after > head {
            Stopped::Beyond { after, head, remedy }
        } else {
            Stopped::Compacted { after, oldest, remedy }
        }
    }
}
