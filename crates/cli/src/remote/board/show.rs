//! `blackboard show`

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Entry;
use crate::remote::place::Place;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::screen::Table;
use blackboard_board::LogName;

/// The entries of a log that are shown unless a flag says otherwise.
const LATEST: u64 = 20;

/// Show a session, a log of it, or one entry
///
/// PLACE is SESSION, SESSION/requests or SESSION/requests/3; a log is questions, requests, trajectories, screenshots,
/// agents/NAME/memory or agents/NAME/messages. For a log, the last 20 entries are shown; --after pages through it from
/// the beginning.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard show demo\n\
\x20 blackboard show demo/requests --pending\n\
\x20 blackboard show demo/agents/HostAgent/memory --latest 5\n\
\x20 blackboard show demo/requests/3 --at v1")]
pub struct Show {
    /// Session, log or entry
    #[arg(value_name = "PLACE")]
    place: Place,

    /// Show the log or entry as it was at this revision or checkpoint
    #[arg(long, value_name = "REVISION|CHECKPOINT")]
    at: Option<String>,

    /// Show the last N matching entries of the log
    #[arg(long, value_name = "N", conflicts_with_all = ["after", "limit"])]
    latest: Option<u64>,

    /// Show entries after this seq, the oldest first; 0 begins at the first
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// Maximum number of entries to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Only entries by this agent
    #[arg(long, value_name = "AGENT")]
    by: Option<String>,

    /// Only entries with this text in a string
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,

    /// Only open questions, or pending requests, also those that a cap holds back
    #[arg(long)]
    pending: bool,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
    next: u64,
    more: bool,
}

impl Show {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let place = self.place.clone();
        if place.log.is_none() && self.at.is_some() {
            return Err(Refusal::PastSession { session: place.session.to_string() }.into());
        }
        let query = Query::of(place.address()).with("at", self.at);
        let is_page = place.log.is_some() && place.seq.is_none();
        let pages = self.after.is_some() || self.limit.is_some();
        let address = if is_page {
            let latest = self.latest.or_else(|| (!pages).then_some(LATEST));
            query
                .with("latest", latest)
                .with("after", self.after)
                .with("limit", self.limit)
                .with("agent", self.by)
                .with("contains", self.contains)
                .with("pending", self.pending.then_some(true))
                .address()
        } else {
            query.address()
        };
        self.access.run(async |server, screen| {
            let received = server.get(&address).await?;
            match (&place.log, place.seq) {
                (Some(log), None) => screen.show(&received, |page| page_text(log, &page)),
                (Some(log), Some(_)) => screen.show(&received, |entry: Entry<'_>| entry.facts(log)),
                (None, _) => screen.show(&received, |members| session(&members)),
            }
        })
    }
}

fn page_text(log: &LogName, page: &Page<'_>) -> String {
    let mut table = Table::of(&["SEQ", "AT", "AGENT", "STATE", "ITEM"]);
    for entry in &page.entries {
        let agent = entry.agent.as_deref().unwrap_or_default().to_owned();
        let item = entry.item.get().to_owned();
        table.row([entry.seq.to_string(), entry.at.to_string(), agent, entry.words(log), item]);
    }
    let next = page.next;
    let more = if page.more { format!("… more follow: --after {next}\n") } else { String::new() };
    table.text() + &more
}

fn session(members: &BTreeMap<&str, &RawValue>) -> String {
    let mut table = Table::without_head();
    for name in [
        "session",
        "revision",
        "oldest_revision",
        "counts",
        "agents",
        "memory_entries",
        "state_bytes",
        "blobs",
        "cost",
        "bytes",
        "history_bytes",
        "created_at",
        "updated_at",
        "labels",
        "settings",
        "damaged",
    ] {
        if let Some(value) = members.get(name) {
            let text = serde_json::from_str::<String>(value.get());
            table.fact(name, &text.unwrap_or_else(|_| value.get().to_owned()));
        }
    }
    table.text()
}
