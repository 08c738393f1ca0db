//! The state against a plain model, and its costs.

mod cost;
mod model;
mod state;
