//! `blackboard search`

use clap::Args;
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::query::Query;
use crate::remote::screen::Table;

/// Search the entries of all sessions, best first
///
/// An entry must have all words. Use "a phrase" for words in a row, begin* for beginnings of words, and -word to
/// exclude. Other characters than letters and digits are ignored; put a flag such as -xzf in quotation marks.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard search '\"disk full\" linux -test' --since 2026-11-22T09:30:00Z")]
pub struct Search {
    /// Words to find
    #[arg(value_name = "WORDS", required = true, allow_hyphen_values = true)]
    words: String,

    /// Only this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Only sessions whose names begin with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Only this log: questions, requests, trajectories, screenshots, or memory for all memories
    #[arg(long, value_name = "LOG")]
    log: Option<String>,

    /// Only entries by this agent, and its memory
    #[arg(long, value_name = "AGENT")]
    by: Option<String>,

    /// Only entries since this time, such as 2026-11-22T09:30:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Maximum number of results
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page {
    hits: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    session: String,
    log: String,
    seq: u64,
    snippet: String,
    at: String,
    agent: Option<String>,
}

impl Search {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let query = Query::of("/v1/search".to_owned())
            .with("q", Some(self.words))
            .with("session", self.session)
            .with("prefix", self.prefix)
            .with("log", self.log)
            .with("agent", self.by)
            .with("since", self.since)
            .with("limit", self.limit);
        self.access.run(async |server, screen| {
            let received = server.get(&query.address()).await?;
            screen.show(&received, table)
        })
    }
}

fn table(page: Page) -> String {
    let mut table = Table::of(&["PLACE", "AT", "AGENT", "FOUND"]);
    for Hit { session, log, seq, snippet, at, agent } in page.hits {
        let place = format!("{session}/{log}/{seq}");
        table.row([place, at, agent.unwrap_or_default(), text_of(&snippet)]);
    }
    table.text()
}

/// Returns the text of a snippet, which is HTML with no other tags than `<mark>`.
fn text_of(snippet: &str) -> String {
    let text = snippet.replace("<mark>", "").replace("</mark>", "");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_read_as_text() {
        assert_eq!(text_of("a <mark>b</mark> &lt;c&gt; &amp;lt;"), "a b <c> &lt;");
    }
}
