//! Tests of what a picture's file says besides its pixels.

use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{
    DynamicImage, ImageDecoder as _, ImageEncoder, ImageFormat, ImageReader, Rgb, RgbImage,
};
use jpeg_encoder::{ColorType, Encoder};

use super::thumbnail::{byte, drawn, encoded, shown};
use crate::*;

/// Returns Exif data with an orientation.
pub(super) fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

/// Inserts a chunk before the end of a PNG, or after its header.
fn with_chunk(png: &[u8], at: usize, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let named = [name, body].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let sum = crc32fast::hash(&named).to_be_bytes();
    [&png[..at], &length, &named, &sum, &png[at..]].concat()
}

/// A picture whose corners differ: red at the upper left, then green, blue and white in turn.
fn corners() -> RgbImage {
    RgbImage::from_fn(48, 32, |x, y| {
        Rgb(match (x < 24, y < 16) {
            (true, true) => [255, 0, 0],
            (false, true) => [0, 255, 0],
            (true, false) => [0, 0, 255],
            (false, false) => [255; 3],
        })
    })
}

#[test]
fn jpeg_png_and_webp_stand_as_a_person_sees_them() {
    let picture = DynamicImage::from(corners());
    let plain = encoded(&picture, ImageFormat::Png);
    for orientation in 1..=8 {
        let exif = exif(orientation);
        let mut jpeg = Vec::new();
        let mut encoder = Encoder::new(&mut jpeg, 95);
        encoder.add_app_segment(1, [b"Exif\0\0", exif.as_slice()].concat()).unwrap();
        encoder.encode(corners().as_raw(), 48, 32, ColorType::Rgb).unwrap();
        let mut webp = Vec::new();
        let mut encoder = WebPEncoder::new_lossless(&mut webp);
        encoder.set_exif_metadata(exif.clone()).unwrap();
        encoder.write_image(corners().as_raw(), 48, 32, image::ExtendedColorType::Rgb8).unwrap();
        // The chunk may stand after the pixels.
        let late = with_chunk(&plain, plain.len() - 12, b"eXIf", &exif);
        let early = with_chunk(&plain, 33, b"eXIf", &exif);
        for (name, bytes) in [("JPEG", jpeg), ("WebP", webp), ("PNG", early), ("late PNG", late)] {
            let mut expected = picture.clone();
            expected
                .apply_orientation(image::metadata::Orientation::from_exif(orientation).unwrap());
            let probed = probe(&bytes, Bounds::default()).unwrap();
            let size = (expected.width(), expected.height());
            assert_eq!((probed.size, probed.is_turned), (size, orientation > 1), "{name}");
            for max_px in [None, Some(24)] {
                let shown = shown(&make(&bytes, Bounds::px(max_px)).unwrap()).to_rgb8();
                let (right, bottom) = (shown.width() - 2, shown.height() - 2);
                let at = |x, y| shown.get_pixel(x, y).0.map(|sample| sample > 127);
                let expected = expected
                    .resize_exact(shown.width(), shown.height(), image::imageops::Nearest)
                    .to_rgb8();
                let wanted = |x, y| expected.get_pixel(x, y).0.map(|sample| sample > 127);
                for (x, y) in [(1, 1), (right, 1), (1, bottom), (right, bottom)] {
                    assert_eq!(at(x, y), wanted(x, y), "{name} {orientation} at {x}, {y}");
                }
            }
        }
    }
}

/// Returns a profile's header with this colour space, and so many bytes in all.
fn profile(space: &[u8; 4], length: usize) -> Vec<u8> {
    let mut profile: Vec<u8> = (0..=250).cycle().take(length).collect();
    profile[..4].copy_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
    profile[16..20].copy_from_slice(space);
    profile[36..40].copy_from_slice(b"acsp");
    profile
}

fn profile_of(thumbnail: &Thumbnail) -> Option<Vec<u8>> {
    let reader = ImageReader::new(std::io::Cursor::new(&thumbnail.bytes));
    let mut decoder = reader.with_guessed_format().unwrap().into_decoder().unwrap();
    decoder.icc_profile().unwrap()
}

#[test]
fn the_profile_of_the_colours_is_carried_along() {
    // The second one becomes a JPEG.
    let noisy = RgbImage::from_fn(128, 128, |x, y| {
        let mixed = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca6b);
        Rgb([byte((x + y) / 2 + (mixed >> 28)), byte(x), byte(y)])
    });
    for picture in [drawn(64, 48), noisy.into()] {
        let profile = profile(b"RGB ", 548);
        let samples = picture.to_rgb8();
        let (width, height) = samples.dimensions();
        let mut png = Vec::new();
        let mut encoder = PngEncoder::new(&mut png);
        encoder.set_icc_profile(profile.clone()).unwrap();
        encoder.write_image(&samples, width, height, image::ExtendedColorType::Rgb8).unwrap();
        let mut webp = Vec::new();
        let mut encoder = WebPEncoder::new_lossless(&mut webp);
        encoder.set_icc_profile(profile.clone()).unwrap();
        encoder.write_image(&samples, width, height, image::ExtendedColorType::Rgb8).unwrap();
        let mut jpeg = Vec::new();
        let mut encoder = Encoder::new(&mut jpeg, 95);
        encoder.add_icc_profile(&profile).unwrap();
        let side = |side: u32| u16::try_from(side).unwrap();
        encoder.encode(&samples, side(width), side(height), ColorType::Rgb).unwrap();
        for bytes in [png, webp, jpeg] {
            for max_px in [None, Some(20)] {
                let made = make(&bytes, Bounds::px(max_px)).unwrap();
                assert_eq!(profile_of(&made).as_ref(), Some(&profile), "{}", made.media_type);
            }
        }
    }
}

#[test]
fn a_profile_of_other_colours_or_too_long_is_left_out() {
    let rgb = drawn(64, 48).to_rgb8();
    let grey = drawn(64, 48).to_luma8();
    let jpeg = |samples: &[u8], color, profile: &[u8]| {
        let mut jpeg = Vec::new();
        let mut encoder = Encoder::new(&mut jpeg, 95);
        encoder.add_icc_profile(profile).unwrap();
        encoder.encode(samples, 64, 48, color).unwrap();
        profile_of(&make(&jpeg, Bounds::px(Some(20))).unwrap())
    };
    let (gray, red) = (profile(b"GRAY", 400), profile(b"RGB ", 400));
    assert_eq!(jpeg(&grey, ColorType::Luma, &gray), Some(gray.clone()));
    assert_eq!(jpeg(&grey, ColorType::Luma, &red), None);
    assert_eq!(jpeg(&rgb, ColorType::Rgb, &gray), None);
    assert_eq!(jpeg(&rgb, ColorType::Rgb, b"no profile at all"), None);
    let inks: Vec<u8> = rgb.pixels().flat_map(|p| [p.0[0], p.0[1], p.0[2], 0]).collect();
    assert_eq!(jpeg(&inks, ColorType::Cmyk, &profile(b"CMYK", 400)), None);
    assert_eq!(jpeg(&inks, ColorType::CmykAsYcck, &profile(b"CMYK", 400)), None);
    assert_eq!(jpeg(&rgb, ColorType::Rgb, &profile(b"RGB ", PROFILE_BYTES_MAX + 1)), None);
    let longest = profile(b"RGB ", PROFILE_BYTES_MAX);
    assert_eq!(jpeg(&rgb, ColorType::Rgb, &longest), Some(longest.clone()));
}
