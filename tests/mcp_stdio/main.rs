//! Stdio bridge against scripted servers, over pipes and the network as a host has them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it fails and says why"
)]

mod bridge;
mod channel;
mod failures;
mod messages;
mod server;

use std::time::Duration;

/// How long anything may take that is not itself about time.
const DEADLINE: Duration = Duration::from_secs(30);
