//! Commands that talk to a server, run against a real one as people and scripts do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it fails and says why"
)]

mod attention;
mod demo;
mod forward;
mod guide;
mod history;
mod logs;
mod messages;
mod progress;
mod proxy;
mod refusals;
mod requests;
mod server;
mod shell;
mod state;
mod tail;
mod work;
mod worker;

use std::time::Duration;

/// How long anything may take that is not itself about time.
const DEADLINE: Duration = Duration::from_secs(30);
