//! Encoding: as a PNG, or as a JPEG if that is shorter and nothing is transparent.

use bytes::Bytes;
use image::DynamicImage;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};

use super::Thumbnail;

/// The quality of a JPEG, of 100.
const JPEG_QUALITY: u8 = 85;

/// The compression of PNGs. Screenshots become as small as with the encoder's default, in a fifth of the time.
const PNG_COMPRESSION: (CompressionType, FilterType) = (CompressionType::Level(2), FilterType::Sub);

/// Encodes the image. `None` if the PNG encoder fails.
pub(super) fn encode(picture: &DynamicImage) -> Option<Thumbnail> {
    let size = (picture.width(), picture.height());
    let (mut png, (compression, filter)) = (Vec::new(), PNG_COMPRESSION);
    let encoder = PngEncoder::new_with_quality(&mut png, compression, filter);
    picture.write_with_encoder(encoder).ok()?;
    let made = |media_type, bytes| Thumbnail { media_type, bytes: Bytes::from(bytes), size };
    if picture.color().has_alpha() {
        return Some(made("image/png", png));
    }
    let mut jpeg = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY);
    let encoded = picture.write_with_encoder(encoder);
    Some(match encoded {
        Ok(()) if jpeg.len() < png.len() => made("image/jpeg", jpeg),
        // A side may be too long for a JPEG.
        Ok(()) | Err(_) => made("image/png", png),
    })
}
