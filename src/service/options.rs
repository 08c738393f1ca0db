//! How the running boards are kept, besides what each write may do.

use super::qa::QaSession;

/// How much memory the sessions may take, unless it is said otherwise: what one session may have at most by
/// default fits, and a small machine has it.
pub const MEMORY_BUDGET_DEFAULT: u64 = 1 << 30;

/// How a [`Service`](super::Service) runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// A session that gathers the questions which people answered in all others.
    pub qa_session: Option<QaSession>,
    /// How many bytes of memory the sessions may take; beyond, the boards that were used longest ago leave it.
    pub memory_budget: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { qa_session: None, memory_budget: MEMORY_BUDGET_DEFAULT }
    }
}
