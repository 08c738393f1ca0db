//! Workers of a session that wait for a request to claim.
//!
//! A request that becomes claimable is offered to one worker: of those whose members it has, the one that has waited
//! longest. A worker that does not claim it keeps its place, and the request is offered to the next one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use imbl::OrdSet;
use imbl::ordset::DiffItem;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::{Search, Wait};
use crate::watch::Watch;
use crate::{Service, ServiceError};
use blackboard_board::{Board, LogName, Revision, Seq, SessionName, Wanted};
use blackboard_metrics as metrics;

/// The maximum number of workers that wait in one session.
const WAITING_MAX: usize = 10_000;

/// The queues by session. A queue lives while a worker waits.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<HashMap<SessionName, Arc<Queue>>>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// A request was given back.
    given_back: Notify,
    /// Cancelled when the last worker has left.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// The workers, by the order in which they came.
    workers: BTreeMap<u64, Worker>,
    last: u64,
    /// The requests that a worker is about to claim, with that worker.
    offered: HashMap<Seq, u64>,
    /// Offered requests that were not claimed.
    given_back: Vec<Seq>,
    /// The requests that were claimable at the last look, and the revision of that board.
    seen: OrdSet<Seq>,
    revision: Revision,
}

#[derive(Debug)]
struct Worker {
    wanted: Wanted,
    /// Absent while the worker tries an offer.
    offers: Option<oneshot::Sender<Option<Seq>>>,
}

/// The place of a worker in the queue. Dropping it leaves the queue.
pub(crate) struct Place {
    service: Service,
    session: SessionName,
    queue: Arc<Queue>,
    number: u64,
}

impl Service {
    /// Joins the queue of a session, whose first worker starts to watch it.
    pub(super) fn join(
        &self,
        session: &SessionName,
        wanted: &Wanted,
        search: &Search,
    ) -> Result<Place, ServiceError> {
        let mut queues = self.inner.queues.0.lock();
        let queue = match queues.get(session) {
            Some(queue) => Arc::clone(queue),
            None => {
                let queue = Arc::new(Queue::default());
                {
                    let mut state = queue.state.lock();
                    (state.seen, state.revision) = (search.claimable.clone(), search.revision);
                }
                let watching = Watching {
                    service: self.clone(),
                    session: session.clone(),
                    queue: Arc::clone(&queue),
                };
                tokio::spawn(watching.run(self.watch(session)?));
                queues.insert(session.clone(), Arc::clone(&queue));
                queue
            }
        };
        let mut state = queue.state.lock();
        if state.workers.len() >= WAITING_MAX {
            return Err(ServiceError::Overloaded);
        }
        state.last += 1;
        let number = state.last;
        state.workers.insert(number, Worker { wanted: wanted.clone(), offers: None });
        drop(state);
        let (service, session) = (self.clone(), session.clone());
        Ok(Place { service, session, queue, number })
    }
}

impl Place {
    /// Waits for an offer after a search that found nothing: a request, or `Some(None)` to search again. Returns
    /// `None` at the end of the wait, or when the server stops.
    pub(super) async fn offer(&self, search: &Search, wait: &Wait) -> Option<Option<Seq>> {
        let (offers, offer) = oneshot::channel();
        {
            let mut state = self.queue.state.lock();
            self.queue.give_back(&mut state, self.number);
            let has_new = state.revision > search.revision
                && added(&search.claimable, &state.seen)
                    .any(|seq| !state.offered.contains_key(&seq));
            if has_new {
                return Some(None);
            }
            if let Some(worker) = state.workers.get_mut(&self.number) {
                worker.offers = Some(offers);
            }
        }
        tokio::select! {
            biased;
            () = wait.given_up.cancelled() => None,
            offered = timeout_at(wait.deadline, offer) => offered.ok()?.ok(),
            () = self.service.stopping().cancelled() => None,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.service.inner.queues.0.lock();
        let mut state = self.queue.state.lock();
        state.workers.remove(&self.number);
        self.queue.give_back(&mut state, self.number);
        if state.workers.is_empty() {
            queues.remove(&self.session);
            self.queue.ended.cancel();
        }
    }
}

impl Queue {
    /// Ends the offers to a worker. A request is offered again if it is still claimable.
    fn give_back(&self, state: &mut State, worker: u64) {
        let State { offered, given_back, .. } = state;
        offered.retain(|seq, to| {
            if *to == worker {
                given_back.push(*seq);
            }
            *to != worker
        });
        if !state.given_back.is_empty() {
            self.given_back.notify_one();
        }
    }
}

/// The task that offers the requests of one session.
struct Watching {
    service: Service,
    session: SessionName,
    queue: Arc<Queue>,
}

impl Watching {
    async fn run(self, mut watch: Watch) {
        loop {
            let published = self.service.published(&self.session).await;
            match published {
                Ok(Some(published)) => self.queue.state.lock().offer_new(&published.board),
                Ok(None) | Err(_) => self.queue.state.lock().tell_all(),
            }
            tokio::select! {
                () = self.queue.ended.cancelled() => return,
                () = self.queue.given_back.notified() => {}
                changed = watch.changed() => if !changed { return },
            }
        }
    }
}

impl State {
    /// Offers the requests that became claimable since the last look, or were given back.
    fn offer_new(&mut self, board: &Board) {
        let claimable = board.tasks().claimable();
        let mut new: Vec<Seq> = added(&self.seen, claimable).collect();
        new.extend(self.given_back.drain(..).filter(|seq| claimable.contains(seq)));
        new.sort_unstable();
        new.dedup();
        for seq in new {
            if !self.offered.contains_key(&seq) {
                self.offer(board, seq);
            }
        }
        (self.seen, self.revision) = (claimable.clone(), board.revision());
    }

    /// Offers a request to the first worker that looks for such a one.
    fn offer(&mut self, board: &Board, seq: Seq) {
        let requests = board.log(&LogName::Requests);
        let Some(entry) = requests.and_then(|requests| requests.get(seq)) else { return };
        for (number, worker) in &mut self.workers {
            if !worker.wanted.fits(&entry.item) {
                continue;
            }
            // A worker that leaves is not there to take it.
            if worker.offers.take().is_some_and(|offers| offers.send(Some(seq)).is_ok()) {
                metrics::CLAIM_OFFERS.add_one();
                self.offered.insert(seq, *number);
                return;
            }
        }
    }

    /// Makes all workers search: the session was deleted, or cannot be read.
    fn tell_all(&mut self) {
        for worker in self.workers.values_mut() {
            if let Some(offers) = worker.offers.take() {
                // It may have left.
                offers.send(None).ok();
            }
        }
    }
}

/// Returns the requests in the second set that are not in the first.
fn added(before: &OrdSet<Seq>, after: &OrdSet<Seq>) -> impl Iterator<Item = Seq> {
    before.diff(after).filter_map(|item| match item {
        DiffItem::Add(seq) => Some(*seq),
        DiffItem::Remove(_) => None,
    })
}
