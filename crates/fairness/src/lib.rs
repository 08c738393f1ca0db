//! Fair shares of places, bytes, processor time and the writer among clients.
//!
//! A single client may use everything but a reserve for newcomers. With several, each gets its turn, however many
//! requests it sends. This layer knows no other type of ours.

mod blocking;
pub mod cancellation;
mod client;
mod processor_time;
mod queue;
mod shared_places;

pub use blocking::{compute, with_files};
pub use client::Client;
pub use processor_time::{Meter, end_turn, in_slices, processors};
pub use queue::{Left, Queue, Refused};
pub use shared_places::{Busy, Place, Share, SharedPlaces};
