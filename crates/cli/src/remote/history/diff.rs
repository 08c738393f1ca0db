//! `blackboard diff`

use std::borrow::Cow;
use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::query::Query;
use crate::remote::request::{Claim, End, Task};
use crate::remote::screen::Table;
use blackboard_address::session_url;
use blackboard_board::SessionName;

/// Show what changed on a board between two revisions
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard diff demo v1\n\
\x20 blackboard diff demo 12 20")]
pub struct Diff {
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
    claim: Option<Claim>,
    #[serde(borrow)]
    done: Option<End<'a>>,
    #[serde(borrow)]
    failed: Option<End<'a>>,
    #[serde(borrow)]
    cancelled: Option<End<'a>>,
    #[serde(borrow)]
    in_review: Option<End<'a>>,
    #[serde(borrow)]
    cancel: Option<End<'a>>,
    #[serde(default)]
    blocked_by: Vec<u64>,
    /// Of a message that its agent has acknowledged.
    acked_at: Option<String>,
}

impl Diff {
    pub(crate) fn run(self) -> Result<(), Failure> {
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
    for (mark, all) in [("+", &body.added), ("~", &body.changed), ("-", &body.removed)] {
        for difference in all {
            table.row([mark.to_owned(), difference.path.clone(), difference.sentence()]);
        }
    }
    let more =
        if body.more { format!("… more follow: --after {}\n", body.next) } else { String::new() };
    format!("revision {} to {}\n{}{more}", body.from, body.to, table.text())
}

impl Difference<'_> {
    /// Returns the value that was added or removed, or what of it changed.
    fn sentence(&self) -> String {
        let whole =
            |value: Option<&RawValue>| value.map_or_else(String::new, |v| v.get().to_owned());
        let (Some(before), Some(after)) = (self.before, self.after) else {
            return whole(self.item.or(self.value));
        };
        let parts: Vec<_> =
            self.fate(before, after).into_iter().chain(members(before, after)).collect();
        match parts.as_slice() {
            [] if self.acked_at.is_some() => "acknowledged".to_owned(),
            [] if before.get() == after.get() => "another image or deadline".to_owned(),
            [] => "the same members in another form".to_owned(),
            parts => parts.join("; "),
        }
    }

    /// Returns the state of a request whose item stayed the same: only the state can have changed.
    fn fate(&self, before: &RawValue, after: &RawValue) -> Option<String> {
        let task = Task {
            done: self.done.as_ref(),
            failed: self.failed.as_ref(),
            cancelled: self.cancelled.as_ref(),
            in_review: self.in_review.as_ref(),
            cancel: self.cancel.as_ref(),
            claim: self.claim.as_ref(),
            blocked_by: &self.blocked_by,
            ..Task::default()
        };
        let is_request = self.path.starts_with("requests/") && before.get() == after.get();
        is_request.then(|| task.sentence())
    }
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Returns the members of two objects that differ, or both values if one is no object.
fn members(before: &RawValue, after: &RawValue) -> Vec<String> {
    if before.get() == after.get() {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (members_of(before), members_of(after)) else {
        return vec![format!("{} → {}", before.get(), after.get())];
    };
    let changed = |(name, value): (&Cow<'_, str>, &&RawValue)| match new.get(name) {
        Some(now) if now.get() == value.get() => None,
        Some(now) => Some(format!("{name}: {} → {}", value.get(), now.get())),
        None => Some(format!("{name}: {} → absent", value.get())),
    };
    let added = |(name, value): (&Cow<'_, str>, &&RawValue)| {
        (!old.contains_key(name)).then(|| format!("{name}: absent → {}", value.get()))
    };
    old.iter().filter_map(changed).chain(new.iter().filter_map(added)).collect()
}

fn members_of(value: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(value.get()).ok()
}
