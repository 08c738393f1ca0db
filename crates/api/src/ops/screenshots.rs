//! Screenshots: an image, stored or scaled, in a form that its reader can show.

use std::num::NonZeroU32;

use blackboard_thumbnail::Bounds;
use bytes::Bytes;

use super::logs::entry;
use crate::refusal::Refusal;
use blackboard_board::{Board, Code, Digest, Entry, Image, LogName, Seq};
use blackboard_service::{ServiceError, SessionHandle, ShownImage};

/// Returns a screenshot and its image, which must be there and, if a digest is given, be that one.
pub fn image(board: &Board, seq: Seq, wanted: Option<Digest>) -> Result<(&Entry, &Image), Refusal> {
    let entry = entry(board, &LogName::Screenshots, seq)?;
    let refused = |detail: &str| Err(Refusal::new(Code::NoImage, detail));
    match (entry.item.image(), wanted) {
        (None, _) => refused("this entry has no stored image"),
        (Some(image), Some(wanted)) if image.sha256 != wanted => {
            refused("this entry has another image")
        }
        (Some(image), _) => Ok((entry, image)),
    }
}

/// An image as it is shown.
pub enum Shown<'a> {
    /// The stored bytes.
    Stored {
        /// The image.
        image: &'a Image,
        /// Its kind.
        media_type: String,
    },
    /// A thumbnail.
    Made {
        /// Its kind.
        media_type: &'static str,
        /// Its content.
        bytes: Bytes,
    },
}

impl<'a> Shown<'a> {
    /// Returns an image of at most this many pixels on its longest side, in one of these types; as it is stored if no bound
    /// is given.
    pub async fn of(
        session: &SessionHandle,
        board: &Board,
        image: &'a Image,
        max_px: Option<NonZeroU32>,
        types: &[&str],
    ) -> Result<Self, ServiceError> {
        let Some(max_px) = max_px else {
            return Ok(Self::Stored { image, media_type: image.media_type().to_owned() });
        };
        let bounds = Bounds::px(Some(max_px.get()));
        Ok(match session.showable_image(board, image, bounds, types).await? {
            ShownImage::Stored { media_type } => Self::Stored { image, media_type },
            ShownImage::Made { .. } => {
                let made = session.thumbnail(board, image, bounds).await?;
                Self::Made { media_type: made.media_type, bytes: made.bytes }
            }
        })
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Stored { image, .. } => image.bytes,
            Self::Made { bytes, .. } => bytes.len() as u64,
        }
    }

    /// Returns the media type.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Stored { media_type, .. } => media_type,
            Self::Made { media_type, .. } => media_type,
        }
    }

    /// Returns all bytes.
    pub async fn bytes(
        self,
        session: &SessionHandle,
        board: &Board,
    ) -> Result<Vec<u8>, ServiceError> {
        match self {
            Self::Stored { image, .. } => session.image(board, image).await,
            Self::Made { bytes, .. } => Ok(bytes.into()),
        }
    }
}
