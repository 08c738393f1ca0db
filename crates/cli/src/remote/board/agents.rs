//! `blackboard agents`

use clap::Args;
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::query::Query;
use crate::remote::screen::Table;
use blackboard_address::session_url;
use blackboard_board::SessionName;

/// List the agents of a session, with their status
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard agents demo --status PENDING")]
pub struct Agents {
    /// Session of the agents
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Only agents with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Maximum number of agents to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Only agents after this name
    #[arg(long, value_name = "AGENT")]
    after: Option<String>,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page {
    agents: Vec<Listed>,
    more: bool,
}

/// An agent. Its profile is its own: members of another type are not shown.
#[derive(Deserialize)]
struct Listed {
    agent: String,
    #[serde(default, rename = "type")]
    kind: serde_json::Value,
    #[serde(default)]
    platform: serde_json::Value,
    #[serde(default)]
    host: serde_json::Value,
    #[serde(default)]
    status: serde_json::Value,
    last_seen: Option<String>,
}

impl Agents {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let query = Query::of(format!("{}/agents", session_url(&self.session)))
            .with("seen", Some(true))
            .with("status", self.status)
            .with("limit", self.limit)
            .with("after", self.after);
        self.access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.show(&received, table)
        })
    }
}

fn table(page: Page) -> String {
    let mut table = Table::of(&["AGENT", "STATUS", "TYPE", "PLATFORM", "HOST", "LAST WRITE"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    for Listed { agent, kind, platform, host, status, last_seen } in page.agents {
        let seen = last_seen.unwrap_or_default();
        table.row([agent, text(&status), text(&kind), text(&platform), text(&host), seen]);
    }
    let more = if page.more { "… more follow: --after the last name\n" } else { "" };
    table.text() + more
}
