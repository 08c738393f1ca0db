//! `blackboard sessions`

use clap::Args;
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::query::Query;
use crate::remote::screen::Table;

/// List the sessions of a server
///
/// Lists at most --limit sessions, sorted by name; --after continues after a name.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard sessions --prefix team- --limit 10")]
pub struct Sessions {
    /// Only sessions whose names begin with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Only sessions with this label, as name:value
    #[arg(long, value_name = "NAME:VALUE")]
    label: Option<String>,

    /// Maximum number of sessions to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Only sessions after this name
    #[arg(long, value_name = "SESSION")]
    after: Option<String>,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page {
    sessions: Vec<Listed>,
    more: bool,
}

#[derive(Deserialize)]
struct Listed {
    session: String,
    revision: u64,
    #[serde(default)]
    damaged: bool,
    counts: Option<Counts>,
    agents: Option<u64>,
    memory_entries: Option<u64>,
    state_bytes: Option<u64>,
    blobs: Option<u64>,
    bytes: Option<u64>,
    updated_at: Option<String>,
}

/// The number of entries by log.
#[derive(Deserialize)]
struct Counts {
    questions: u64,
    requests: u64,
    trajectories: u64,
    screenshots: u64,
}

impl Sessions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { prefix, label, limit, after, access } = self;
        let query = Query::of("/v1/sessions".to_owned())
            .with("prefix", prefix)
            .with("label", label)
            .with("limit", limit)
            .with("after", after);
        access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.show(&received, table)
        })
    }
}

fn table(page: Page) -> String {
    let mut table = Table::of(&[
        "SESSION",
        "REVISION",
        "QUESTIONS",
        "REQUESTS",
        "TRAJECTORIES",
        "SCREENSHOTS",
        "AGENTS",
        "MEMORIES",
        "STATE",
        "BLOBS",
        "BYTES",
        "UPDATED",
    ]);
    for listed in page.sessions {
        let of = |count: fn(&Counts) -> u64| listed.counts.as_ref().map(count);
        let updated = if listed.damaged { Some("damaged".to_owned()) } else { listed.updated_at };
        table.row([
            listed.session,
            listed.revision.to_string(),
            shown(of(|counts| counts.questions)),
            shown(of(|counts| counts.requests)),
            shown(of(|counts| counts.trajectories)),
            shown(of(|counts| counts.screenshots)),
            shown(listed.agents),
            shown(listed.memory_entries),
            shown(listed.state_bytes),
            shown(listed.blobs),
            shown(listed.bytes),
            updated.unwrap_or_default(),
        ]);
    }
    let more = if page.more { "… more follow: --after the last name\n" } else { "" };
    table.text() + more
}

fn shown(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
