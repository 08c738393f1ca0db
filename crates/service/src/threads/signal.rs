//! A signal that wakes one thread, or tells it to stop.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Wakes and stops one thread.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_woken: bool,
    is_stopped: bool,
}

impl Signal {
    /// Ends the thread's rest, or its next one where it does not rest now.
    pub(crate) fn wake(&self) {
        let mut state = self.state.lock();
        if !state.is_woken {
            state.is_woken = true;
            self.changed.notify_one();
        }
    }

    /// Tells the thread to end.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Rests until it is woken, or for so long; whether the thread goes on. [`Duration::MAX`] has no end.
    pub(crate) fn rest(&self, at_most: Duration) -> bool {
        self.wait(Instant::now().checked_add(at_most), true)
    }

    /// Rests for so long, and keeps a wake-up for the next rest; whether the thread goes on.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.wait(Instant::now().checked_add(time), false)
    }

    /// Takes a wake-up that no rest has had yet.
    #[cfg(test)]
    pub(crate) fn take_wake(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_woken)
    }

    fn wait(&self, until: Option<Instant>, is_wakeable: bool) -> bool {
        let mut state = self.state.lock();
        while !(state.is_stopped || is_wakeable && state.is_woken) {
            match until {
                Some(until) => {
                    if self.changed.wait_until(&mut state, until).timed_out() {
                        break;
                    }
                }
                None => self.changed.wait(&mut state),
            }
        }
        if is_wakeable {
            state.is_woken = false;
        }
        !state.is_stopped
    }
}
