//! One attempt: a claimed request, its command, and what ends either of them.

use std::cell::Cell;
use std::ffi::OsString;
use std::future::pending;

use hyper::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::child::{Child, Exit, OUTPUT_BYTES_MAX};
use super::claims::WAIT;
use super::directive::Directive;
use super::outcome::Attempt;
use super::{PAUSE, PAUSED, STOPS, Worker, time};
use crate::remote::place::quoted;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Key;
use crate::remote::request::Claim;
use crate::remote::server::{Received, Write};

/// The exit code by which a command gives its request back, `EX_TEMPFAIL`.
const RELEASE: i32 = 75;

/// A request that was claimed.
#[derive(Deserialize)]
struct Taken<'a> {
    seq: u64,
    claim: Claim,
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow, default)]
    past_attempts: Vec<&'a RawValue>,
    attempts: Option<u32>,
    /// Attempts that have failed, of those in `attempts`.
    failures: Option<u32>,
    #[serde(default)]
    review: bool,
}

#[derive(Deserialize)]
struct Past {
    outcome: String,
}

/// The answer to a renewal.
#[derive(Deserialize)]
struct Renewed {
    claim: Claim,
}

/// What a wait for a request shows of it.
#[derive(Deserialize)]
struct Shown {
    claim: Option<Claim>,
    cancel: Option<IgnoredAny>,
    cancelled: Option<IgnoredAny>,
    done: Option<IgnoredAny>,
    failed: Option<IgnoredAny>,
    in_review: Option<IgnoredAny>,
}

/// Why an attempt ends.
#[derive(Debug)]
enum End {
    /// Its command has.
    Exit(Exit),
    /// The time of an attempt is over.
    Timeout,
    /// The request is to be cancelled with its claim.
    Cancelled,
    /// The claim is lost.
    Lost(String),
    /// The agent is paused.
    Paused(Directive),
    /// The worker stops.
    Stopped,
}

/// Works on a claimed request, until the attempt has ended.
pub(super) async fn run(worker: &Worker<'_>, received: &Received) -> Result<(), Refusal> {
    let taken: Taken<'_> = received.read()?;
    let (seq, failures) = (taken.seq, failures(&taken));
    let fence = Cell::new(taken.claim.fence);
    let prefix = match worker.names_requests {
        true => format!("{}/{seq}: ", worker.session),
        false => String::new(),
    };
    let variables = variables(worker, &taken);
    let started = Child::start(&worker.command, variables, taken.item.get(), prefix).await;
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let attempt = Attempt { seq, fence: fence.get(), failures };
            attempt.release(worker).await.ok();
            return Err(Refusal::Child(error));
        }
    };
    let end = tokio::select! {
        biased;
        () = worker.stopped() => End::Stopped,
        end = interrupted(worker, seq, &fence) => end,
        exit = child.ended() => End::Exit(exit.map_err(Refusal::Child)?),
        () = timeout(worker) => End::Timeout,
    };
    if !matches!(end, End::Exit(Exit::Code(_))) {
        let renewed = renewed(worker, seq, &fence);
        // Its processes may take longer than a ttl.
        tokio::select! {
            () = child.stop() => {}
            _ = async { renewed.await; pending::<()>().await } => {}
        }
    }
    let attempt = Attempt { seq, fence: fence.get(), failures };
    let ended = ended(worker, &taken, attempt, &mut child, &end).await;
    match ended {
        Ok(said) => worker.log(seq, &said),
        Err(refusal) => worker.log(seq, &format!("lost: {refusal}")),
    }
    if let End::Paused(directive) = end {
        tokio::select! {
            _ = worker.directed(|present| present != directive) => {}
            () = worker.stopped() => {}
        }
    }
    Ok(())
}

/// Writes the end of an attempt, and returns its words.
async fn ended(
    worker: &Worker<'_>,
    taken: &Taken<'_>,
    attempt: Attempt,
    child: &mut Child,
    end: &End,
) -> Result<String, Refusal> {
    let release =
        async |why: &str| attempt.release(worker).await.map(|()| format!("released: {why}"));
    let why = match end {
        End::Exit(Exit::Code(Some(0))) => {
            attempt.finish(worker, child.output()).await?;
            let waits = if taken.review { ", waits for a verdict" } else { "" };
            return Ok(format!("done{waits}"));
        }
        End::Exit(Exit::Code(Some(RELEASE))) => return release("exit code 75").await,
        End::Cancelled => {
            // A second cancellation has ended it already.
            return match attempt.release(worker).await {
                Ok(()) | Err(Refusal::Refused { .. }) => Ok("cancelled".to_owned()),
                Err(refusal) => Err(refusal),
            };
        }
        End::Paused(_) => return release(PAUSED).await,
        End::Stopped => return release(STOPS).await,
        End::Lost(why) => return Ok(format!("lost: {why}")),
        End::Exit(Exit::Code(Some(code))) => format!("exit code {code}"),
        End::Exit(Exit::Code(None)) => "ended by a signal".to_owned(),
        End::Exit(Exit::TooMuch) => {
            format!("the output has more than {OUTPUT_BYTES_MAX} bytes")
        }
        End::Timeout => format!(
            "no end within {}",
            worker.timeout.map(|time| time.to_string()).unwrap_or_default()
        ),
    };
    let pause = attempt.fail(worker, &why, child.tail()).await?;
    let next = match is_last(taken) {
        true => "no attempt is left".to_owned(),
        false => format!("may be claimed again in {} s", pause.as_secs()),
    };
    Ok(format!("failed: {why}; {next}"))
}

/// Returns true if the request fails with this attempt.
fn is_last(taken: &Taken<'_>) -> bool {
    let failures = taken.failures.unwrap_or_default();
    taken.attempts.is_some_and(|attempts| failures.saturating_add(1) >= attempts)
}

/// Counts the attempts that failed. One that was given back did not.
fn failures(taken: &Taken<'_>) -> u32 {
    let read = |past: &&RawValue| serde_json::from_str::<Past>(past.get()).ok();
    let failed = taken.past_attempts.iter().filter_map(read);
    u32::try_from(failed.filter(|past| past.outcome != "released").count()).unwrap_or(u32::MAX)
}

/// Returns the variables of the command.
fn variables(worker: &Worker<'_>, taken: &Taken<'_>) -> Vec<(&'static str, Option<OsString>)> {
    let past: Vec<&str> = taken.past_attempts.iter().map(|past| past.get()).collect();
    let of_request = [
        ("BLACKBOARD_SESSION", worker.session.to_string()),
        ("BLACKBOARD_AGENT", worker.agent.to_string()),
        ("BLACKBOARD_SEQ", taken.seq.to_string()),
        ("BLACKBOARD_FENCE", taken.claim.fence.to_string()),
        ("BLACKBOARD_PAST_ATTEMPTS", format!("[{}]", past.join(","))),
    ];
    let of_request = of_request.map(|(name, value)| (name, Some(value.into())));
    worker.variables.iter().cloned().chain(of_request).collect()
}

/// Waits for the time of an attempt.
async fn timeout(worker: &Worker<'_>) {
    match worker.timeout {
        Some(limit) => sleep(time(limit)).await,
        None => pending().await,
    }
}

/// Waits until something other than the command ends the attempt.
async fn interrupted(worker: &Worker<'_>, seq: u64, fence: &Cell<u64>) -> End {
    tokio::select! {
        why = renewed(worker, seq, fence) => End::Lost(why),
        end = watched(worker, seq, fence) => end,
        directive = worker.directed(|directive| directive.covers(seq)) => End::Paused(directive),
    }
}

/// Renews the claim until it is lost. After a time without the server the claim may be won anew: nobody else had it
/// meanwhile, or the old fence would not pass.
async fn renewed(worker: &Worker<'_>, seq: u64, fence: &Cell<u64>) -> String {
    let third = time(worker.ttl) / 3;
    let mut pause = third;
    loop {
        sleep(pause).await;
        let address = format!("{}/claim?claim={seq}&fence={}", worker.request(seq), fence.get());
        let body = format!("{{\"ttl\":{}}}", quoted(&worker.ttl.to_string()));
        let write = Write::json(Method::PUT, address, body);
        let renewed = worker.server.write(write, &Key::new()).await;
        pause = third;
        match renewed.and_then(|received| received.read()) {
            Ok(Renewed { claim }) => fence.set(claim.fence),
            Err(refusal) if refusal.is_passing() => pause = PAUSE,
            Err(refusal) => return refusal.to_string(),
        }
    }
}

/// Watches the request until it is cancelled, or another agent's.
async fn watched(worker: &Worker<'_>, seq: u64, fence: &Cell<u64>) -> End {
    let address = format!("{}?keys=%5B%5D", worker.request(seq));
    let mut etag = String::new();
    loop {
        let read = match etag.is_empty() {
            true => worker.server.get(&address).await.map(Some),
            false => worker.server.get_newer(&format!("{address}&wait={WAIT}"), &etag).await,
        };
        match read {
            Ok(None) => {}
            Ok(Some(received)) => {
                if let Some(end) =
                    received.read().ok().and_then(|shown| seen(worker, &shown, fence))
                {
                    return end;
                }
                etag.clone_from(&received.etag);
                if etag.is_empty() {
                    sleep(PAUSE).await;
                }
            }
            Err(refusal) if refusal.is_absence() => return End::Lost(refusal.to_string()),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Returns the end that a request shows. A claim that has lapsed is the renewal's to win anew.
fn seen(worker: &Worker<'_>, shown: &Shown, fence: &Cell<u64>) -> Option<End> {
    let Shown { claim, cancel, cancelled, done, failed, in_review } = shown;
    if cancel.is_some() || cancelled.is_some() {
        return Some(End::Cancelled);
    }
    let ends = [(done, "is done"), (failed, "has failed"), (in_review, "is in review")];
    if let Some((_, end)) = ends.iter().find(|(end, _)| end.is_some()) {
        return Some(End::Lost(format!("the request {end}")));
    }
    let claim = claim.as_ref()?;
    let is_other = claim.agent != worker.agent.as_str() || claim.fence < fence.get();
    is_other.then(|| End::Lost(format!("{} has claimed it", claim.agent)))
}
