//! Files and directories that survive a power cut, their lock and reserve; destinations of copies.

pub(crate) mod destination;
pub(crate) mod disk;
pub(crate) mod lock;
mod reserve;
pub(crate) mod sync_point;
