//! `blackboard inbox`

use clap::Args;
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Entry;
use crate::remote::query::Query;
use crate::remote::screen::Table;

/// List the open questions of all sessions, or the pending requests
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard inbox\n\
\x20 blackboard inbox --requests --label team:sales")]
pub struct Inbox {
    /// List requests that can be claimed
    #[arg(long)]
    requests: bool,

    /// Only sessions whose names begin with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Only sessions with this label, as name:value
    #[arg(long, value_name = "NAME:VALUE")]
    label: Option<String>,

    /// Maximum number of entries to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Continue a list: the value of 'next' that it ended with
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, alias = "questions", alias = "requests")]
    entries: Vec<Entry<'a>>,
    next: Option<String>,
    more: bool,
}

impl Inbox {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let log = if self.requests { "requests" } else { "questions" };
        let query = Query::of(format!("/v1/{log}"))
            .with("prefix", self.prefix)
            .with("label", self.label)
            .with("limit", self.limit)
            .with("after", self.after);
        self.access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.show(&received, |page: Page<'_>| text(log, &page))
        })
    }
}

fn text(log: &str, page: &Page<'_>) -> String {
    let is_request = log == "requests";
    let mut table = match is_request {
        true => Table::of(&["PLACE", "AT", "AGENT", "STATE", "ITEM"]),
        false => Table::of(&["PLACE", "AT", "AGENT", "ITEM"]),
    };
    for entry in &page.entries {
        let session = entry.session.as_deref().unwrap_or_default();
        let agent = entry.agent.as_deref().unwrap_or_default().to_owned();
        let place = format!("{session}/{log}/{}", entry.seq);
        let (at, item) = (entry.at.to_string(), entry.item.get().to_owned());
        match is_request {
            true => table.row([place, at, agent, entry.task().words(), item]),
            false => table.row([place, at, agent, item]),
        }
    }
    let mut rest = Table::without_head();
    if let Some(next) = page.next.as_ref().filter(|_| page.more) {
        rest.fact(&format!("… more follow: --after '{next}'"), "");
    }
    table.text() + &rest.text()
}
