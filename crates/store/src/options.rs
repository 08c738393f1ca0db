//! Options of the embedded store: sync level and free disk space.

/// Bytes left free on the disk, so that deletions, expiry and checkpoints still succeed.
pub const FREE_BYTES_MIN: u64 = 64 << 20;

/// Divisor of the disk's size that caps the space left free.
pub const FREE_PART: u64 = 8;

/// The failure that an acknowledged commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncLevel {
    /// A power cut.
    #[default]
    Full,
    /// The end of the process; a power cut may lose the last acknowledged commits, and changes the epoch.
    Normal,
}

impl SyncLevel {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// Options of a [`SqliteStore`](super::SqliteStore).
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// The failure that an acknowledged commit survives.
    pub sync: SyncLevel,
    /// Bytes that growing commits and blobs leave free on the disk.
    pub free_bytes_min: u64,
    /// Divisor that caps `free_bytes_min` by the size of the disk: 8 for an eighth.
    pub free_part: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        let (sync, free_bytes_min) = (SyncLevel::default(), FREE_BYTES_MIN);
        Self { sync, free_bytes_min, free_part: FREE_PART }
    }
}
