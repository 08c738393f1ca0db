//! Tests of the state: examples, a plain model, and costs.

mod cost;
mod model;
mod state;
