//! Parsing of bodies and parameters into commands.

pub(crate) mod fields;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod items;
pub(crate) mod kinds;
pub(crate) mod profile;
pub(crate) mod query;
pub(crate) mod settings;
pub(crate) mod steps;
pub(crate) mod targets;
pub(crate) mod tasks;
mod trajectory_key;
pub(crate) mod until;
