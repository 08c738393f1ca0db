//! `blackboard attention`: what waits for an agent, for people, for scripts, and for the hooks of agent hosts.

mod arrivals;
mod hook;
mod lists;
mod notice;
mod record;
mod waiting;
mod watch;

use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep};

pub(crate) use self::arrivals::Arrivals;
use self::hook::{Hook, Host};
pub(crate) use self::lists::{Kind, List, Lists};
pub(crate) use self::waiting::Thing;
use self::waiting::Waiting;
pub(crate) use self::watch::Wanted;
use self::watch::Watch;
use super::access::Access;
use super::refusal::Refusal;
use super::server::{Received, Server};
use crate::Failure;
use blackboard_board::{SessionName, Ttl};

/// The longest wait of one request: proxies end longer ones.
const PIECE: Duration = Duration::from_secs(25);

/// The pause before a wait goes on that the server broke off, as for a restart.
const PAUSE: Duration = Duration::from_secs(1);

/// Show what waits for an agent: messages, answers, requests and more
///
/// Needs --agent, unless the configuration file names one. Exit code 7 means that nothing waits, or nothing came in
/// time.
///
/// With --hook it is the command of an agent host's hooks. It reads the hook's JSON from standard input, and prints what
/// the host expects: at a start, at a prompt and after a tool the new things as context, and at a stop the new things
/// as the reason to go on. Each thing is reported once to each session of the host. A hook never stops its host: if the
/// server cannot be reached, a note goes to standard error and the exit code is 0. With --wait, a stop waits for
/// something new; the hook of Claude Code then ends with exit code 2 and the things on standard error, which wakes an idle
/// session from a hook with "asyncRewake".
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard attention demo --agent LinuxAgent --wait 1h\n\
\x20 blackboard attention demo --agent LinuxAgent --include messages,cancels\n\
\x20 blackboard attention demo --agent claude --hook claude-code")]
pub struct Attention {
    /// Session of the agent
    #[arg(value_name = "SESSION")]
    session: SessionName,

    #[command(flatten)]
    wanted: Wanted,

    /// Leave out answers and requests that came up to this revision: the value of 'next' of an earlier look
    #[arg(long, value_name = "REVISION", conflicts_with = "hook")]
    after: Option<u64>,

    /// Wait at most this long for something
    #[arg(long, value_name = "DURATION")]
    wait: Option<Ttl>,

    /// Answer a hook of this host, whose JSON is on standard input
    #[arg(long, value_name = "HOST", value_enum)]
    hook: Option<Host>,

    /// Print the server's JSON, like --format json
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten)]
    access: Access,
}

impl Attention {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { session, wanted, after, wait, hook, json, access } = self;
        let wait = wait.map(|wait| Duration::from_millis(wait.ms().unsigned_abs()));
        if let Some(host) = hook {
            Hook { host, session, wanted, wait }.run(&access.connection);
            return Ok(());
        }
        access.or_json(json).run(async |server, screen| {
            let agent = server.agent().ok_or(Refusal::Nameless { what: "attention" })?;
            let mut watch = Watch::new(&session, agent, wanted)?;
            watch.skip(after);
            let received = waited(server, &mut watch, wait).await?;
            screen.show(&received, |waiting: Waiting<'_>| waiting.text())
        })
    }
}

/// Waits in pieces until something waits.
async fn waited(
    server: &Server,
    watch: &mut Watch,
    wait: Option<Duration>,
) -> Result<Received, Refusal> {
    let deadline = wait.map(|wait| Instant::now() + wait);
    let mut looked = watch.look(server).await.map(Some);
    loop {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.filter(|left| !left.is_zero());
        match (looked, left) {
            (Ok(Some(received)), _) if !received.read::<Waiting<'_>>()?.is_empty() => {
                return Ok(received);
            }
            (Ok(_), None) => return Err(Refusal::NothingWaits),
            (Err(refusal), Some(_)) if refusal.is_passing() => sleep(PAUSE).await,
            (Err(refusal), _) => return Err(refusal),
            (Ok(_), Some(_)) => {}
        }
        looked = watch.change(server, left.unwrap_or(PIECE).min(PIECE)).await;
    }
}
