//! `blackboard work`: a command for each request of a session.
//!
//! One slot runs one command at a time. The slots share a single waiting claim, so a worker with many slots is one
//! waiter at the server.

mod attempt;
mod child;
mod claims;
mod directive;
mod keeper;
mod outcome;

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use self::claims::Claims;
use self::directive::Directive;
pub use self::keeper::Keeper;
use crate::connection::Connection;
use crate::remote::access;
use crate::remote::place::json;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Key;
use crate::remote::server::{Received, Server, Write};
use crate::system::{Signals, is_program};
use crate::{Failure, note};
use blackboard_address::entry_url;
use blackboard_board::{AgentName, LogName, Seq, SessionName, Ttl};

/// Variables of the commands that no option reads.
pub const WORK_VARIABLES: [&str; 3] =
    ["BLACKBOARD_SEQ", "BLACKBOARD_FENCE", "BLACKBOARD_PAST_ATTEMPTS"];

/// The most commands at once.
const PARALLEL_MAX: u16 = 64;

/// The pause before something is tried again that an interruption of the server prevented.
const PAUSE: Duration = Duration::from_secs(1);

/// The time that the end of a request may take once the worker stops.
const FAREWELL: Duration = Duration::from_secs(10);

/// Why a request is released.
const PAUSED: &str = "the agent is paused";
const STOPS: &str = "the worker stops";

/// Run a command for each request of a session
///
/// Claims a request, and runs COMMAND with the request's item as JSON on its standard input. Exit code 0 finishes the
/// request, with the command's standard output as the result: JSON, or else a text. Exit code 75 gives the request
/// back. Any other exit code fails the attempt, with the end of standard error as the reason, or of standard output if
/// standard error is empty. The request can be claimed again after a pause that doubles with each failed attempt.
///
/// The claim is renewed while the command runs. If the request is cancelled, the claim is lost or the agent is paused,
/// the command's processes get SIGTERM, and SIGKILL after 10 s. SIGTERM or Ctrl-C ends the command in the same way,
/// gives its request back, and ends 'work'.
///
/// The command's environment has BLACKBOARD_SESSION, BLACKBOARD_SEQ, BLACKBOARD_FENCE, BLACKBOARD_AGENT, BLACKBOARD_URL,
/// BLACKBOARD_TOKEN_FILE if the token is in a file, and BLACKBOARD_PAST_ATTEMPTS: a JSON array of the attempts before
/// this one, with their reasons.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard work demo --agent LinuxAgent -- ./make_chart\n\
\x20 blackboard work demo --agent LinuxAgent --match '{\"device\":\"linux\"}' -- ./make_chart\n\
\x20 blackboard work demo --agent LinuxAgent --parallel 4 --timeout 10m -- ./make_chart")]
#[expect(clippy::doc_markdown, reason = "the text is printed as it stands")]
pub struct Work {
    /// Session whose requests to work on; it need not exist yet
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Members that the request's item must have, as a JSON object
    #[arg(long = "match", value_name = "JSON")]
    wanted: Option<String>,

    /// Requests to work on at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(PARALLEL_MAX))
    )]
    parallel: u16,

    /// Time after which a claim expires unless it is renewed, which happens three times as often
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    ttl: Ttl,

    /// End after one request
    #[arg(long, conflicts_with = "parallel")]
    once: bool,

    /// End when no request can be claimed
    #[arg(long)]
    until_empty: bool,

    /// Fail an attempt whose command runs longer
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Ttl>,

    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true, num_args = 1..)]
    command: Vec<OsString>,

    #[command(flatten)]
    connection: Connection,
}

/// What all slots have in common.
struct Worker<'a> {
    server: &'a Server,
    session: SessionName,
    agent: AgentName,
    ttl: Ttl,
    wanted: Option<String>,
    until_empty: bool,
    once: bool,
    timeout: Option<Ttl>,
    command: Vec<OsString>,
    /// Variables to set, or to remove.
    variables: Vec<(&'static str, Option<OsString>)>,
    names_requests: bool,
    stop: watch::Receiver<bool>,
    directive: watch::Receiver<Directive>,
}

impl Work {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let variables = self.connection.variables().map_err(Failure::usage)?;
        let program = self.command.first().cloned().unwrap_or_default();
        if !is_program(&program) {
            let program = program.to_string_lossy().into_owned();
            return Err(Refusal::NoProgram { program }.into());
        }
        let wanted = self.wanted.map(|wanted| json("--match", wanted)).transpose();
        let wanted = wanted.map_err(Refusal::from)?;
        access::run(&self.connection, async |server| {
            let agent = server.agent().cloned().ok_or(Refusal::Nameless { what: "work" })?;
            let (stop, stopped) = watch::channel(false);
            let (direct, directive) = watch::channel(Directive::None);
            let worker = Worker {
                server,
                session: self.session,
                agent,
                ttl: self.ttl,
                wanted,
                until_empty: self.until_empty,
                once: self.once,
                timeout: self.timeout,
                command: self.command,
                variables,
                names_requests: self.parallel > 1,
                stop: stopped,
                directive,
            };
            worker.run(self.parallel, &stop, &direct).await
        })
    }
}

impl Worker<'_> {
    /// Works until a signal, a refusal, or the end that an option asks for.
    async fn run(
        &self,
        parallel: u16,
        stop: &watch::Sender<bool>,
        direct: &watch::Sender<Directive>,
    ) -> Result<(), Refusal> {
        let signals = Signals::new().map_err(Refusal::Output)?;
        let claims = Mutex::new(Claims::of(self).await?);
        let slots = (0..parallel).map(|_| async {
            let ended = Box::pin(self.slot(&claims)).await;
            if ended.is_err() {
                stop.send_replace(true);
            }
            ended
        });
        tokio::select! {
            ended = join_all(slots) => ended.into_iter().collect(),
            never = stop_at(signals, stop) => match never {},
            never = directive::follow(self, direct) => match never {},
        }
    }

    /// Works on one request after another.
    async fn slot(&self, claims: &Mutex<Claims>) -> Result<(), Refusal> {
        loop {
            let taken = tokio::select! {
                biased;
                () = self.stopped() => {
                    claims.lock().await.give_up(self, STOPS).await;
                    return Ok(());
                }
                taken = self.take(claims) => taken?,
            };
            let Some(taken) = taken else { return Ok(()) };
            attempt::run(self, &taken).await?;
        }
    }

    /// Claims the next request, but none while the agent is paused.
    async fn take(&self, claims: &Mutex<Claims>) -> Result<Option<Received>, Refusal> {
        loop {
            self.directed(|directive| directive != Directive::All).await;
            tokio::select! {
                biased;
                _ = self.directed(|directive| directive == Directive::All) => {
                    claims.lock().await.give_up(self, PAUSED).await;
                }
                taken = async { claims.lock().await.next(self).await } => return taken,
            }
        }
    }

    /// Waits until the worker shall stop.
    async fn stopped(&self) {
        // The sender lives as long as the slots.
        self.stop.clone().wait_for(|stop| *stop).await.ok();
    }

    /// Waits until the present directive is such a one, and returns it.
    async fn directed(&self, is_such: impl Fn(Directive) -> bool) -> Directive {
        let mut directive = self.directive.clone();
        let such = directive.wait_for(|directive| is_such(*directive)).await;
        such.map_or(Directive::None, |directive| *directive)
    }

    /// Writes, once, however long the server is away; only a worker that stops gives up.
    async fn write(&self, write: Write) -> Result<Received, Refusal> {
        let (key, mut given_up, mut is_noted) = (Key::new(), None, false);
        loop {
            let refusal = match self.server.write(write.clone(), &key).await {
                Err(refusal) if refusal.is_passing() => refusal,
                written => return written,
            };
            if *self.stop.borrow() {
                let end = *given_up.get_or_insert_with(|| Instant::now() + FAREWELL);
                if Instant::now() >= end {
                    return Err(refusal);
                }
            }
            interrupted(&refusal, &mut is_noted).await;
        }
    }

    /// Returns the address of a request.
    fn request(&self, seq: u64) -> String {
        entry_url(&self.session, &LogName::Requests, Seq(seq))
    }

    /// Prints how work on a request ended.
    fn log(&self, seq: u64, end: &str) {
        note(format_args!("{}/{seq} {end}", self.session));
    }
}

/// Stops the worker at the first signal.
async fn stop_at(mut signals: Signals, stop: &watch::Sender<bool>) -> Infallible {
    signals.next().await;
    stop.send_replace(true);
    pending().await
}

/// Says once that the server is away, and waits a little.
async fn interrupted(refusal: &Refusal, is_noted: &mut bool) {
    if !*is_noted {
        note(format_args!("{refusal}; trying again"));
        *is_noted = true;
    }
    sleep(PAUSE).await;
}

/// Returns a duration of an option.
fn time(ttl: Ttl) -> Duration {
    Duration::from_millis(ttl.ms().unsigned_abs())
}
