//! Scenarios: real processes and real signals around a real server, and the board's prompt at the end of each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails and says why"
)]

mod delegation;
mod devices;
mod failures;
mod harness;
mod layers;
mod people;
