//! Rules for requests: claims and their ends, plans and the next one to claim, cancellations, verdicts and retries.

mod cancellation;
mod claims;
mod tasks;

pub(super) use claims::check_fence;
