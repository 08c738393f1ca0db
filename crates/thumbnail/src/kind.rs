//! Kinds of image that can be read, recognised by their first bytes.

use std::io::Cursor;

use image::{ImageFormat, ImageReader, Limits};

use super::need::PNG_BESIDES_MAX;

/// The kinds of image that can be read, with their media types.
pub const IMAGE_TYPES: [(&str, ImageFormat); 5] = [
    ("image/png", ImageFormat::Png),
    ("image/jpeg", ImageFormat::Jpeg),
    ("image/webp", ImageFormat::WebP),
    ("image/gif", ImageFormat::Gif),
    ("image/bmp", ImageFormat::Bmp),
];

/// The number of leading bytes that identify an image's kind.
pub const SNIFFED_BYTES: usize = 16;

/// Returns the media type of an image by its first bytes, if its kind can be decoded. The declared type does not
/// matter.
#[must_use]
pub fn media_type(beginning: &[u8]) -> Option<&'static str> {
    let kind = kind(beginning)?;
    IMAGE_TYPES.iter().find(|(_, known)| *known == kind).map(|(media_type, _)| *media_type)
}

pub(super) fn kind(bytes: &[u8]) -> Option<ImageFormat> {
    let beginning = bytes.get(..SNIFFED_BYTES).unwrap_or(bytes);
    let kind = image::guess_format(beginning).ok()?;
    IMAGE_TYPES.iter().any(|(_, known)| *known == kind).then_some(kind)
}

/// Returns the kind of an image and its size in pixels, read from its first bytes without decoding it.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<(ImageFormat, (u32, u32))> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(PNG_BESIDES_MAX);
    reader.limits(limits);
    let format = reader.format()?;
    let size = reader.into_dimensions().ok()?;
    (size.0 > 0 && size.1 > 0).then_some((format, size))
}
