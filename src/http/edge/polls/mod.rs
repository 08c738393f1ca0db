//! Polls of bodies: wrapped, paced, in slices, and timed.

pub(crate) mod paced;
pub(crate) mod slices;
#[cfg(debug_assertions)]
pub(crate) mod slow;
pub(crate) mod wrapped;
