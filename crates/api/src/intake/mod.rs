//! Parsing of bodies and parameters into commands.

pub mod fields;
pub mod filter;
pub mod input;
pub mod items;
pub mod kinds;
pub(crate) mod profile;
pub mod query;
pub mod settings;
pub mod steps;
pub(crate) mod targets;
pub mod tasks;
mod trajectory_key;
pub mod until;
