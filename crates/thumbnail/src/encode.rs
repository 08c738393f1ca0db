//! Encoding: as a PNG, or as a JPEG if that is shorter and nothing is transparent.
//!
//! A PNG takes several times as long as a JPEG, so samples of the rows tell first whether it could be the shorter one.

use bytes::Bytes;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{DynamicImage, ImageEncoder as _};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::bounds::{Bounds, of_pixels, pixels};
use super::decode::Seen;
use super::shrink::shrink_again;
use super::{Thumbnail, Undecodable};

/// The quality of a JPEG, of 100.
const JPEG_QUALITY: u8 = 85;

/// A way to compress PNGs.
type Compression = (CompressionType, FilterType);

/// Screenshots become as small as with the encoder's default, in a fifth of the time.
const COMPACT: Compression = (CompressionType::Level(2), FilterType::Sub);

/// A compression in a tenth of that time. It finds nothing that repeats but zeros, so that single rows are a sample.
const QUICK: Compression = (CompressionType::Fast, FilterType::Sub);

/// The length of a quick PNG, as a multiple of the JPEG's, from which no compact one is shorter than the JPEG. The
/// compression saves a third of it at most, except where both are very short.
const QUICK_TIMES_MAX: usize = 4;

/// Every eighth row is a sample for the quick compression, or more of them if the picture has few.
const QUICK_PERIOD_MAX: usize = 8;
const QUICK_ROWS_MIN: usize = 64;

/// An eighth of the rows is a sample for the compact compression too, in bands as high as a line of text.
const BAND_ROWS: usize = 16;
const BAND_PERIOD: usize = 128;
/// A sample needs two bands.
const BANDED_ROWS_MIN: usize = 2 * BAND_PERIOD;

/// The expected length of the compact PNG, in halves of the JPEG's, from which it is not made. It has been found to be
/// off by less than a third.
const COMPACT_HALVES_MAX: usize = 3;

/// The most percent of its pixels that a picture keeps which has too many bytes. Fewer pixels do not always save as many
/// bytes, and each try should be the last.
const KEPT_PERCENT: u64 = 90;

/// Encodes the image, scaled down further as long as it has too many bytes.
///
/// # Errors
///
/// [`Undecodable::TooLarge`] if even a single pixel has too many bytes, [`Undecodable::Damaged`] if the PNG encoder fails.
pub(super) fn encode(seen: &Seen, bounds: Bounds) -> Result<Thumbnail, Undecodable> {
    let profile = seen.profile.as_deref();
    let mut made = shorter(&seen.picture, profile).ok_or(Undecodable::Damaged)?;
    while let Some(max) = bounds.max_bytes
        && made.bytes.len() as u64 > max
    {
        let (count, (width, height)) = (pixels(made.size), made.size);
        if count <= 1 {
            return Err(Undecodable::TooLarge { width, height });
        }
        let expected = count.saturating_mul(max) / made.bytes.len() as u64;
        let kept = (expected * KEPT_PERCENT / 100).max(1);
        // From the same picture each time, so that it is scaled twice at most.
        let smaller = shrink_again(&seen.picture, of_pixels(made.size, kept));
        made =
            shorter(&smaller.ok_or(Undecodable::Damaged)?, profile).ok_or(Undecodable::Damaged)?;
    }
    Ok(made)
}

/// Encodes the image as a PNG or as a JPEG. `None` if the PNG encoder fails.
fn shorter(picture: &DynamicImage, profile: Option<&[u8]>) -> Option<Thumbnail> {
    let size = (picture.width(), picture.height());
    let made = |media_type, bytes| Thumbnail { media_type, bytes: Bytes::from(bytes), size };
    match jpeg(picture, profile) {
        Some(jpeg) if is_jpeg_shorter(picture, jpeg.len())? => Some(made("image/jpeg", jpeg)),
        jpeg => {
            let png = png(picture, profile)?;
            Some(match jpeg {
                Some(jpeg) if jpeg.len() < png.len() => made("image/jpeg", jpeg),
                Some(_) | None => made("image/png", png),
            })
        }
    }
}

/// Whether a JPEG of this length is most likely shorter than the PNG.
fn is_jpeg_shorter(picture: &DynamicImage, jpeg: usize) -> Option<bool> {
    let height = usize::try_from(picture.height()).ok()?;
    let period = (height / QUICK_ROWS_MIN).clamp(1, QUICK_PERIOD_MAX);
    let quick = expected_png(picture, QUICK, |row| row % period == period / 2)?;
    if quick >= QUICK_TIMES_MAX * jpeg {
        return Some(true);
    }
    if height < BANDED_ROWS_MIN {
        return Some(false);
    }
    let middle = (BAND_PERIOD - BAND_ROWS) / 2;
    let is_in_band = |row| (middle..middle + BAND_ROWS).contains(&(row % BAND_PERIOD));
    Some(2 * expected_png(picture, COMPACT, is_in_band)? >= COMPACT_HALVES_MAX * jpeg)
}

/// Returns the length that a PNG of all rows would have by that of these rows.
fn expected_png(
    picture: &DynamicImage,
    compression: Compression,
    is_taken: impl Fn(usize) -> bool,
) -> Option<usize> {
    let (width, height) = (picture.width(), usize::try_from(picture.height()).ok()?);
    let row_bytes = picture.as_bytes().len().checked_div(height)?;
    let rows = picture.as_bytes().chunks_exact(row_bytes.max(1)).enumerate();
    let taken: Vec<&[u8]> =
        rows.filter(|(index, _)| is_taken(*index)).map(|(_, row)| row).collect();
    let count = u32::try_from(taken.len()).ok()?;
    let png = png_of(&taken.concat(), (width, count), picture, compression, None)?;
    (png.len() * height).checked_div(taken.len())
}

fn png(picture: &DynamicImage, profile: Option<&[u8]>) -> Option<Vec<u8>> {
    png_of(picture.as_bytes(), (picture.width(), picture.height()), picture, COMPACT, profile)
}

/// Encodes rows of the picture.
fn png_of(
    rows: &[u8],
    (width, height): (u32, u32),
    picture: &DynamicImage,
    (compression, filter): Compression,
    profile: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let mut png = Vec::new();
    let mut encoder = PngEncoder::new_with_quality(&mut png, compression, filter);
    if let Some(profile) = profile {
        encoder.set_icc_profile(profile.to_vec()).ok()?;
    }
    encoder.write_image(rows, width, height, picture.color().into()).ok()?;
    Some(png)
}

/// Encodes the image as a JPEG, without subsampling, which would blur text. `None` if it has an alpha channel, or a side
/// that is too long for a JPEG.
fn jpeg(picture: &DynamicImage, profile: Option<&[u8]>) -> Option<Vec<u8>> {
    let grey = picture.as_luma8().map(|grey| (grey.as_raw(), ColorType::Luma));
    let colours = || picture.as_rgb8().map(|colours| (colours.as_raw(), ColorType::Rgb));
    let (samples, color) = grey.or_else(colours)?;
    let (width, height) = (picture.width().try_into().ok()?, picture.height().try_into().ok()?);
    let mut jpeg = Vec::new();
    let mut encoder = Encoder::new(&mut jpeg, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    if let Some(profile) = profile {
        encoder.add_icc_profile(profile).ok()?;
    }
    encoder.encode(samples, width, height, color).ok()?;
    Some(jpeg)
}
