//! Options of the embedded store: sync level and free disk space.

/// What is left free on the disk, so that deletions, expiries and checkpoints still go through.
pub const FREE_BYTES_MIN: u64 = 64 << 20;

/// On a small disk it is this part of it.
pub const FREE_PART: u64 = 8;

/// What an acknowledgement survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncLevel {
    /// A power cut.
    #[default]
    Full,
    /// The end of the process; a power cut may take the last acknowledged commits, and changes the epoch.
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

/// How a [`SqliteStore`](super::SqliteStore) runs.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// What an acknowledgement survives.
    pub sync: SyncLevel,
    /// What commits that grow and blobs leave free on the disk, in bytes.
    pub free_bytes_min: u64,
    /// That is at most this part of the disk: 8 for an eighth.
    pub free_part: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        let (sync, free_bytes_min) = (SyncLevel::default(), FREE_BYTES_MIN);
        Self { sync, free_bytes_min, free_part: FREE_PART }
    }
}
