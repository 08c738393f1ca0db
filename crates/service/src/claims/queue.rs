//! Workers of a session that wait for a request to claim.
//!
//! A request that becomes claimable is offered to one worker: of those whose members it has, the one that has waited
//! longest. A worker that does not claim it keeps its place, and the request is offered to the next one. What a cap holds
//! back is offered when there is room, and no more of it than there is room for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::{Search, Wait};
use crate::watch::Watch;
use crate::{Service, ServiceError};
use blackboard_board::{
    Board, Entry, Groups, Log, Rank, Revision, Seq, SessionName, Slots, Tasks, Wanted,
};
use blackboard_metrics as metrics;

/// The maximum number of workers that wait in one session.
const WAITING_MAX: usize = 10_000;

/// The maximum number of requests of one kind that are looked at after a cap held them back. Beyond it the workers search.
const LOOKED_AT_MAX: usize = 1_000;

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
    /// The tasks at the last look, and the revision of that board.
    seen: Tasks,
    revision: Revision,
    /// The groups of requests that were not offered, since a cap or other offers left no room.
    held: BTreeSet<Groups>,
}

#[derive(Debug)]
struct Worker {
    wanted: Wanted,
    /// Absent while the worker tries an offer.
    offers: Option<oneshot::Sender<Option<Rank>>>,
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
                    (state.seen, state.revision) = (search.tasks.clone(), search.revision);
                    state.held = search.tasks.held_back().cloned().collect();
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
    pub(super) async fn offer(&self, search: &Search, wait: &Wait) -> Option<Option<Rank>> {
        let (offers, offer) = oneshot::channel();
        {
            let mut state = self.queue.state.lock();
            self.queue.give_back(&mut state, self.number);
            if state.is_news_to(search) {
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
    /// Returns true if a search that found nothing may find something now. If it is newer than the last look, notes what it
    /// saw held back.
    fn is_news_to(&mut self, search: &Search) -> bool {
        let mut held = search.tasks.held_back();
        if self.revision <= search.revision {
            self.held.extend(held.cloned());
            return false;
        }
        let is_new = |seq: Seq| !self.offered.contains_key(&seq);
        news(search.tasks.claimable(), self.seen.claimable()).any(is_new)
            || search.tasks.caps() != self.seen.caps()
            || held.any(|groups| !self.held.contains(groups))
    }

    /// Offers the requests that became claimable or changed since the last look, were given back, or found no room until now.
    fn offer_new(&mut self, board: &Board) {
        let tasks = board.tasks();
        let [_, requests, ..] = board.logs();
        if tasks.caps() != self.seen.caps() {
            self.held.clear();
            self.tell_all();
        }
        let mut slots = tasks.slots();
        let pending = self.offered.keys().filter(|seq| tasks.claimable().contains_key(*seq));
        for entry in pending.filter_map(|seq| requests.get(*seq)) {
            slots.take(&tasks.groups(&entry.item));
        }
        let mut new: BTreeSet<Seq> = news(self.seen.claimable(), tasks.claimable()).collect();
        let given_back = self.given_back.drain(..);
        new.extend(given_back.filter(|seq| tasks.claimable().contains_key(seq)));
        let mut new: Vec<&Entry> =
            new.iter().filter_map(|seq| Some(&**requests.get(*seq)?)).collect();
        new.sort_unstable_by_key(|entry| entry.rank());
        for entry in new {
            self.offer(entry, tasks, &mut slots);
        }
        self.offer_held(requests, tasks, &mut slots);
        self.held.extend(tasks.held_back().cloned());
        (self.seen, self.revision) = (tasks.clone(), board.revision());
    }

    /// Offers requests that were held back, as far as there is room now.
    fn offer_held(&mut self, requests: &Log, tasks: &Tasks, slots: &mut Slots<'_>) {
        for groups in std::mem::take(&mut self.held) {
            for (place, seq) in tasks.queue(&groups).enumerate() {
                let is_waited_for = self.workers.values().any(|worker| worker.offers.is_some());
                if !is_waited_for || place == LOOKED_AT_MAX {
                    // Who comes later searches.
                    self.tell_all();
                    break;
                }
                let Some(entry) = requests.get(seq) else { continue };
                self.offer(entry, tasks, slots);
                if self.held.contains(&groups) {
                    break;
                }
            }
        }
    }

    /// Offers a request to the first worker that looks for such a one, if a cap leaves room.
    fn offer(&mut self, entry: &Entry, tasks: &Tasks, slots: &mut Slots<'_>) {
        let seq = entry.seq;
        if self.offered.contains_key(&seq) {
            return;
        }
        let groups = tasks.groups(&entry.item);
        if !slots.has_room(&groups) {
            self.held.insert(groups);
            return;
        }
        for (number, worker) in &mut self.workers {
            if worker.offers.is_none() || !worker.wanted.fits(&entry.item) {
                continue;
            }
            // A worker that leaves is not there to take it.
            if worker.offers.take().is_some_and(|offers| offers.send(Some(entry.rank())).is_ok()) {
                metrics::CLAIM_OFFERS.add_one();
                self.offered.insert(seq, *number);
                slots.take(&groups);
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

/// Returns the requests that came to the second map, or changed between the two.
fn news(
    before: &OrdMap<Seq, Revision>,
    after: &OrdMap<Seq, Revision>,
) -> impl Iterator<Item = Seq> {
    before.diff(after).filter_map(|item| match item {
        DiffItem::Add(seq, _) | DiffItem::Update { new: (seq, _), .. } => Some(*seq),
        DiffItem::Remove(..) => None,
    })
}
