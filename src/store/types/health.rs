//! Health of a store: ready, full or poisoned. Only a restart ends the last.

use std::fmt;

use parking_lot::Mutex;

use crate::store::Health;

/// The last thing that writing taught about the store.
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

    /// Notes that a write went through, or that there was no room for one.
    pub(crate) fn note(&self, health: Health) {
        let mut now = self.0.lock();
        if *now != Health::Poisoned {
            *now = health;
        }
    }

    /// Ends writing until a restart. The cause is told here, once: those who wait are only told `Unknown`.
    pub(crate) fn poison(&self, cause: &dyn fmt::Display) {
        *self.0.lock() = Health::Poisoned;
        tracing::error!(%cause, "a write failed; nothing more is written until a restart");
    }
}
