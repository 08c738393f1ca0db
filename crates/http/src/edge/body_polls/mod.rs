//! Body wrappers: pacing, time slices and timing of polls.

pub(crate) mod paced;
pub(crate) mod processor_time;
#[cfg(debug_assertions)]
pub(crate) mod slow;
pub(crate) mod wrapped;
