//! Thumbnails of images, each made once for all who ask.
//!
//! `pool` bounds their number and memory, `cache` keeps them on disk. Facts about an image are remembered, so that an
//! undecodable image is not tried again.

mod cache;
mod memo;
mod pool;

use std::collections::HashSet;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use blackboard_thumbnail::{Bounds, SNIFFED_BYTES, Thumbnail, Undecodable};
use parking_lot::Mutex;

use super::{Service, ServiceError};
use crate::board::{Board, Digest, Image, SessionId};
use crate::fairness::with_files;
use crate::store::{FREE_BYTES_MIN, Store, StoreError};
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

/// The image of a thumbnail, and its largest side.
type Key = (SessionId, Digest, Option<NonZeroU32>);

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
    known: Mutex<Known>,
}

/// Known facts about images, by digest.
struct Known {
    media_types: BoundedMap<Digest, Option<&'static str>>,
    outlines: BoundedMap<(Digest, Option<NonZeroU32>), Outline>,
    undecodable: BoundedMap<Digest, Undecodable>,
}

impl Thumbnails {
    /// With a cache in this directory, or with none.
    pub(super) fn new(cache: Option<PathBuf>) -> Self {
        let in_dir = |root| Cache::in_dir(root, THUMBNAIL_CACHE_BYTES_MAX, FREE_BYTES_MIN);
        let cache = cache.map(in_dir);
        let known = Mutex::new(Known {
            media_types: BoundedMap::new(REMEMBERED_MAX),
            outlines: BoundedMap::new(REMEMBERED_MAX),
            undecodable: BoundedMap::new(REMEMBERED_MAX),
        });
        Self { cache, pool: Pool::default(), work: SharedWork::default(), known }
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

    fn note(
        &self,
        digest: Digest,
        max_px: Option<NonZeroU32>,
        made: &Result<Thumbnail, Undecodable>,
    ) {
        let mut known = self.known.lock();
        match made {
            Ok(made) => {
                let Thumbnail { media_type, bytes, size } = made;
                let (media_type, bytes, size) = (*media_type, bytes.len() as u64, *size);
                known.outlines.insert((digest, max_px), Outline { media_type, bytes, size });
            }
            Err(undecodable) => known.undecodable.insert(digest, *undecodable),
        }
    }
}

impl Service {
    /// Returns a representation of an image with at most `max_px` on its longest side and one of the accepted media
    /// types, which should include PNG and JPEG; an empty list accepts all. `None` if the image cannot be shown.
    ///
    /// # Errors
    ///
    /// As for [`Service::image`]; [`ServiceError::Overloaded`] if too many wait for thumbnails.
    pub async fn shown_image(
        &self,
        board: &Board,
        image: &Image,
        max_px: Option<NonZeroU32>,
        accepted: &[&str],
    ) -> Result<Option<ShownImage>, ServiceError> {
        match self.showable_image(board, image, max_px, accepted).await {
            Ok(shown) => Ok(Some(shown)),
            Err(ServiceError::Undecodable(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a representation of an image, as [`Service::shown_image`], or the reason why there is none.
    ///
    /// # Errors
    ///
    /// As for [`Service::shown_image`]; [`ServiceError::Undecodable`].
    pub async fn showable_image(
        &self,
        board: &Board,
        image: &Image,
        max_px: Option<NonZeroU32>,
        accepted: &[&str],
    ) -> Result<ShownImage, ServiceError> {
        let is_accepted = |media_type| accepted.is_empty() || accepted.contains(&media_type);
        let media_type = self.recognised(board, image).await?.ok_or(Undecodable::Unknown)?;
        let fits = max_px.is_none_or(|max| {
            image.size.is_some_and(|(width, height)| width.max(height) <= max.get())
        });
        if fits && is_accepted(media_type) {
            return Ok(ShownImage::Stored { media_type: media_type.to_owned() });
        }
        let known = self.inner.images.thumbnails.known.lock().outlines.get(&(image.sha256, max_px));
        let Outline { media_type, bytes, size } = match known {
            Some(outline) => outline,
            None => {
                let Thumbnail { media_type, bytes, size } =
                    self.thumbnail(board, image, max_px).await?;
                Outline { media_type, bytes: bytes.len() as u64, size }
            }
        };
        if !is_accepted(media_type) {
            return Err(Undecodable::Unknown.into());
        }
        Ok(ShownImage::Made { media_type, bytes, size })
    }

    /// Returns an image scaled down to `max_px` on its longest side, or only converted, from the cache or made now.
    ///
    /// # Errors
    ///
    /// As for [`Service::showable_image`].
    pub async fn thumbnail(
        &self,
        board: &Board,
        image: &Image,
        max_px: Option<NonZeroU32>,
    ) -> Result<Thumbnail, ServiceError> {
        let thumbnails = &self.inner.images.thumbnails;
        let undecodable = thumbnails.known.lock().undecodable.get(&image.sha256);
        if let Some(undecodable) = undecodable {
            return Err(undecodable.into());
        }
        let _place = thumbnails.pool.wait()?;
        let key = (board.id(), image.sha256, max_px);
        let making = thumbnails.work.join(key);
        let made = making.get_or_try_init(|| self.make_thumbnail(board, key)).await?;
        Ok(made.clone()?)
    }

    async fn make_thumbnail(
        &self,
        board: &Board,
        key: Key,
    ) -> Result<Result<Thumbnail, Undecodable>, ServiceError> {
        let (session, digest, max_px) = key;
        let service = self.clone();
        let cached = with_files(move || service.inner.images.thumbnails.cached(key));
        if let Some(cached) = cached.await.map_err(|_| ServiceError::Fault)? {
            self.inner.images.thumbnails.note(digest, max_px, &Ok(cached.clone()));
            return Ok(Ok(cached));
        }
        let store = Arc::clone(&self.inner.deps.store);
        let read = move || store.blob(session, digest);
        let bounds = Bounds::px(max_px.map(NonZeroU32::get));
        let made = self.inner.images.thumbnails.pool.make(read, bounds).await?;
        let made = made.map_err(|error| self.image_error(board, error))?;
        self.inner.images.thumbnails.note(digest, max_px, &made);
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
