//! The board of a session and its parts.

pub(crate) mod agent;
pub(crate) mod attention;
pub(crate) mod blob;
pub(crate) mod board;
pub(crate) mod checkpoint;
pub(crate) mod due;
pub(crate) mod idempotency;
mod memory_estimate;
pub(crate) mod open_questions;
pub(crate) mod prompt_format;
pub(crate) mod prompt_profile;
pub(crate) mod selection;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod tasks;
