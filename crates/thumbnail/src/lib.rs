//! Thumbnails of images: decoded within bounds, scaled, and encoded again.
//!
//! Bytes go in and come out; this crate knows no session, file or request. Any bytes give a thumbnail or
//! [`Undecodable`], and equal bytes always give equal thumbnails, so that prompts that show them stay equal to the
//! byte.

mod decode;
mod encode;
mod jpeg;
mod kind;
mod need;
mod shrink;
mod webp;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

pub use kind::{IMAGE_TYPES, SNIFFED_BYTES, media_type, recognise};
pub use need::{DECODED_BYTES_MAX, DECODING_BYTES_MAX, SIDE_MAX};

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
    #[error("the image is not a PNG, JPEG, WebP, GIF or BMP")]
    Unknown,
    /// Decoding would exceed the memory limit.
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
    /// Its width and height.
    pub size: (u32, u32),
    /// The estimated bytes that decoding takes, besides the encoded image.
    pub need: u64,
}

/// Returns the size of an image scaled down so that no side is longer than `max_px`. The size keeps its shape, has at
/// least one pixel, and never grows.
#[must_use]
pub fn scaled(size: (u32, u32), max_px: u32) -> (u32, u32) {
    let (width, height) = size;
    let longest = u64::from(width.max(height)).max(1);
    let max = u64::from(max_px).clamp(1, longest);
    let side = |side: u32| {
        let side = (u64::from(side) * max + longest / 2) / longest;
        u32::try_from(side.max(1)).unwrap_or(u32::MAX)
    };
    (side(width), side(height))
}

/// Reads the header and checks whether the image may be decoded. Nothing is decoded.
///
/// # Errors
///
/// [`Undecodable`].
pub fn probe(bytes: &[u8]) -> Result<Probe, Undecodable> {
    caught(|| decode::probe(bytes))
}

/// Decodes an image, scales it where it is larger than `max_px`, and encodes it as a PNG or a JPEG.
///
/// # Errors
///
/// [`Undecodable`].
pub fn make(bytes: &[u8], max_px: Option<u32>) -> Result<Thumbnail, Undecodable> {
    caught(|| made(bytes, max_px))
}

fn made(bytes: &[u8], max_px: Option<u32>) -> Result<Thumbnail, Undecodable> {
    let decoded = decode::decode(bytes)?;
    let size = max_px.map_or(decoded.size, |max_px| scaled(decoded.size, max_px));
    let orientation = decoded.orientation;
    let mut picture = shrink::shrink(decoded, size).ok_or(Undecodable::Damaged)?;
    picture.apply_orientation(orientation);
    encode::encode(&picture).ok_or(Undecodable::Damaged)
}

/// Treats a panic of a decoder as a damaged image.
fn caught<T>(work: impl FnOnce() -> Result<T, Undecodable>) -> Result<T, Undecodable> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Undecodable::Damaged))
}

#[cfg(test)]
mod tests;
