//! Blobs: uploaded bytes that items and the state refer to.

use std::borrow::Cow;
use std::collections::BTreeSet;

use imbl::OrdMap;

use crate::log::Log;
use crate::{BlobRef, Board, Digest, MediaType, Revision, Timestamp, Version};

/// The maximum number of blobs in a session.
pub const BLOBS_MAX: usize = 100_000;

/// An uploaded blob. Its size is with the session's [images](Board::images).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The media type of the first upload.
    pub media_type: MediaType,
    /// The time of the last upload that made a commit.
    pub uploaded_at: Timestamp,
}

impl Board {
    /// Returns an uploaded blob and its size in bytes.
    #[must_use]
    pub fn blob(&self, sha256: &Digest) -> Option<(&Blob, u64)> {
        Some((self.blobs.get(sha256)?, *self.images.get(sha256)?))
    }

    /// Returns the version of each blob, which never changes.
    #[must_use]
    pub fn blobs_version(&self) -> Version {
        self.at_version(Revision::default())
    }

    /// Returns the uploaded blobs, by digest.
    #[must_use]
    pub fn blobs(&self) -> &OrdMap<Digest, Blob> {
        &self.blobs
    }

    /// Adds an uploaded blob to the session's images and blobs.
    pub(crate) fn put_blob(&mut self, sha256: Digest, bytes: u64, blob: Blob) {
        self.keep_file(sha256, bytes);
        self.blobs.insert(sha256, blob);
    }

    /// Returns the digests that items, results of requests, and the state refer to, whether there are such blobs or
    /// not.
    #[must_use]
    pub fn named_blobs(&self) -> BTreeSet<Digest> {
        let entries = self.all_logs().flat_map(Log::iter);
        let texts = entries.flat_map(|entry| entry.texts());
        let state = std::iter::once(Cow::Owned(self.state.text()));
        let all = texts.map(Cow::Borrowed).chain(state);
        all.flat_map(|text| BlobRef::all_in(&text).map(|blob| blob.sha256).collect::<Vec<_>>())
            .collect()
    }
}
