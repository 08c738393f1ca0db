//! `blackboard diff`

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::address::session_url;
use crate::board::SessionName;
use crate::cli::Failure;
use crate::cli::remote::access::Access;
use crate::cli::remote::query::Query;
use crate::cli::remote::screen::Table;

/// Show what changed on a board between two revisions
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard diff demo v1\n\
\x20 blackboard diff demo 12 20")]
pub(in crate::cli) struct Diff {
    /// Session to look at
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Revision or checkpoint to compare from
    #[arg(value_name = "FROM")]
    from: String,

    /// Revision or checkpoint to compare to [default: the present one]
    #[arg(value_name = "TO")]
    to: Option<String>,

    /// Maximum number of differences to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Continue a list: the value of 'next' that it ended with
    #[arg(long, value_name = "NEXT")]
    after: Option<u64>,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Body<'a> {
    from: u64,
    to: u64,
    #[serde(borrow)]
    added: Vec<Difference<'a>>,
    #[serde(borrow)]
    changed: Vec<Difference<'a>>,
    #[serde(borrow)]
    removed: Vec<Difference<'a>>,
    more: bool,
    next: u64,
}

#[derive(Deserialize)]
struct Difference<'a> {
    path: String,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    before: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
}

impl Diff {
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let query = Query::of(format!("{}/diff", session_url(&self.session)))
            .with("from", Some(self.from))
            .with("to", self.to)
            .with("limit", self.limit)
            .with("after", self.after);
        self.access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.show(&received, |body: Body<'_>| text(&body))
        })
    }
}

fn text(body: &Body<'_>) -> String {
    let mut table = Table::without_head();
    let shown = |value: Option<&RawValue>| value.map_or_else(String::new, |v| v.get().to_owned());
    for (mark, all) in [("+", &body.added), ("~", &body.changed), ("-", &body.removed)] {
        for difference in all {
            let Difference { path, item, value, before, after } = difference;
            let whole = shown(item.or(*value));
            let change = match (before, after) {
                (None, None) => whole,
                _ => format!("{} → {}", shown(*before), shown(*after)),
            };
            table.row([mark.to_owned(), path.clone(), change]);
        }
    }
    let more =
        if body.more { format!("… more follow: --after {}\n", body.next) } else { String::new() };
    format!("revision {} to {}\n{}{more}", body.from, body.to, table.text())
}
