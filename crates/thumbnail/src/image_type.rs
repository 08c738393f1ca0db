//! Kinds of image that can be read, recognised by their first bytes.

use std::io::Cursor;

use image::{ImageFormat, ImageReader, Limits};

use super::need::PNG_BESIDES_MAX;

macro_rules! image_types {
    ($($format:ident $name:literal $media_type:literal;)+) => {
        /// The names of the kinds of image that can be read, as people write them.
        pub const IMAGE_NAMES: [&str; [$($name),+].len()] = [$($name),+];

        /// The kinds of image that can be read, with their media types.
        pub const IMAGE_TYPES: [(&str, ImageFormat); IMAGE_NAMES.len()] =
            [$(($media_type, ImageFormat::$format)),+];
    };
}

image_types! {
    Png "PNG" "image/png";
    Jpeg "JPEG" "image/jpeg";
    WebP "WebP" "image/webp";
    Gif "GIF" "image/gif";
    Bmp "BMP" "image/bmp";
}

/// Returns the names of the kinds of image that can be read: `PNG, … or BMP`.
#[must_use]
pub fn image_type_names() -> String {
    let (last, others) = IMAGE_NAMES.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

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
