//! Maintenance of the whole store: compaction, checks, backups and salvage.

mod backup;
pub(crate) mod check;
pub(crate) mod compaction;
pub(crate) mod salvage;

use super::Service;

/// What an owner does with the whole store.
#[derive(Clone, Copy)]
pub struct Maintenance<'a>(&'a Service);

impl Service {
    /// Returns the maintenance of its store.
    #[must_use]
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance(self)
    }
}
