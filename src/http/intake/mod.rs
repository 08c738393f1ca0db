//! Intake: bodies of requests read member by member, each refusal with its place.

pub(crate) mod items;
mod profile;
pub(crate) mod session;
pub(crate) mod settings;
mod trajectory_key;
pub(crate) mod transaction;
