//! Files and directories that survive a power cut, their lock and reserve.

pub(crate) mod disk;
pub(crate) mod lock;
mod reserve;
pub(crate) mod sync_point;
