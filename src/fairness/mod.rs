//! Shares of what is scarce: places, bytes, processor time and the writer, divided among clients.
//!
//! One client may have all of it while it is alone, but for a rest that is kept for a newcomer; as soon as others
//! ask, each has its turn, however many requests it sends. It knows none of our other types.

mod blocking;
mod client;
mod limiter;
mod queue;
mod slices;

pub use blocking::{compute, with_files};
pub use client::Client;
pub use limiter::{Busy, Limiter, Place, Share};
pub use queue::{Left, Queue, Refused};
pub use slices::{Meter, end_turn, in_slices};
