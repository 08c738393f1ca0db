//! Thumbnails of images, each made once for all who ask.
//!
//! `pool` bounds their number and memory, `cache` keeps them on disk. Facts about an image are remembered, so that an
//! undecodable image is not tried again.

mod cache;
mod memo;
mod pool;

use std::collections::HashSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use blackboard_thumbnail::{Bounds, Probe, SNIFFED_BYTES, Thumbnail, Undecodable};
use bytes::Bytes;
use parking_lot::Mutex;

use super::{Service, ServiceError, SessionHandle};
use blackboard_board::{Board, Digest, Image, SessionId};
use blackboard_fairness::with_files;
use blackboard_store::{FREE_BYTES_MIN, Store, StoreError};
use cache::Cache;
use memo::{BoundedMap, SharedWork};
use pool::Pool;

pub use cache::THUMBNAIL_CACHE_BYTES_MAX;
pub use pool::{THUMBNAIL_MEMORY_MAX, THUMBNAILS_AT_ONCE_MAX, THUMBNAILS_WAITING_MAX};

/// The number of images about which facts are remembered.
const REMEMBERED_MAX: usize = 16 << 10;

/// Representation of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownImage {
    /// As stored.
    Stored {
        /// The media type of the bytes, whatever was declared.
        media_type: String,
    },
    /// Scaled or converted.
    Made {
        /// `image/png` or `image/jpeg`.
        media_type: &'static str,
        /// Its length.
        bytes: u64,
        /// Its width and height.
        size: (u32, u32),
    },
}

impl ShownImage {
    /// Returns the number of bytes that are shown of a stored image.
    #[must_use]
    pub fn length(&self, stored: &Image) -> u64 {
        match self {
            Self::Stored { .. } => stored.bytes,
            Self::Made { bytes, .. } => *bytes,
        }
    }
}

/// The image of a thumbnail, and its bounds.
type Key = (SessionId, Digest, Bounds);

/// Facts about an image, known once all of it was decoded.
#[derive(Clone, Copy)]
struct Facts {
    media_type: &'static str,
    /// Its width and height as a person sees it.
    size: (u32, u32),
    /// Whether its file says that it is to be turned.
    is_turned: bool,
}

/// A thumbnail without its bytes.
#[derive(Clone, Copy)]
struct Outline {
    media_type: &'static str,
    bytes: u64,
    size: (u32, u32),
}

/// The thumbnails of all sessions.
pub(super) struct Thumbnails {
    cache: Option<Cache>,
    pool: Pool,
    work: SharedWork<Key, Result<Thumbnail, Undecodable>>,
    examining: SharedWork<(SessionId, Digest), Result<Facts, Undecodable>>,
    known: Mutex<Known>,
}

/// Known facts about images, by digest.
struct Known {
    media_types: BoundedMap<Digest, Option<&'static str>>,
    facts: BoundedMap<Digest, Result<Facts, Undecodable>>,
    outlines: BoundedMap<(Digest, Bounds), Result<Outline, Undecodable>>,
}

impl Thumbnails {
    /// With a cache in this directory, or with none.
    pub(super) fn new(cache: Option<PathBuf>) -> Self {
        let in_dir = |root| Cache::in_dir(root, THUMBNAIL_CACHE_BYTES_MAX, FREE_BYTES_MIN);
        let cache = cache.map(in_dir);
        let known = Mutex::new(Known {
            media_types: BoundedMap::new(REMEMBERED_MAX),
            facts: BoundedMap::new(REMEMBERED_MAX),
            outlines: BoundedMap::new(REMEMBERED_MAX),
        });
        let (work, examining) = (SharedWork::default(), SharedWork::default());
        Self { cache, pool: Pool::default(), work, examining, known }
    }

    /// Removes the files of other sessions that an earlier run left.
    pub(super) fn keep_only(&self, live: &HashSet<SessionId>) {
        if let Some(cache) = &self.cache {
            cache.keep(live);
        }
    }

    /// Removes the files of a deleted session.
    pub(super) fn forget(&self, session: SessionId) {
        if let Some(cache) = &self.cache {
            cache.forget(session);
        }
    }

    fn note(&self, digest: Digest, bounds: Bounds, made: &Result<Thumbnail, Undecodable>) {
        let outline = made.as_ref().map(Outline::of).map_err(|undecodable| *undecodable);
        self.known.lock().outlines.insert((digest, bounds), outline);
    }
}

impl Outline {
    fn of(made: &Thumbnail) -> Self {
        let Thumbnail { media_type, ref bytes, size } = *made;
        Self { media_type, bytes: bytes.len() as u64, size }
    }
}

impl SessionHandle {
    /// Returns a representation of an image within bounds and of one of the accepted media types, which should include PNG
    /// and JPEG. `None` if the image cannot be shown. An empty list accepts all, whole and upright or not: it is for readers
    /// that look for themselves.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::image`]; [`ServiceError::Overloaded`] if too many wait for thumbnails.
    pub async fn shown_image(
        &self,
        board: &Board,
        image: &Image,
        bounds: Bounds,
        accepted: &[&str],
    ) -> Result<Option<ShownImage>, ServiceError> {
        shown(self.showable_image(board, image, bounds, accepted).await)
    }

    /// Returns a representation of an image, as [`SessionHandle::shown_image`], or the reason why there is none.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::shown_image`]; [`ServiceError::Undecodable`].
    pub async fn showable_image(
        &self,
        board: &Board,
        image: &Image,
        bounds: Bounds,
        accepted: &[&str],
    ) -> Result<ShownImage, ServiceError> {
        let is_accepted = |media_type| accepted.is_empty() || accepted.contains(&media_type);
        let (media_type, size, is_turned) = if accepted.is_empty() {
            let media_type =
                self.service.recognised(board, image).await?.ok_or(Undecodable::Unknown)?;
            (media_type, image.size, false)
        } else {
            let facts = self
                .service
                .examined(board, image.sha256, self.service.stored(board, image))
                .await?;
            (facts.media_type, Some(facts.size), facts.is_turned)
        };
        if is_accepted(media_type) && !is_turned && is_within(bounds, size, image.bytes) {
            return Ok(ShownImage::Stored { media_type: media_type.to_owned() });
        }
        let known =
            self.service.inner.images.thumbnails.known.lock().outlines.get(&(image.sha256, bounds));
        let Outline { media_type, bytes, size } = match known {
            Some(outline) => outline?,
            None => Outline::of(&self.thumbnail(board, image, bounds).await?),
        };
        if !is_accepted(media_type) {
            return Err(Undecodable::Unknown.into());
        }
        Ok(ShownImage::Made { media_type, bytes, size })
    }

    /// Returns an image that is not stored apart, within bounds and of one of the accepted media types. `None` if it cannot
    /// be shown.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::shown_image`].
    pub async fn shown_bytes(
        &self,
        board: &Board,
        bytes: Bytes,
        bounds: Bounds,
        accepted: &[&str],
    ) -> Result<Option<Thumbnail>, ServiceError> {
        let (sha256, length) = (Digest::of(&bytes), bytes.len() as u64);
        let read = |bytes: &Bytes| {
            let bytes = bytes.clone();
            move || Ok(bytes.to_vec())
        };
        let Some(facts) = shown(self.service.examined(board, sha256, read(&bytes)).await)? else {
            return Ok(None);
        };
        let Facts { media_type, size, is_turned } = facts;
        let is_accepted = accepted.contains(&media_type);
        if is_accepted && !is_turned && is_within(bounds, Some(size), length) {
            return Ok(Some(Thumbnail { media_type, bytes, size }));
        }
        shown(self.service.made(board, sha256, bounds, read(&bytes)).await)
    }

    /// Returns an image scaled down into bounds, or only converted, from the cache or made now.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::showable_image`].
    pub async fn thumbnail(
        &self,
        board: &Board,
        image: &Image,
        bounds: Bounds,
    ) -> Result<Thumbnail, ServiceError> {
        self.service.made(board, image.sha256, bounds, self.service.stored(board, image)).await
    }
}

impl Service {
    /// Returns a function that reads a stored image.
    fn stored(
        &self,
        board: &Board,
        image: &Image,
    ) -> impl FnOnce() -> Result<Vec<u8>, StoreError> + Send + use<> {
        let (store, session) = (Arc::clone(&self.inner.deps.store), board.id());
        let sha256 = image.sha256;
        move || store.blob(session, sha256)
    }

    /// Decodes all of an image that `read` returns, unless its facts are known.
    async fn examined(
        &self,
        board: &Board,
        sha256: Digest,
        read: impl FnOnce() -> Result<Vec<u8>, StoreError> + Send + 'static,
    ) -> Result<Facts, ServiceError> {
        let thumbnails = &self.inner.images.thumbnails;
        let known = thumbnails.known.lock().facts.get(&sha256);
        if let Some(known) = known {
            return Ok(known?);
        }
        let _place = thumbnails.pool.wait()?;
        let examining = thumbnails.examining.join((board.id(), sha256));
        let examine = |bytes: &[u8], Probe { size, is_turned, .. }: Probe| {
            blackboard_thumbnail::check(bytes)?;
            let media_type = blackboard_thumbnail::media_type(bytes).ok_or(Undecodable::Unknown)?;
            Ok(Facts { media_type, size, is_turned })
        };
        let facts = examining.get_or_try_init(|| async {
            let facts = thumbnails.pool.make(read, Bounds::px(Some(1)), examine).await?;
            let facts = facts.map_err(|error| self.image_error(board, error))?;
            thumbnails.known.lock().facts.insert(sha256, facts);
            Ok::<_, ServiceError>(facts)
        });
        Ok((*facts.await?)?)
    }

    async fn made(
        &self,
        board: &Board,
        sha256: Digest,
        bounds: Bounds,
        read: impl FnOnce() -> Result<Vec<u8>, StoreError> + Send + 'static,
    ) -> Result<Thumbnail, ServiceError> {
        let thumbnails = &self.inner.images.thumbnails;
        let known = thumbnails.known.lock().outlines.get(&(sha256, bounds));
        if let Some(Err(undecodable)) = known {
            return Err(undecodable.into());
        }
        let _place = thumbnails.pool.wait()?;
        let key = (board.id(), sha256, bounds);
        let making = thumbnails.work.join(key);
        let made = making.get_or_try_init(|| self.make_thumbnail(board, key, read)).await?;
        Ok(made.clone()?)
    }

    async fn make_thumbnail(
        &self,
        board: &Board,
        key: Key,
        read: impl FnOnce() -> Result<Vec<u8>, StoreError> + Send + 'static,
    ) -> Result<Result<Thumbnail, Undecodable>, ServiceError> {
        let (session, digest, bounds) = key;
        let service = self.clone();
        let cached = with_files(move || service.inner.images.thumbnails.cached(key));
        if let Some(cached) = cached.await.map_err(|_| ServiceError::Fault)? {
            self.inner.images.thumbnails.note(digest, bounds, &Ok(cached.clone()));
            return Ok(Ok(cached));
        }
        let make = move |bytes: &[u8], _| blackboard_thumbnail::make(bytes, bounds);
        let made = self.inner.images.thumbnails.pool.make(read, bounds, make).await?;
        let made = made.map_err(|error| self.image_error(board, error))?;
        self.inner.images.thumbnails.note(digest, bounds, &made);
        if let (Ok(made), Some(life)) = (&made, board.life()) {
            let (service, name, made) = (self.clone(), life.name.clone(), made.clone());
            let keep = with_files(move || {
                service.inner.images.thumbnails.keep(key, &made);
                // The session and its files may have been deleted before this file came.
                if !service.has(&name, session) {
                    service.inner.images.thumbnails.forget(session);
                }
            });
            keep.await.map_err(|_| ServiceError::Fault)?;
        }
        Ok(made)
    }

    /// Returns the media type of a stored image by its first bytes.
    async fn recognised(
        &self,
        board: &Board,
        image: &Image,
    ) -> Result<Option<&'static str>, ServiceError> {
        let (session, sha256) = (board.id(), image.sha256);
        let thumbnails = &self.inner.images.thumbnails;
        let known = thumbnails.known.lock().media_types.get(&sha256);
        if let Some(known) = known {
            return Ok(known);
        }
        let store = Arc::clone(&self.inner.deps.store);
        let sniffed = with_files(move || sniff(&*store, session, sha256));
        let sniffed = sniffed.await.map_err(|_| ServiceError::Fault)?;
        let media_type = sniffed.map_err(|error| self.image_error(board, error))?;
        thumbnails.known.lock().media_types.insert(sha256, media_type);
        Ok(media_type)
    }
}

impl Thumbnails {
    fn cached(&self, key: Key) -> Option<Thumbnail> {
        self.cache.as_ref()?.get(key)
    }

    fn keep(&self, key: Key, made: &Thumbnail) {
        if let Some(cache) = &self.cache {
            cache.put(key, made);
        }
    }
}

/// Whether an image of this size and length is within bounds. One of an unknown size is within those without.
fn is_within(bounds: Bounds, size: Option<(u32, u32)>, bytes: u64) -> bool {
    let fits = size.map_or(bounds == Bounds::default(), |size| bounds.fit(size) == size);
    fits && bounds.max_bytes.is_none_or(|max| bytes <= max)
}

/// Returns `None` for an image that cannot be decoded.
fn shown<T>(result: Result<T, ServiceError>) -> Result<Option<T>, ServiceError> {
    match result {
        Ok(shown) => Ok(Some(shown)),
        Err(ServiceError::Undecodable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn sniff(
    store: &dyn Store,
    session: SessionId,
    digest: Digest,
) -> Result<Option<&'static str>, StoreError> {
    let mut beginning = Vec::with_capacity(SNIFFED_BYTES);
    let source = store.open_blob(session, digest)?;
    let read = source.take(SNIFFED_BYTES as u64).read_to_end(&mut beginning);
    read.map_err(|_| StoreError::BlobDamaged { session, digest })?;
    Ok(blackboard_thumbnail::media_type(&beginning))
}

#[cfg(test)]
mod tests;
