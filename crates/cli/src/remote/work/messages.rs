//! `blackboard messages`

use std::io::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use crate::remote::access::Access;
use crate::remote::body::{Entry, Written};
use crate::remote::end::End;
use crate::remote::place::quoted;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::{Key, Repeat};
use crate::remote::screen::{Screen, Table};
use crate::remote::server::{Received, Server, Write};
use crate::{Failure, note};
use blackboard_address::{entry_url, log_url, session_url};
use blackboard_board::{AgentName, LogName, Seq, SessionName, Ttl};
use blackboard_printable::plain;

/// The longest wait of one request.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The messages that are listed of all, unless an option says otherwise.
const LATEST: u64 = 20;

/// The pause before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// List the messages that an agent has not acknowledged, and acknowledge them
///
/// The oldest is listed first, and --after pages through them. The agent itself, and a token that is bound to no agent,
/// may do this. Exit code 7 means that no message came in time.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard messages demo LinuxAgent\n\
\x20 blackboard messages demo LinuxAgent --ack 3,4\n\
\x20 blackboard messages demo LinuxAgent --ack all --wait 10m\n\
\x20 blackboard messages demo LinuxAgent --ack all --follow --json")]
pub struct Messages {
    /// Session of the agent
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Agent that the messages were sent to
    #[arg(value_name = "AGENT")]
    to: AgentName,

    /// List acknowledged messages too: the last 20, unless --after or --limit is given
    #[arg(long)]
    all: bool,

    /// Acknowledge these messages and list none, or with all those that are listed, once they are printed
    #[arg(long, value_name = "SEQ,…|all", conflicts_with = "all")]
    ack: Option<Acked>,

    /// Wait at most this long for a message
    #[arg(long, value_name = "DURATION", conflicts_with = "all")]
    wait: Option<Ttl>,

    /// Print what waits and then what comes, a line each, until it is interrupted
    #[arg(long, conflicts_with_all = ["all", "wait", "limit"])]
    follow: bool,

    /// List messages after this seq
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// Maximum number of messages to list
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Print the server's JSON, like --format json; with --follow one message a line
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// The messages to acknowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Acked {
    Listed,
    These(Vec<u64>),
}

/// A text that names no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("messages are given by their seqs, as in 3,4, or by the word all")]
struct InvalidAcked;

impl FromStr for Acked {
    type Err = InvalidAcked;

    fn from_str(text: &str) -> Result<Self, InvalidAcked> {
        if text == "all" {
            return Ok(Self::Listed);
        }
        let seqs = text.split(',').map(|seq| seq.parse().ok().filter(|seq| *seq > 0));
        seqs.collect::<Option<_>>().map(Self::These).ok_or(InvalidAcked)
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
    next: u64,
    more: bool,
}

impl Messages {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let access = self.access.clone().or_json(self.json);
        access.run(async |server, screen| {
            if let Some(Acked::These(seqs)) = &self.ack {
                let received = self.acknowledge(server, seqs, self.repeat.clone().key()).await?;
                return screen.show(&received, |written: Written| written.sentence(""));
            }
            if self.follow {
                return self.follow(server, screen).await;
            }
            let received = self.listed(server).await?;
            let page: Page<'_> = received.read()?;
            let entries = entries(&received, &page)?;
            let shown = match screen.is_table {
                true => self.text(&entries, &page),
                false => format!("{}\n", plain(received.text.trim_end_matches('\n'))),
            };
            match put(&shown) {
                Err(refusal) if is_closed(&refusal) => Ok(()),
                printed => {
                    printed?;
                    self.acknowledge_listed(server, &entries).await
                }
            }
        })
    }

    /// Reads a page, waiting in rounds of a minute if that is asked for.
    async fn listed(&self, server: &Server) -> Result<Received, Refusal> {
        let Some(wait) = self.wait else { return server.get(&self.query().address()).await };
        let deadline = Instant::now() + Duration::from_millis(wait.ms().unsigned_abs());
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).min(WAIT_MAX);
            let received = self.newer(server, self.after.unwrap_or_default(), left).await?;
            let page: Page<'_> = received.read()?;
            if !page.entries.is_empty() {
                return Ok(received);
            }
            if Instant::now() >= deadline {
                return Err(Refusal::NoMessage { time: wait.to_string() });
            }
        }
    }

    /// Prints messages as they come, until a signal.
    async fn follow(&self, server: &Server, screen: Screen) -> Result<(), Refusal> {
        let mut end = End::new()?;
        let (mut after, mut has_begun, mut is_told) =
            (self.after.unwrap_or_default(), false, false);
        loop {
            let round = self.followed(server, screen, &mut after);
            let Some(followed) = end.or(round).await else { return Ok(()) };
            match followed {
                Err(refusal) if has_begun && refusal.is_passing() => {
                    if !is_told {
                        note(format_args!("{refusal}; trying again"));
                    }
                    is_told = true;
                    if end.or(sleep(PAUSE)).await.is_none() {
                        return Ok(());
                    }
                }
                Err(refusal) if is_closed(&refusal) => return Ok(()),
                followed => {
                    followed?;
                    (has_begun, is_told) = (true, false);
                }
            }
        }
    }

    /// Prints the next messages.
    async fn followed(
        &self,
        server: &Server,
        screen: Screen,
        after: &mut u64,
    ) -> Result<(), Refusal> {
        let received = self.newer(server, *after, WAIT_MAX).await?;
        let page: Page<'_> = received.read()?;
        for raw in &page.entries {
            let entry: Entry<'_> = received.part(raw)?;
            let line = if screen.is_table { line(&entry) } else { plain(raw.get()).into_owned() };
            put(&format!("{line}\n"))?;
            self.acknowledge_listed(server, &[entry]).await?;
        }
        *after = page.next;
        Ok(())
    }

    /// Reads the messages after a seq, or waits for one.
    async fn newer(
        &self,
        server: &Server,
        after: u64,
        wait: Duration,
    ) -> Result<Received, Refusal> {
        let wait = format!("{}ms", wait.as_millis().max(1));
        let query = Query::of(log_url(&self.session, &log(&self.to)))
            .with("unacked", Some(true))
            .with("after", Some(after))
            .with("limit", self.limit)
            .with("wait", Some(wait));
        server.get(&query.address()).await
    }

    fn query(&self) -> Query {
        let pages = self.after.is_some() || self.limit.is_some();
        Query::of(log_url(&self.session, &log(&self.to)))
            .with("unacked", (!self.all).then_some(true))
            .with("latest", (self.all && !pages).then_some(LATEST))
            .with("after", self.after)
            .with("limit", self.limit)
    }

    /// Acknowledges what was printed, if that is asked for.
    async fn acknowledge_listed(
        &self,
        server: &Server,
        entries: &[Entry<'_>],
    ) -> Result<(), Refusal> {
        let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
        if self.ack == Some(Acked::Listed) && !seqs.is_empty() {
            self.acknowledge(server, &seqs, Key::new()).await?;
        }
        Ok(())
    }

    /// Acknowledges messages in one commit.
    async fn acknowledge(
        &self,
        server: &Server,
        seqs: &[u64],
        key: Key,
    ) -> Result<Received, Refusal> {
        if let [seq] = seqs {
            let entry = entry_url(&self.session, &log(&self.to), Seq(*seq));
            return server.write(Write::put(format!("{entry}/ack")), &key).await;
        }
        let agent = quoted(self.to.as_str());
        let acks = seqs.iter().map(|seq| format!("{{\"ack\":{seq},\"agent\":{agent}}}"));
        let body = format!("{{\"then\":[{}]}}", acks.collect::<Vec<_>>().join(","));
        let address = format!("{}/transactions", session_url(&self.session));
        server.write(Write::json(Method::POST, address, body), &key).await
    }

    fn text(&self, entries: &[Entry<'_>], page: &Page<'_>) -> String {
        let mut table = match self.all {
            true => Table::of(&["SEQ", "AT", "AGENT", "STATE", "ITEM"]),
            false => Table::of(&["SEQ", "AT", "AGENT", "ITEM"]),
        };
        for entry in entries {
            let agent = entry.agent.as_deref().unwrap_or_default().to_owned();
            let (at, item) = (entry.at.to_string(), entry.item.get().to_owned());
            let seq = entry.seq.to_string();
            match self.all {
                true => table.row([seq, at, agent, entry.words(&log(&self.to)), item]),
                false => table.row([seq, at, agent, item]),
            }
        }
        let next = page.next;
        let more =
            if page.more { format!("… more follow: --after {next}\n") } else { String::new() };
        table.text() + &more
    }
}

/// Returns the log of the messages to an agent.
pub(super) fn log(to: &AgentName) -> LogName {
    LogName::Messages(to.clone())
}

fn entries<'a>(received: &'a Received, page: &Page<'a>) -> Result<Vec<Entry<'a>>, Refusal> {
    page.entries.iter().map(|raw| received.part(raw)).collect()
}

/// Returns a message as one line.
fn line(entry: &Entry<'_>) -> String {
    let agent = entry.agent.as_deref().unwrap_or("-");
    let text = format!("{:>6} {} {agent} {}", entry.seq, entry.at, entry.item.get());
    blackboard_printable::line(&text).into_owned()
}

/// Returns true if the reader closed the pipe: it has read enough.
fn is_closed(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a text whole: what nobody reads is not acknowledged.
fn put(text: &str) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Refusal::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_named_by_seqs_or_all() {
        assert_eq!("all".parse(), Ok(Acked::Listed));
        assert_eq!("3,4".parse(), Ok(Acked::These(vec![3, 4])));
        for text in ["", "3,", "0", "-1", "ALL", "3 4"] {
            assert_eq!(text.parse::<Acked>(), Err(InvalidAcked), "{text}");
        }
    }
}
