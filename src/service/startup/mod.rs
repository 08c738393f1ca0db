//! Startup scan, recovery of sessions and damage.

pub(crate) mod damage;
mod recover;
pub(crate) mod scan;
