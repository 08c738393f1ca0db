//! What goes into a store and comes out of it, whichever engine runs.

pub(crate) mod error;
pub(crate) mod health;
pub(crate) mod run;
pub(crate) mod signing_key;
pub(crate) mod stored;
