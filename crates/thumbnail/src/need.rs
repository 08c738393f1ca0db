//! The memory that decoding takes, computed from the header.
//!
//! The decoders limit the size of their output at most. Their other memory is counted here for each image format, as
//! the versions in `Cargo.lock` need it.

use image::ImageFormat;

use super::bounds::pixels;
use super::{Undecodable, jpeg, webp};

/// The longest side of an image that is decoded, which is also the longest of a JPEG or a GIF.
pub const SIDE_MAX: u32 = 65_535;

/// The most bytes of a decoded image, 64 MiB: room for 7680 x 2160 pixels with transparency.
pub const DECODED_BYTES_MAX: u64 = 64 << 20;

/// The most bytes that decoding may take, output and working memory. A progressive JPEG of 3840 x 2160 pixels nearly
/// reaches it.
pub const DECODING_BYTES_MAX: u64 = 80 << 20;

/// The most bytes of a PNG's texts and unpacked colour profile. Longer profiles are skipped.
pub(super) const PNG_BESIDES_MAX: u64 = 8 << 20;

/// The most pixels of a picture that is scaled while it is decoded, 67 million: two screens of 8K, or the largest photograph
/// of most cameras. They take a few seconds of a processor.
pub const PIXELS_MAX: u64 = 1 << 26;

/// The most bytes of such a picture after it is scaled, 32 MiB: 11 million pixels. It leaves room to turn or to encode it.
pub(super) const ROWS_BYTES_MAX: u64 = 32 << 20;

/// The bytes of a sum of samples.
const SUM_BYTES: u64 = 4;
/// The rows of a JPEG that are decoded together, in each component.
const UNIT_ROWS: u64 = 32;
/// Bytes of the tables of codes of a JPEG.
const JPEG_TABLES_BYTES: u64 = 1 << 20;

/// Bytes besides the output of a WebP without separate transparency: its pixels before they are converted, and the
/// images that transform them.
const WEBP_BYTES_A_PIXEL: u64 = 5;
/// Bytes besides the output with separate transparency: luma and chroma, and the transparency while it is decoded.
const WEBP_ALPHA_BYTES_A_PIXEL: u64 = 8;
/// Bytes besides the output of an animation: a canvas, and the first frame while it is decoded.
const WEBP_ANIMATED_BYTES_A_PIXEL: u64 = 11;

/// Estimates the bytes that decoding the whole picture takes.
///
/// # Errors
///
/// [`Undecodable::TooLarge`] beyond the limits. [`Undecodable::Damaged`] if a WebP's frame does not fit its canvas.
pub(super) fn whole(
    kind: ImageFormat,
    bytes: &[u8],
    size: (u32, u32),
    decoded_bytes: u64,
) -> Result<u64, Undecodable> {
    let (width, height) = size;
    let too_large = Undecodable::TooLarge { width, height };
    if width > SIDE_MAX || height > SIDE_MAX || decoded_bytes > DECODED_BYTES_MAX {
        return Err(too_large);
    }
    let (pixels, length) = (pixels(size), bytes.len() as u64);
    let besides = if kind == ImageFormat::Png {
        PNG_BESIDES_MAX
    } else if kind == ImageFormat::Gif {
        // A first frame that does not fill the screen is decoded apart from it.
        decoded_bytes
    } else if kind == ImageFormat::Jpeg {
        length + jpeg::coefficient_bytes(bytes, size)
    } else if kind == ImageFormat::WebP {
        let frames = webp::Frames::find(bytes, size);
        if !frames.fit(size) {
            return Err(Undecodable::Damaged);
        }
        let bytes_a_pixel = if frames.is_animated {
            WEBP_ANIMATED_BYTES_A_PIXEL
        } else if frames.has_alpha_apart {
            WEBP_ALPHA_BYTES_A_PIXEL
        } else {
            WEBP_BYTES_A_PIXEL
        };
        pixels * bytes_a_pixel + frames.table_bytes + length
    } else {
        0
    };
    let need = decoded_bytes + besides;
    if need > DECODING_BYTES_MAX { Err(too_large) } else { Ok(need) }
}

/// Estimates the bytes that a picture takes whose rows are added up while they are decoded. `None` beyond the limits.
pub(super) fn by_rows(
    kind: ImageFormat,
    bytes: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    channels: u8,
) -> Option<u64> {
    if from.0 > SIDE_MAX || from.1 > SIDE_MAX || pixels(from) > PIXELS_MAX {
        return None;
    }
    let channels = u64::from(channels);
    let row = u64::from(from.0) * channels;
    // The rows and their sums, and the means of a row of the result.
    let rows = row * (UNIT_ROWS + SUM_BYTES) + u64::from(to.0) * channels * SUM_BYTES;
    let besides = if kind == ImageFormat::Png {
        PNG_BESIDES_MAX
    } else {
        // The header is read by the decoder of whole pictures, which copies the file.
        bytes.len() as u64 + JPEG_TABLES_BYTES
    };
    let need = pixels(to) * channels + rows + besides;
    (need <= DECODING_BYTES_MAX).then_some(need)
}
