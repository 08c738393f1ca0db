//! `blackboard claim`, and the ends of a claim: `finish`, `fail` and `release`

use std::time::Duration;

use clap::Args;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Entry;
use crate::remote::input;
use crate::remote::place::{EntryPlace, InvalidPlace, json, quoted};
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::request::Claim as Held;
use crate::remote::screen::Table;
use crate::remote::server::{Received, Server, Write};
use blackboard_address::{entry_url, log_url};
use blackboard_board::{LogName, SessionName, Ttl};

/// The longest wait of one request.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Claim a request, or the next one that can be claimed
///
/// The next one is that of the highest priority, and of several the oldest.
///
/// Needs --agent, unless the token is bound to one. Prints the request, and the fence: the number of this claim,
/// which 'finish' and 'fail' take. Claiming a named request again, as the same agent, renews the claim. Exit code 6
/// means that another agent has the request, 7 that no request can be claimed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard claim demo --agent LinuxAgent --ttl 5m --wait 1h\n\
\x20 blackboard claim demo --agent LinuxAgent --match '{\"device\":\"linux\"}'\n\
\x20 blackboard claim demo/3 --agent LinuxAgent")]
pub struct Claim {
    /// Session, or one request as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION[/SEQ]", value_parser = Claimed::parse)]
    place: Claimed,

    /// Time after which the claim expires unless it is renewed
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    ttl: Ttl,

    /// Members that the request's item must have, as a JSON object
    #[arg(long = "match", value_name = "JSON")]
    wanted: Option<String>,

    /// Wait at most this long for a request
    #[arg(long, value_name = "DURATION")]
    wait: Option<Ttl>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Finish a claimed request, with its result
///
/// Exit code 6 means that nobody has claimed the request; with --unclaimed it is finished all the same.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard finish demo/3 '{\"file\":\"chart.png\"}' --agent LinuxAgent --fence 7")]
pub struct Finish {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// Result: JSON if it begins with {, [ or ", otherwise a text; - reads it from standard input
    #[arg(value_name = "RESULT", allow_hyphen_values = true)]
    result: Option<String>,

    /// Fence of the claim, as 'claim' printed it: a claim that was lost meanwhile then cannot finish the request
    #[arg(long, value_name = "N")]
    fence: Option<u64>,

    /// Finish a request that nobody has claimed
    #[arg(long, conflicts_with = "fence")]
    unclaimed: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// End a claim without success, with the reason
///
/// The request can be claimed again until its attempts are used up; then it has failed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard fail demo/3 'The disk is full' --agent LinuxAgent")]
pub struct Fail {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// Reason: JSON if it begins with {, [ or ", otherwise a text; - reads it from standard input
    #[arg(value_name = "REASON", allow_hyphen_values = true)]
    reason: Option<String>,

    /// Fence of the claim, as 'claim' printed it: a claim that was lost meanwhile then cannot fail the request
    #[arg(long, value_name = "N")]
    fence: Option<u64>,

    /// Time until the request can be claimed again, such as 30s, at most 7d
    #[arg(long, value_name = "DURATION")]
    retry_in: Option<Ttl>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Give a claim back, so that another agent can have the request
#[derive(Args, Debug)]
pub struct Release {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// The request to claim: any of a session, or one.
#[derive(Clone, Debug)]
enum Claimed {
    Next(SessionName),
    One(EntryPlace),
}

impl Claimed {
    fn parse(text: &str) -> Result<Self, InvalidPlace> {
        match text.trim_end_matches('/') {
            session if !session.contains('/') => Ok(Self::Next(session.parse()?)),
            _ => EntryPlace::request(text).map(Self::One),
        }
    }
}

/// The answer to a claim of one request.
#[derive(Deserialize)]
struct Won {
    claim: Held,
}

impl Claim {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { place, ttl, wanted, wait, repeat, access } = self;
        access.run(async |server, screen| match place {
            Claimed::One(request) => {
                let body = format!("{{\"ttl\":{}}}", quoted(&ttl.to_string()));
                let address = end_of(&request, "claim");
                let write = Write::json(Method::PUT, address, body);
                let received = server.write(write, &repeat.key()).await?;
                if !screen.is_table {
                    return screen.json(&received.text);
                }
                let won: Won = received.read()?;
                let address = entry_url(&request.session, &LogName::Requests, request.seq);
                let read = server.get(&address).await?;
                screen.put(&won_text(&request, &won.claim, &read.read()?))
            }
            Claimed::Next(session) => {
                let mut body = format!("{{\"ttl\":{}", quoted(&ttl.to_string()));
                if let Some(wanted) = wanted {
                    body = format!("{body},\"match\":{}", json("--match", wanted)?);
                }
                let received = next(server, &session, &format!("{body}}}"), wait, &repeat).await?;
                screen.show(&received, |entry: Entry<'_>| entry.facts(&LogName::Requests))
            }
        })
    }
}

/// Claims the next request of a session, waiting in rounds of a minute.
async fn next(
    server: &Server,
    session: &SessionName,
    body: &str,
    wait: Option<Ttl>,
    repeat: &Repeat,
) -> Result<Received, Refusal> {
    let wait = wait.map(|wait| Duration::from_millis(wait.ms().unsigned_abs()));
    let deadline = wait.map(|wait| Instant::now() + wait);
    loop {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let wait = left.map(|left| format!("{}ms", left.min(WAIT_MAX).as_millis().max(1)));
        let address = format!("{}/claim", log_url(session, &LogName::Requests));
        let address = Query::of(address).with("wait", wait).address();
        let write = Write::json(Method::POST, address, body.to_owned());
        let received = server.write(write, &repeat.clone().key()).await?;
        if received.status != StatusCode::NO_CONTENT {
            return Ok(received);
        }
        if deadline.is_none_or(|end| Instant::now() >= end) {
            return Err(Refusal::NothingToClaim);
        }
    }
}

fn won_text(request: &EntryPlace, claim: &Held, entry: &Entry<'_>) -> String {
    let mut table = Table::without_head();
    table.fact("request", &format!("{}/requests/{}", request.session, request.seq));
    table.fact("agent", &claim.agent);
    table.fact("fence", &claim.fence.to_string());
    table.fact("until", &claim.expires_at);
    entry.task().list_attempts(&mut table);
    table.fact("item", entry.item.get());
    table.text()
}

impl Finish {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { request, result, fence, unclaimed, repeat, access } = self;
        let needs_claim = fence.is_none() && !unclaimed;
        access.write(repeat, async |server| {
            let result = value("result", result)?;
            if needs_claim {
                claimed(server, &request).await?;
            }
            let body = object([fence.map(|fence| format!("\"fence\":{fence}")), result]);
            Ok(Write::json(Method::PUT, end_of(&request, "done"), body))
        })
    }
}

impl Fail {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { request, reason, fence, retry_in, repeat, access } = self;
        access.write(repeat, async |_| {
            let retry_in = retry_in.map(|time| quoted(&time.to_string()));
            let body = object([
                fence.map(|fence| format!("\"fence\":{fence}")),
                value("reason", reason)?,
                retry_in.map(|time| format!("\"retry_in\":{time}")),
            ]);
            Ok(Write::json(Method::PUT, end_of(&request, "failed"), body))
        })
    }
}

impl Release {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = end_of(&self.request, "claim");
        self.access.write(self.repeat, async |_| Ok(Write::delete(address)))
    }
}

/// Fails if a request waits for somebody to claim it. What prevents the look is the write's to say: a token may write
/// that may not read.
async fn claimed(server: &Server, request: &EntryPlace) -> Result<(), Refusal> {
    let address = entry_url(&request.session, &LogName::Requests, request.seq);
    let Ok(read) = server.get(&address).await else { return Ok(()) };
    let Ok(entry) = read.read::<Entry<'_>>() else { return Ok(()) };
    if entry.task().is_unclaimed() {
        return Err(Refusal::Unclaimed { seq: entry.seq });
    }
    Ok(())
}

/// Returns a member with a value that is given: JSON, or a text.
pub(super) fn value(name: &str, value: Option<String>) -> Result<Option<String>, Refusal> {
    let value = value.map(input::argument).transpose()?.map(input::json_or_text);
    Ok(value.map(|value| format!("\"{name}\":{value}")))
}

/// Returns an object of the members that are given.
pub(super) fn object<const N: usize>(members: [Option<String>; N]) -> String {
    let members: Vec<String> = members.into_iter().flatten().collect();
    format!("{{{}}}", members.join(","))
}

/// Returns the address of an end of a request.
pub(super) fn end_of(request: &EntryPlace, route: &str) -> String {
    format!("{}/{route}", entry_url(&request.session, &LogName::Requests, request.seq))
}
