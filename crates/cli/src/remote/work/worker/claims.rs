//! Claims of a worker: the next request, and what an earlier run of the same agent left behind.
//!
//! An earlier run that was killed renews nothing any more. A claim of the agent that nobody has renewed for half a ttl
//! is given back: a second worker under the same name, which lives, renews its claims more often than that.
//!
//! A claim that is cut short, since the worker stops or pauses, may have been won all the same. It is asked for again and
//! given back.

use std::time::Duration;

use hyper::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::outcome::Attempt;
use super::{FAREWELL, PAUSE, Worker, interrupted, time};
use crate::note;
use crate::remote::place::quoted;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Key;
use crate::remote::request::Claim;
use crate::remote::server::{Received, Write};
use blackboard_address::{log_url, session_url};
use blackboard_board::LogName;

/// The longest wait of one request: proxies end longer ones.
pub(super) const WAIT: &str = "25s";

const WAIT_MS: u128 = 25_000;

/// The pause before a claim is tried again that the session's budget prevents.
const BUDGET_PAUSE: Duration = Duration::from_secs(10);

/// Entries of a page in which earlier claims are looked for.
const PAGE: u32 = 1_000;

/// The claims of a worker.
#[derive(Debug)]
pub(super) struct Claims {
    earlier: Vec<Held>,
    due: Instant,
    has_taken: bool,
    /// The claim that was sent last, until it is answered.
    unanswered: Option<(Write, Key)>,
}

/// A request that the agent holds.
#[derive(Debug, Deserialize)]
struct Held {
    seq: u64,
    claim: Claim,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Listed>,
    next: u64,
    more: bool,
}

#[derive(Deserialize)]
struct Listed {
    seq: u64,
    claim: Option<Claim>,
}

impl Claims {
    /// Looks for what an earlier run has left. It is the first exchange, whose failure ends the worker.
    pub(super) async fn of(worker: &Worker<'_>) -> Result<Self, Refusal> {
        let mut earlier = Vec::new();
        let mut after = 0;
        loop {
            let address = Query::of(log_url(&worker.session, &LogName::Requests))
                .with("keys", Some("[]"))
                .with("limit", Some(PAGE))
                .with("after", Some(after))
                .address();
            let page: Page = match worker.server.get(&address).await {
                Err(refusal) if is_absent(&refusal) && !worker.until_empty => break,
                page => page?.read()?,
            };
            for Listed { seq, claim } in page.entries {
                let claim = claim.filter(|claim| claim.agent == worker.agent.as_str());
                earlier.extend(claim.map(|claim| Held { seq, claim }));
            }
            if !page.more {
                break;
            }
            after = page.next;
        }
        let due = Instant::now() + time(worker.ttl) / 2;
        Ok(Self { earlier, due, has_taken: false, unanswered: None })
    }

    /// Claims the next request. None is left to claim if there is none.
    pub(super) async fn next(&mut self, worker: &Worker<'_>) -> Result<Option<Received>, Refusal> {
        if worker.once && self.has_taken {
            return Ok(None);
        }
        let mut is_noted = false;
        loop {
            self.give_back(worker).await;
            let taken = match self.claim(worker).await {
                Err(refusal) if is_absent(&refusal) && !worker.until_empty => {
                    exists(worker).await;
                    continue;
                }
                Err(refusal) if refusal.is_of("budget-exhausted") && !worker.until_empty => {
                    interrupted(&refusal, &mut is_noted).await;
                    sleep(BUDGET_PAUSE).await;
                    continue;
                }
                taken => taken?,
            };
            if taken.status != StatusCode::NO_CONTENT {
                self.has_taken = true;
                return Ok(Some(taken));
            }
            if worker.until_empty {
                if self.earlier.is_empty() {
                    return Ok(None);
                }
                sleep_until(self.due).await;
            }
        }
    }

    /// Asks for the next request, in one piece of a wait, through interruptions of the server. The key finds a claim
    /// whose answer was lost.
    async fn claim(&mut self, worker: &Worker<'_>) -> Result<Received, Refusal> {
        let ttl = quoted(&worker.ttl.to_string());
        let wanted = worker.wanted.as_ref().map(|wanted| format!(",\"match\":{wanted}"));
        let body = format!("{{\"ttl\":{ttl}{}}}", wanted.unwrap_or_default());
        let wait = (!worker.until_empty).then(|| format!("{}ms", self.wait_ms()));
        let address = Query::of(address(worker)).with("wait", wait).address();
        let write = Write::json(Method::POST, address, body);
        let (key, mut is_noted) = (Key::new(), false);
        self.unanswered = Some((write.clone(), key.clone()));
        loop {
            match worker.server.write(write.clone(), &key).await {
                Err(refusal) if refusal.is_passing() => interrupted(&refusal, &mut is_noted).await,
                taken => {
                    self.unanswered = None;
                    return taken;
                }
            }
        }
    }

    /// Gives back what a claim has won that was cut short.
    pub(super) async fn give_up(&mut self, worker: &Worker<'_>, why: &str) {
        let Some((write, key)) = self.unanswered.clone() else { return };
        // If this is not answered either, the claim expires.
        if let Ok(Some(Held { seq, claim })) = timeout(FAREWELL, won(worker, write, &key)).await {
            let attempt = Attempt { seq, fence: claim.fence, failures: 0 };
            if attempt.release(worker).await.is_ok() {
                worker.log(seq, &format!("released: {why}"));
            }
        }
        self.unanswered = None;
    }

    /// Returns the time to wait: not beyond the time at which earlier claims are looked at.
    fn wait_ms(&self) -> u128 {
        let left = self.due.saturating_duration_since(Instant::now()).as_millis().max(1);
        if self.earlier.is_empty() { WAIT_MS } else { left.min(WAIT_MS) }
    }

    /// Gives back the earlier claims that nobody renews.
    async fn give_back(&mut self, worker: &Worker<'_>) {
        if Instant::now() < self.due {
            return;
        }
        for Held { seq, claim } in std::mem::take(&mut self.earlier) {
            let address = format!("{}?keys=%5B%5D", worker.request(seq));
            let Ok(read) = worker.server.get(&address).await else { continue };
            let now = read.read::<Listed>().ok().and_then(|entry| entry.claim);
            if now.is_some_and(|now| now == claim) {
                let attempt = Attempt { seq, fence: claim.fence, failures: 0 };
                if attempt.release(worker).await.is_ok() {
                    worker.log(seq, "released: an earlier run of this agent had claimed it");
                }
            }
        }
    }
}

/// Returns what a claim has won. Under its key, a claim that does not wait is rejected if it has, and else ends at once.
async fn won(worker: &Worker<'_>, write: Write, key: &Key) -> Option<Held> {
    let at_once = Write { address: address(worker), ..write.clone() };
    let taken = match worker.server.write(at_once, key).await {
        Err(refusal) if refusal.is_of("idempotency-key-reused") => {
            worker.server.write(write, key).await
        }
        taken => taken,
    };
    taken.ok().filter(|taken| taken.status != StatusCode::NO_CONTENT)?.read().ok()
}

/// Returns the address of claims of the next request.
fn address(worker: &Worker<'_>) -> String {
    format!("{}/claim", log_url(&worker.session, &LogName::Requests))
}

/// Waits until the session exists.
async fn exists(worker: &Worker<'_>) {
    note(format_args!("session {} does not exist yet; waiting for it", worker.session));
    let address = format!("{}?until=exists&wait={WAIT}", session_url(&worker.session));
    while worker.server.get(&address).await.is_err() {
        sleep(PAUSE).await;
    }
}

fn is_absent(refusal: &Refusal) -> bool {
    refusal.is_of("session-not-found")
}
