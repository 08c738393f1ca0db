//! What a start finds in the store, and what it makes of damage.

pub(crate) mod damage;
mod recover;
pub(crate) mod scan;
