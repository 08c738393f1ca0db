//! `blackboard wait`

use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Entry;
use crate::remote::place::EntryPlace;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::server::{Received, Server};
use blackboard_address::entry_url;
use blackboard_board::{LogName, Ttl};

/// The longest wait of one request: proxies end longer ones.
const PIECE: Duration = Duration::from_secs(25);

/// The pause before a wait goes on that the server broke off, as for a restart.
const PAUSE: Duration = Duration::from_secs(1);

/// Wait until a request has ended, or until somebody has claimed it
///
/// Prints the request. Exit code 7 means that the condition can no longer come true, such as 'done' for a request that
/// failed, or that --wait was too short. The wait continues through a restart of the server.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard wait demo/3 --wait 1h\n\
\x20 blackboard wait demo/3 --until ended --format json")]
pub struct Wait {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// What to wait for
    #[arg(long, value_name = "WHAT", value_enum, default_value = "done")]
    until: Until,

    /// Wait at most this long [default: for ever]
    #[arg(long, value_name = "DURATION")]
    wait: Option<Ttl>,

    #[command(flatten)]
    access: Access,
}

/// What a request is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// Done, failed or cancelled
    Ended,
    /// Finished, and accepted if it was reviewed
    Done,
    /// Claimed at least once
    Claimed,
    /// All attempts have failed
    Failed,
    /// Cancelled
    Cancelled,
}

impl Until {
    const fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Done => "done",
            Self::Claimed => "claimed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns what is said of a request for which it did not come true in time.
    const fn unmet(self) -> &'static str {
        match self {
            Self::Ended => "did not end",
            Self::Done => "was not done",
            Self::Claimed => "was not claimed",
            Self::Failed => "did not fail",
            Self::Cancelled => "was not cancelled",
        }
    }
}

impl Wait {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { request, until, wait, access } = self;
        access.run(async |server, screen| {
            let received = waited(server, &request, until, wait).await?;
            screen.show(&received, |entry: Entry<'_>| entry.facts(&LogName::Requests))
        })
    }
}

/// Waits in pieces, until the condition holds or can come true no more.
async fn waited(
    server: &Server,
    request: &EntryPlace,
    until: Until,
    wait: Option<Ttl>,
) -> Result<Received, Refusal> {
    let time = wait.map(|wait| Duration::from_millis(wait.ms().unsigned_abs()));
    let deadline = time.map(|time| Instant::now() + time);
    let address = entry_url(&request.session, &LogName::Requests, request.seq);
    let (mut is_last, mut has_begun) = (false, false);
    loop {
        let left = deadline.map_or(PIECE, |end| end.saturating_duration_since(Instant::now()));
        let ms = left.min(PIECE).as_millis().max(1);
        let query = Query::of(address.clone())
            .with("until", Some(until.name()))
            .with("wait", Some(format!("{ms}ms")));
        let is_over = || deadline.is_some_and(|end| Instant::now() >= end);
        match server.get(&query.address()).await {
            Err(refusal) if refusal.is_of("condition-not-met") => {
                if is_last {
                    return Err(refusal);
                }
                has_begun = true;
                // It may have ended in this way since the answer: the next one says.
                let Some(state) = open_state(server, &address).await? else {
                    is_last = true;
                    continue;
                };
                if let Some(time) = wait.filter(|_| is_over()) {
                    let (seq, unmet, time) = (request.seq.0, until.unmet(), time.to_string());
                    return Err(Refusal::NotInTime { seq, unmet, time, state });
                }
            }
            Err(refusal) if refusal.is_passing() && has_begun && !is_over() => sleep(PAUSE).await,
            waited => return waited,
        }
    }
}

/// Returns the state of a request in few words, or none if it has ended: the next wait then says why.
async fn open_state(server: &Server, address: &str) -> Result<Option<String>, Refusal> {
    let read = server.get(address).await?;
    let entry: Entry<'_> = read.read()?;
    let task = entry.task();
    Ok((!task.has_ended()).then(|| task.words()))
}
