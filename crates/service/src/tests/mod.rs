//! Tests of the running boards.

mod batch;
pub(crate) mod clock;
pub(crate) mod cold;
pub(crate) mod common;
pub(crate) mod cramped;
mod damage;
mod double;
mod downtime;
mod expiry;
mod flips;
mod foreign;
mod handle;
mod heads;
mod in_place;
mod jump;
mod panic;
mod queue;
mod race;
mod repeat;
pub(crate) mod service;
mod simulation;
mod snapshot;
