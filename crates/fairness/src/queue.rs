//! The queue to one thread, fair among clients by the work of their entries.
//!
//! Each client's entries stay in order. The next entry belongs to the client whose entries took least of the thread so
//! far; a new client begins level with the others (start-time fair queueing: Goyal, Vin and Cheng, 1996).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Client;

/// The multiple of the free rest that one client may queue, as for [`SharedPlaces`](crate::SharedPlaces).
const TIMES_FREE: usize = 4;

/// The number of known clients from which on idle clients are removed.
const KNOWN_MAX: usize = 1024;

/// The reason an entry was not queued, with the entry.
#[derive(Debug)]
pub enum Refused<T> {
    /// The queue is full for everybody or for this client.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

/// The reason no entry was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// No entry is waiting.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

/// A bounded queue, a fifth of which is reserved for newcomers.
#[derive(Debug)]
pub struct Queue<T> {
    /// The maximum number of entries of all clients.
    entries_max: usize,
    lines: Mutex<Lines<T>>,
    came: Condvar,
}

#[derive(Debug)]
struct Lines<T> {
    lines: BTreeMap<Client, Line<T>>,
    waiting: usize,
    /// The virtual time of the entry taken last.
    now: Duration,
    /// True if the next wait ends at once.
    is_woken: bool,
    closed: bool,
}

#[derive(Debug)]
struct Line<T> {
    entries: VecDeque<T>,
    /// The virtual time up to which its entries used the thread.
    taken: Duration,
}

impl<T> Queue<T> {
    /// Creates a queue by the maximum number of entries of one client.
    #[must_use]
    pub fn new(one_max: usize) -> Self {
        let entries_max = one_max + one_max.div_ceil(TIMES_FREE);
        let (lines, now) = (BTreeMap::new(), Duration::ZERO);
        let lines = Lines { lines, waiting: 0, now, is_woken: false, closed: false };
        Self { entries_max, lines: Mutex::new(lines), came: Condvar::new() }
    }

    /// Queues an entry after its client's others. A client may queue four times the entries that stay free.
    ///
    /// # Errors
    ///
    /// [`Refused`], with the entry.
    pub fn push(&self, client: Client, entry: T) -> Result<(), Refused<T>> {
        self.push_quietly(client, entry)?;
        self.came.notify_one();
        Ok(())
    }

    /// Queues an entry that its sender takes out itself: nobody is woken.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    pub fn push_quietly(&self, client: Client, entry: T) -> Result<(), Refused<T>> {
        let mut lines = self.lines.lock();
        if lines.closed {
            return Err(Refused::Closed(entry));
        }
        let free = self.entries_max.saturating_sub(lines.waiting);
        let own = lines.lines.get(&client).map_or(0, |line| line.entries.len());
        if free == 0 || own > 0 && own + 1 > (free - 1).saturating_mul(TIMES_FREE) {
            return Err(Refused::Full(entry));
        }
        let now = lines.now;
        let line = lines
            .lines
            .entry(client)
            .or_insert_with(|| Line { entries: VecDeque::new(), taken: now });
        if line.entries.is_empty() {
            line.taken = line.taken.max(now);
        }
        line.entries.push_back(entry);
        lines.waiting += 1;
        Ok(())
    }

    /// Returns true if no entry is waiting.
    pub fn is_empty(&self) -> bool {
        self.lines.lock().waiting == 0
    }

    /// Removes and returns the next entry with its client, without waiting.
    ///
    /// # Errors
    ///
    /// [`Left`] if no entry is waiting.
    pub fn try_pop(&self) -> Result<(Client, T), Left> {
        self.lines.lock().pop()
    }

    /// Waits for the next entry, and returns it with its client; `None` if the queue is closed and empty.
    pub fn pop(&self) -> Option<(Client, T)> {
        loop {
            match self.try_pop() {
                Ok(entry) => return Some(entry),
                Err(Left::Closed) => return None,
                Err(Left::Nothing) => self.wait(None),
            }
        }
    }

    /// Waits until an entry is waiting, the queue is closed, [`wake`](Self::wake) is called, or a deadline, if there is
    /// one.
    pub fn wait(&self, until: Option<Instant>) {
        let mut lines = self.lines.lock();
        while lines.waiting == 0 && !lines.closed && !lines.is_woken {
            match until {
                Some(until) => {
                    if self.came.wait_until(&mut lines, until).timed_out() {
                        break;
                    }
                }
                None => self.came.wait(&mut lines),
            }
        }
        lines.is_woken = false;
    }

    /// Ends the present wait, or the next one.
    pub fn wake(&self) {
        self.lines.lock().is_woken = true;
        self.came.notify_one();
    }

    /// Puts an entry that was taken too early back to the front of its client's queue.
    pub fn put_back(&self, client: Client, entry: T) {
        let mut lines = self.lines.lock();
        let now = lines.now;
        let new = || Line { entries: VecDeque::new(), taken: now };
        lines.lines.entry(client).or_insert_with(new).entries.push_front(entry);
        lines.waiting += 1;
    }

    /// Adds the thread's time for an entry to its client's.
    pub fn charge(&self, client: Client, took: Duration) {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.lines.get_mut(&client) {
            line.taken += took;
        }
        lines.forget();
    }

    /// Closes the queue for new entries. Queued entries are still delivered.
    pub fn close(&self) {
        self.lines.lock().closed = true;
        self.came.notify_all();
    }
}

impl<T> Lines<T> {
    fn pop(&mut self) -> Result<(Client, T), Left> {
        let waiting = self.lines.iter().filter(|(_, line)| !line.entries.is_empty());
        let next = waiting.min_by_key(|(client, line)| (line.taken, **client));
        let Some(client) = next.map(|(client, _)| *client) else {
            return Err(if self.closed { Left::Closed } else { Left::Nothing });
        };
        let found = self.lines.get_mut(&client).and_then(|line| {
            let entry = line.entries.pop_front()?;
            Some((line.taken, entry))
        });
        let (taken, entry) = found.ok_or(Left::Nothing)?;
        self.waiting -= 1;
        self.now = self.now.max(taken);
        Ok((client, entry))
    }

    /// Removes idle clients whose virtual time equals a newcomer's.
    fn forget(&mut self) {
        if self.lines.len() > KNOWN_MAX {
            let now = self.now;
            self.lines.retain(|_, line| !line.entries.is_empty() || line.taken > now);
        }
    }
}

#[cfg(test)]
mod tests;
