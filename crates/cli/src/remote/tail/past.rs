//! Events that have happened already, page by page.

use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Printer;
use crate::remote::feed::{News, Resync};
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::server::Server;

/// A page of events, of which the one after the last has the next revision.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    events: Vec<&'a RawValue>,
    resync: Option<Resync>,
    next: u64,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// Prints the events after a revision, up to a number of them, and waits for none.
pub(super) async fn print(
    server: &Server,
    query: &Query,
    after: Option<u64>,
    count: Option<u64>,
    printer: &mut Printer,
) -> Result<(), Refusal> {
    let (mut after, mut printed) = (after.unwrap_or(0), 0);
    loop {
        let address = query.clone().with("after", Some(after)).address();
        let received = server.get(&address).await?;
        let page: Page<'_> = received.read()?;
        let mut all: Vec<News> = page.resync.map(News::Resync).into_iter().collect();
        for event in &page.events {
            let Kind { kind } = received.part(event)?;
            all.push(News::Commit { kind, data: event.get().to_owned() });
        }
        for news in all {
            if count.is_some_and(|count| printed >= count) {
                return Ok(());
            }
            match printer.print(&news) {
                Err(Refusal::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(());
                }
                printed => printed?,
            }
            printed += 1;
        }
        // A gap ends a page, and what follows it is on the next.
        if !page.more && (page.resync.is_none() || page.next <= after) {
            return Ok(());
        }
        after = page.next;
    }
}
