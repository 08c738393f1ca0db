//! Plays of operations on requests, and a plain [`Model`] of what the contract says of each: for the tests of other crates alone.

#[expect(clippy::wildcard_enum_match_arm, reason = "the model treats the other states alike")]
mod model;
mod play;

pub use model::{End, Model, State, Task, Verdict};
pub use play::{AGENTS, Cap, DEVICES, Op, Plan, Step, steps};
