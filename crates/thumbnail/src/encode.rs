//! Encoding: as a PNG, or as a JPEG if that is shorter and nothing is transparent.

use bytes::Bytes;
use image::DynamicImage;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::Thumbnail;

/// The quality of a JPEG, of 100.
const JPEG_QUALITY: u8 = 85;

/// The compression of PNGs. Screenshots become as small as with the encoder's default, in a fifth of the time.
const PNG_COMPRESSION: (CompressionType, FilterType) = (CompressionType::Level(2), FilterType::Sub);

/// The compression that tells whether a PNG could be short, in a tenth of that time.
const PNG_ESTIMATE: (CompressionType, FilterType) = (CompressionType::Fast, FilterType::Sub);

/// The length of that PNG, as a multiple of the JPEG's, from which no PNG is shorter than the JPEG. The compression
/// saves a third of it at most, except where both are very short.
const ESTIMATE_TIMES_MAX: usize = 4;

/// Encodes the image. `None` if the PNG encoder fails.
pub(super) fn encode(picture: &DynamicImage) -> Option<Thumbnail> {
    let size = (picture.width(), picture.height());
    let made = |media_type, bytes| Thumbnail { media_type, bytes: Bytes::from(bytes), size };
    let Some(jpeg) = jpeg(picture) else {
        return Some(made("image/png", png(picture, PNG_COMPRESSION)?));
    };
    if png(picture, PNG_ESTIMATE)?.len() >= ESTIMATE_TIMES_MAX * jpeg.len() {
        return Some(made("image/jpeg", jpeg));
    }
    let png = png(picture, PNG_COMPRESSION)?;
    Some(if jpeg.len() < png.len() { made("image/jpeg", jpeg) } else { made("image/png", png) })
}

fn png(
    picture: &DynamicImage,
    (compression, filter): (CompressionType, FilterType),
) -> Option<Vec<u8>> {
    let mut png = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut png, compression, filter);
    picture.write_with_encoder(encoder).ok()?;
    Some(png)
}

/// Encodes the image as a JPEG, without subsampling, which would blur text. `None` if it has an alpha channel, or a side
/// that is too long for a JPEG.
fn jpeg(picture: &DynamicImage) -> Option<Vec<u8>> {
    let grey = picture.as_luma8().map(|grey| (grey.as_raw(), ColorType::Luma));
    let colours = || picture.as_rgb8().map(|colours| (colours.as_raw(), ColorType::Rgb));
    let (samples, color) = grey.or_else(colours)?;
    let (width, height) = (picture.width().try_into().ok()?, picture.height().try_into().ok()?);
    let mut jpeg = Vec::new();
    let mut encoder = Encoder::new(&mut jpeg, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder.encode(samples, width, height, color).ok()?;
    Some(jpeg)
}
