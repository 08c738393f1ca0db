//! Health of a store: ready, full or poisoned. Only a restart clears the last.

use std::fmt;

use parking_lot::Mutex;

use crate::Health;

/// The health as last seen.
#[derive(Debug)]
pub(crate) struct Condition(Mutex<Health>);

impl Condition {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Health::Ready))
    }

    pub(crate) fn health(&self) -> Health {
        *self.0.lock()
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.health() == Health::Poisoned
    }

    /// Changes the health between ready and full. Returns true if it changed; poisoning stays.
    pub(crate) fn turn(&self, to: Health) -> bool {
        let mut now = self.0.lock();
        if *now == Health::Poisoned || *now == to {
            return false;
        }
        *now = to;
        true
    }

    /// Stops writing until a restart. Logs the cause here, once: waiting callers only get `Unknown`.
    pub(crate) fn poison(&self, cause: &dyn fmt::Display) {
        *self.0.lock() = Health::Poisoned;
        tracing::error!(%cause, "a write failed; the store accepts no writes until a restart");
    }
}
