//! How the embedded store runs.

use super::disk::FREE_BYTES_MIN;

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
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { sync: SyncLevel::default(), free_bytes_min: FREE_BYTES_MIN }
    }
}
