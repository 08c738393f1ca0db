//! Room on the disk for what can be made anew.

use std::path::Path;

/// Returns true if so many bytes are free on the disk of a path, which need not exist yet.
pub(crate) fn has_room(path: &Path, bytes: u64) -> bool {
    let above = path.ancestors().find(|path| path.exists());
    above
        .and_then(|above| rustix::fs::statvfs(above).ok())
        .is_some_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= bytes)
}
