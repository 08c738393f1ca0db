//! Places, or bytes, of a pool that clients share.
//!
//! The client that holds least is served next; among equals, the one served longest ago. A pool with long-held places
//! is a quarter larger than one client's share. A client takes more only while it holds at most four times the free
//! rest, so that some is always left (dynamic thresholds: Choudhury and Hahne, 1998).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Client;

/// The multiple of the free rest that one client may hold.
const TIMES_FREE: u64 = 4;

/// The part of a pool that is reserved for clients that hold nothing.
const FIRST_PART: u64 = 64;

/// The share of a pool that one client may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it, for places that are held briefly and served in turn.
    All,
    /// One unit, so that the others are left to other clients.
    One,
    /// Its maximum, which leaves a fifth of the pool to others: for places that a client holds as long as it likes.
    LeavesRest,
}

/// The pool is exhausted, and its queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resource is busy: too many requests are waiting for it")]
pub struct Busy;

/// A pool of places or bytes that clients share, counted in units.
#[derive(Clone, Debug)]
pub struct SharedPlaces(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    units: u64,
    share: Share,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    waiting: usize,
    /// A counter of requests and releases, by which clients are ordered.
    ticks: u64,
    clients: BTreeMap<Client, Use>,
}

/// A client that holds units or waits for some.
#[derive(Debug, Default)]
struct Use {
    held: u64,
    /// The tick at which it last took or released units.
    served: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    units: u64,
    grant: oneshot::Sender<Place>,
}

/// Units of a pool, released on drop.
#[derive(Debug)]
pub struct Place {
    places: Arc<Inner>,
    client: Client,
    units: u64,
}

impl SharedPlaces {
    /// Creates a pool by the maximum number of units of one client and of waiting requests.
    #[must_use]
    pub fn new(one_max: u64, waiting_max: usize, share: Share) -> Self {
        let units = match share {
            Share::All | Share::One => one_max,
            Share::LeavesRest => one_max.saturating_add(one_max.div_ceil(TIMES_FREE)),
        };
        let state = Mutex::default();
        Self(Arc::new(Inner { units, share, waiting_max, state }))
    }

    /// Takes units for the current client, if they are free and no client with fewer is waiting.
    #[must_use]
    pub fn now(&self, units: u64) -> Option<Place> {
        let client = Client::current();
        let mut state = self.0.state.lock();
        let is_free = state.waiting == 0 && self.0.fits(&state, client, units);
        is_free.then(|| self.0.give(&mut state, client, units))
    }

    /// Takes units for the current client once it is its turn.
    ///
    /// # Errors
    ///
    /// [`Busy`] on timeout, if the queue is full, or if its place in the queue went to a client that had none.
    pub async fn wait(&self, units: u64, longest: Duration) -> Result<Place, Busy> {
        timeout(longest, self.turn(units)?).await.map_err(|_| Busy)?
    }

    /// Takes a place in the queue at once, and waits for units without a timeout.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub fn turn(
        &self,
        units: u64,
    ) -> Result<impl Future<Output = Result<Place, Busy>> + Send + use<>, Busy> {
        let turn = match self.now(units) {
            Some(place) => Turn::Here(place),
            None => Turn::Waits(self.enqueue(units)?),
        };
        Ok(async move {
            match turn {
                Turn::Here(place) => Ok(place),
                Turn::Waits(mut waiting) => (&mut waiting.granted).await.map_err(|_| Busy),
            }
        })
    }

    /// The number of held units.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.state.lock().used
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting
    }

    fn enqueue(&self, units: u64) -> Result<Waiting, Busy> {
        let client = Client::current();
        let (grant, granted) = oneshot::channel();
        let mut state = self.0.state.lock();
        if state.waiting >= self.0.waiting_max {
            state.displace(client)?;
        }
        state.waiting += 1;
        let number = state.tick();
        let waiter = Waiter { number, units: units.min(self.0.units), grant };
        // A returning client counts as served just now; otherwise it would overtake all who have waited since.
        let new = || Use { served: number, ..Use::default() };
        state.clients.entry(client).or_insert_with(new).waiting.push_back(waiter);
        drop(state);
        // Units may have been released since the check, or this request may be the next.
        let waiting = Waiting { places: Arc::clone(&self.0), client, number, granted };
        Inner::serve(&self.0);
        Ok(waiting)
    }
}

enum Turn {
    Here(Place),
    Waits(Waiting),
}

/// A place in the queue, released on drop.
struct Waiting {
    places: Arc<Inner>,
    client: Client,
    number: u64,
    granted: oneshot::Receiver<Place>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        let waiting = state.clients.get_mut(&self.client).map(|client| &mut client.waiting);
        let found = waiting.and_then(|waiting| {
            let at = waiting.iter().position(|waiter| waiter.number == self.number)?;
            waiting.remove(at)
        });
        state.waiting -= usize::from(found.is_some());
        state.forget(self.client);
        drop(state);
        // The request that left may have been next, and the one behind it may fit.
        Inner::serve(&self.places);
    }
}

impl Inner {
    /// Returns true if a client may have this number of units now.
    fn fits(&self, state: &State, client: Client, units: u64) -> bool {
        let units = units.min(self.units);
        let left = (self.units - state.used).checked_sub(units);
        let Some(left) = left.filter(|_| self.units > 0) else { return false };
        let held = state.clients.get(&client).map_or(0, |client| client.held);
        match self.share {
            Share::All => true,
            Share::One => held == 0,
            Share::LeavesRest => {
                let is_first = held == 0 && units <= (self.units / FIRST_PART).max(1);
                is_first || held + units <= left.saturating_mul(TIMES_FREE)
            }
        }
    }

    fn give(self: &Arc<Self>, state: &mut State, client: Client, units: u64) -> Place {
        debug_assert!(units > 0, "a place of no units is never released");
        let units = units.min(self.units);
        state.used += units;
        let served = state.tick();
        let of = state.clients.entry(client).or_default();
        of.held += units;
        of.served = served;
        Place { places: Arc::clone(self), client, units }
    }

    /// Hands free units to waiting requests.
    fn serve(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            let Some((grant, client, units)) = self.next(&mut state) else { return };
            let place = self.give(&mut state, client, units);
            drop(state);
            // A request that has left releases its place at once, which needs the lock.
            drop(grant.send(place));
        }
    }

    /// Removes and returns the next waiter, if there is room for it.
    fn next(&self, state: &mut State) -> Option<(oneshot::Sender<Place>, Client, u64)> {
        let waiting = state.clients.iter().filter_map(|(client, of)| {
            let first = of.waiting.front()?;
            self.fits(state, *client, first.units).then_some(((of.held, of.served), *client))
        });
        let (_, client) = waiting.min()?;
        let waiter = state.clients.get_mut(&client)?.waiting.pop_front()?;
        state.waiting -= 1;
        Some((waiter.grant, client, waiter.units))
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// Drops the latest request of the client with the most waiting requests.
    fn displace(&mut self, client: Client) -> Result<(), Busy> {
        let own = self.clients.get(&client).map_or(0, |of| of.waiting.len());
        let most = self.clients.values_mut().max_by_key(|of| of.waiting.len());
        let most = most.filter(|most| most.waiting.len() > own + 1).ok_or(Busy)?;
        most.waiting.pop_back().ok_or(Busy)?;
        self.waiting -= 1;
        Ok(())
    }

    /// Removes a client that holds nothing and waits for nothing.
    fn forget(&mut self, client: Client) {
        let is_gone = |of: &Use| of.held == 0 && of.waiting.is_empty();
        if self.clients.get(&client).is_some_and(is_gone) {
            self.clients.remove(&client);
        }
    }
}

impl Place {
    /// Adds the units of another place of the same pool and client.
    pub fn merge(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.places, &other.places), "places of one pool");
        debug_assert_eq!(self.client, other.client, "places of one client");
        self.units += std::mem::take(&mut other.units);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.units == 0 {
            return;
        }
        let mut state = self.places.state.lock();
        state.used -= self.units;
        let now = state.tick();
        if let Some(of) = state.clients.get_mut(&self.client) {
            of.held -= self.units;
            of.served = now;
        }
        state.forget(self.client);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            Inner::serve(&self.places);
        }
    }
}

#[cfg(test)]
mod tests;
