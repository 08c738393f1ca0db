//! Kinds of agents, a file each: its strategies and its own states.

pub mod app;
pub mod critic;
pub mod host;
pub mod linux;

use crate::registry::Kind;
use crate::state::common;
use crate::strategy::{Processor, Registered, Strategy, cost, errors, log};

/// Makes a kind with the seven states and the common middleware.
fn plain(instructions: &'static str, strategies: &[Strategy]) -> Registered<Kind> {
    let processor = Processor::new(strategies, &[log, cost, errors])?;
    let own_states = serde_json::Value::Null;
    Ok(Kind { processor, states: common(), own_states, instructions, observes: "" })
}
