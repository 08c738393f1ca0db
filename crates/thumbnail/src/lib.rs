//! Thumbnails of images: decoded within bounds, scaled, and encoded again.
//!
//! Bytes go in and come out; this crate knows no session, file or request. Any bytes give a thumbnail or
//! [`Undecodable`], and equal bytes always give equal thumbnails, so that prompts that show them stay equal to the
//! byte.

mod bounds;
mod cut;
mod decode;
mod encode;
mod image_type;
mod jpeg;
mod metadata;
mod need;
mod png;
mod shrink;
mod webp;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

pub use bounds::{Bounds, scaled};
pub use cut::is_cut;
pub use image_type::{
    IMAGE_NAMES, IMAGE_TYPES, SNIFFED_BYTES, image_type_names, media_type, recognise,
};
pub use metadata::PROFILE_BYTES_MAX;
pub use need::{DECODED_BYTES_MAX, DECODING_BYTES_MAX, PIXELS_MAX, SIDE_MAX};

/// The longest side that a caller may ask for, in pixels.
pub const MAX_PX_MAX: u32 = 16_384;

/// An image made of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// The encoded image.
    pub bytes: Bytes,
    /// Its width and height.
    pub size: (u32, u32),
}

/// The permanent reason why an image has no thumbnail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// The first bytes are not those of a supported kind.
    #[error("the image is not a {}", image_type_names())]
    Unknown,
    /// Decoding would exceed the memory limit, or the picture has too many bytes at any size.
    #[error(
        "decoding the image would exceed the memory limit; its header says {width} x {height} pixels"
    )]
    TooLarge {
        /// The width in its header.
        width: u32,
        /// The height.
        height: u32,
    },
    /// The image is damaged or of an unsupported variant.
    #[error("the image cannot be decoded: it is damaged or of an unsupported variant")]
    Damaged,
}

/// The facts of an image's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its width and height as a person sees it, after it is turned.
    pub size: (u32, u32),
    /// The estimated bytes that decoding takes, besides the encoded image.
    pub need: u64,
    /// Whether the file says that the picture is to be turned or mirrored before it is shown. Not every reader of images
    /// does so; [`make`] does.
    pub is_turned: bool,
}

/// Reads the header and checks whether the image may be decoded. Nothing is decoded.
///
/// # Errors
///
/// [`Undecodable`].
pub fn probe(bytes: &[u8], bounds: Bounds) -> Result<Probe, Undecodable> {
    caught(|| decode::probe(bytes, bounds))
}

/// Decodes an image, turns it as its file says, scales it where it exceeds the bounds, and encodes it as a PNG or a JPEG
/// with the profile of its colours.
///
/// # Errors
///
/// [`Undecodable`].
pub fn make(bytes: &[u8], bounds: Bounds) -> Result<Thumbnail, Undecodable> {
    caught(|| made(bytes, bounds))
}

/// Decodes all of an image and keeps nothing. A header may be sound while pixels are missing.
///
/// # Errors
///
/// [`Undecodable`].
pub fn check(bytes: &[u8]) -> Result<(), Undecodable> {
    caught(|| decode::decode(bytes, Bounds::px(Some(1))).map(drop))
}

fn made(bytes: &[u8], bounds: Bounds) -> Result<Thumbnail, Undecodable> {
    encode::encode(&decode::decode(bytes, bounds)?, bounds)
}

/// Treats a panic of a decoder as a damaged image.
fn caught<T>(work: impl FnOnce() -> Result<T, Undecodable>) -> Result<T, Undecodable> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Undecodable::Damaged))
}

#[cfg(test)]
mod tests;
