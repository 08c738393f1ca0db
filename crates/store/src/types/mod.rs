//! Types in the interface of every engine.

pub(crate) mod error;
pub(crate) mod health;
pub(crate) mod postgres_error;
pub(crate) mod postgres_failure;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod signing_key;
pub(crate) mod stored;
