//! Looks at an agent's attention: what waits now, and waits until that changes.

use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep_until};

use super::lists::Kind;
use crate::remote::place::{InvalidJson, json};
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::server::{Received, Server};
use blackboard_address::agent_url;
use blackboard_board::{AgentName, SessionName};

/// The least time between two answers that nothing has changed.
const NOTHING_MIN: Duration = Duration::from_secs(1);

/// What of an agent's attention is wanted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Members that a request's item must have to count, as a JSON object
    #[arg(long = "match", env = "BLACKBOARD_MATCH", value_name = "JSON")]
    pub(super) wanted: Option<String>,

    /// Kinds of things that count [default: all]
    #[arg(
        long,
        env = "BLACKBOARD_INCLUDE",
        value_name = "KINDS",
        value_enum,
        value_delimiter = ','
    )]
    pub(super) include: Vec<Kind>,
}

impl Wanted {
    /// Returns true if everything is wanted.
    pub(crate) fn is_all(&self) -> bool {
        self.wanted.is_none() && self.include.is_empty()
    }
}

/// One agent's attention.
#[derive(Debug)]
pub(super) struct Watch {
    query: Query,
    after: Option<u64>,
    /// The tag of what was seen last, or an empty text.
    etag: String,
}

impl Watch {
    pub(super) fn new(
        session: &SessionName,
        agent: &AgentName,
        wanted: Wanted,
    ) -> Result<Self, InvalidJson> {
        let Wanted { wanted, include } = wanted;
        let wanted = wanted.map(|wanted| json("--match", wanted)).transpose()?;
        let include: Vec<String> = include.iter().map(|kind| kind.name().to_owned()).collect();
        let query = Query::of(format!("{}/attention", agent_url(session, agent)))
            .list("include", &include)
            .with("match", wanted);
        Ok(Self { query, after: None, etag: String::new() })
    }

    /// Leaves out, of answers and of requests that can be claimed, what came up to this revision.
    pub(super) fn skip(&mut self, after: Option<u64>) {
        if self.after != after {
            self.after = after;
            self.etag.clear();
        }
    }

    /// Returns what waits now.
    pub(super) async fn look(&mut self, server: &Server) -> Result<Received, Refusal> {
        let received = server.get(&self.query().address()).await?;
        self.etag.clone_from(&received.etag);
        Ok(received)
    }

    /// Returns what waits once that differs from what was seen last, or nothing after this time.
    pub(super) async fn change(
        &mut self,
        server: &Server,
        wait: Duration,
    ) -> Result<Option<Received>, Refusal> {
        if self.etag.is_empty() {
            return self.look(server).await.map(Some);
        }
        let end = Instant::now() + wait;
        let wait = format!("{}ms", wait.as_millis().max(1));
        let address = self.query().with("wait", Some(wait)).address();
        let begin = Instant::now();
        let received = server.get_newer(&address, &self.etag).await?;
        match &received {
            Some(received) => self.etag.clone_from(&received.etag),
            // A proxy that has answered for the server is not asked again at once.
            None => sleep_until((begin + NOTHING_MIN).min(end)).await,
        }
        Ok(received)
    }

    fn query(&self) -> Query {
        self.query.clone().with("after", self.after)
    }
}
