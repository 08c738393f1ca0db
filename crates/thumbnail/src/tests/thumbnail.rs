//! Tests of accepted and refused images.

use std::io::Cursor;

use image::{DynamicImage, GenericImageView as _, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

use crate::*;

pub(super) fn encoded(picture: &DynamicImage, kind: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, kind).unwrap();
    bytes.into_inner()
}

pub(super) fn byte(of: u32) -> u8 {
    u8::try_from(of % 256).unwrap()
}

/// Draws a picture with edges and slopes.
pub(super) fn drawn(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([byte(x * 3), byte(y * 5), if (x / 7 + y / 5) % 2 == 0 { 250 } else { 20 }])
    })
    .into()
}

/// Draws the same picture in a format that the encoder of the kind accepts.
pub(super) fn drawn_for(kind: ImageFormat, width: u32, height: u32) -> DynamicImage {
    let drawn = drawn(width, height);
    if kind == ImageFormat::Gif { drawn.to_rgba8().into() } else { drawn }
}

pub(super) fn shown(thumbnail: &Thumbnail) -> DynamicImage {
    image::load_from_memory(&thumbnail.bytes).unwrap()
}

#[test]
fn a_scaled_size_keeps_its_shape_and_never_grows() {
    for (size, max_px, to) in [
        ((3840, 2160), 1024, (1024, 576)),
        ((2160, 3840), 1024, (576, 1024)),
        ((100, 50), 1000, (100, 50)),
        ((100, 50), 100, (100, 50)),
        ((60_000, 1), 256, (256, 1)),
        ((1, 60_000), 1, (1, 1)),
        ((3, 2), 2, (2, 1)),
        ((u32::MAX, 1), 5, (5, 1)),
        ((10, 10), 0, (1, 1)),
    ] {
        assert_eq!(scaled(size, max_px), to, "{size:?} at {max_px}");
    }
}

#[test]
fn every_kind_becomes_a_png_or_a_jpeg_of_the_size_asked_for() {
    for (media_type, kind) in IMAGE_TYPES {
        let bytes = encoded(&drawn_for(kind, 90, 40), kind);
        assert_eq!(crate::media_type(&bytes), Some(media_type));
        for (max_px, size) in [(None, (90, 40)), (Some(30), (30, 13)), (Some(500), (90, 40))] {
            let made = make(&bytes, Bounds::px(max_px)).unwrap();
            assert!(["image/png", "image/jpeg"].contains(&made.media_type));
            assert_eq!(crate::media_type(&made.bytes), Some(made.media_type));
            assert_eq!((made.size, shown(&made).dimensions()), (size, size), "{media_type}");
            assert_eq!(make(&bytes, Bounds::px(max_px)).unwrap(), made, "the same bytes each time");
        }
    }
}

#[test]
fn a_pixel_is_the_mean_of_what_it_covers() {
    let mut picture = RgbaImage::new(4, 2);
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        // The right half is transparent but for one pixel, whose colour alone counts there.
        *pixel = match (x, y) {
            (0, _) => Rgba([100, 0, 0, 255]),
            (1, _) => Rgba([201, 0, 40, 255]),
            (2, 0) => Rgba([7, 8, 9, 255]),
            _ => Rgba([255, 255, 255, 0]),
        };
    }
    let made = make(&encoded(&picture.into(), ImageFormat::Png), Bounds::px(Some(2))).unwrap();
    assert_eq!(made.media_type, "image/png");
    let shown = shown(&made).to_rgba8();
    assert_eq!(shown.dimensions(), (2, 1));
    assert_eq!(shown.get_pixel(0, 0).0, [151, 0, 20, 255]);
    assert_eq!(shown.get_pixel(1, 0).0, [7, 8, 9, 64]);
}

#[test]
fn a_size_that_does_not_divide_weighs_what_is_covered_in_part() {
    let picture = RgbImage::from_fn(3, 1, |x, _| Rgb([[0, 90, 240][x as usize]; 3]));
    let made = make(&encoded(&picture.into(), ImageFormat::Png), Bounds::px(Some(2))).unwrap();
    let shown = shown(&made).to_rgb8();
    assert_eq!(made.media_type, "image/png", "it is the shorter one");
    assert_eq!((shown.get_pixel(0, 0).0, shown.get_pixel(1, 0).0), ([30; 3], [190; 3]));
}

#[test]
fn sixteen_bits_and_grey_and_palettes_are_shown() {
    let drawn = drawn(64, 48);
    let wide = [
        DynamicImage::from(drawn.to_rgb16()),
        drawn.to_rgba16().into(),
        drawn.to_luma16().into(),
        drawn.to_luma_alpha16().into(),
    ];
    for picture in wide {
        let made = make(&encoded(&picture, ImageFormat::Png), Bounds::px(None)).unwrap();
        let (shown, grey) = (shown(&made).to_luma8(), picture.to_luma8());
        let differ = |(a, b): (&u8, &u8)| a.abs_diff(*b);
        let far = shown.as_raw().iter().zip(grey.as_raw()).map(differ).max();
        let most = if made.media_type == "image/png" { 1 } else { 24 };
        assert!(far.unwrap() <= most, "{:?} is off by {far:?}", picture.color());
    }
}

#[test]
fn photographs_become_jpegs_and_flat_pictures_pngs() {
    let mut state = 1_u32;
    let noise = RgbImage::from_fn(128, 128, |x, y| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let shade = u8::try_from((x + y) / 2 + (state >> 28)).unwrap();
        Rgb([shade, shade / 2, 255 - shade])
    });
    let made = make(&encoded(&noise.into(), ImageFormat::Png), Bounds::px(None)).unwrap();
    assert_eq!(made.media_type, "image/jpeg");
    let flat = RgbImage::from_pixel(128, 128, Rgb([1, 2, 3]));
    let made = make(&encoded(&flat.into(), ImageFormat::Bmp), Bounds::px(None)).unwrap();
    assert_eq!(made.media_type, "image/png");
}

#[test]
fn samples_of_the_rows_find_the_shorter_kind() {
    let hash = |x: u32, y: u32| {
        let mixed = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca6b);
        (mixed ^ (mixed >> 15)).wrapping_mul(0x2c1b_3c6d) >> 24
    };
    // Letters of two shades, or of as many as smooth edges have.
    let page = |shades: u32| {
        let picture = RgbImage::from_fn(400, 600, |x, y| {
            let is_ink = y % 16 < 11 && hash(x, y) < 90;
            Rgb([u8::try_from(if is_ink { hash(y, x) % shades } else { 250 }).unwrap(); 3])
        });
        encoded(&picture.into(), ImageFormat::Png)
    };
    for (shades, media_type) in [(1, "image/png"), (200, "image/jpeg")] {
        let made = make(&page(shades), Bounds::px(None)).unwrap();
        assert_eq!(made.media_type, media_type);
    }
}

#[test]
fn what_is_no_image_or_half_of_one_is_refused() {
    for bytes in
        [&b""[..], b"x", b"%PDF-1.7 ................", b"II*\0 a TIFF, which is not one of ours"]
    {
        assert_eq!(make(bytes, Bounds::px(Some(9))), Err(Undecodable::Unknown));
        assert_eq!(media_type(bytes), None);
    }
    for (media_type, kind) in IMAGE_TYPES {
        let whole = encoded(&drawn_for(kind, 40, 40), kind);
        for length in (0..whole.len()).step_by(7) {
            if let Err(refused) = make(&whole[..length], Bounds::px(Some(16))) {
                assert_ne!(
                    refused,
                    Undecodable::TooLarge { width: 40, height: 40 },
                    "{media_type}"
                );
            }
        }
    }
}

#[test]
fn a_wide_screenshot_is_decoded_and_a_larger_one_refused_unseen() {
    let wide = encoded(&RgbaImage::new(7680, 2160).into(), ImageFormat::Png);
    assert_eq!(make(&wide, Bounds::px(Some(1024))).unwrap().size, (1024, 288));
    // The sizes in the header of a PNG.
    let mut huge = wide;
    huge.splice(16..24, [50_000_u32.to_be_bytes(), 50_000_u32.to_be_bytes()].concat());
    let sum = crc32fast::hash(&huge[12..29]).to_be_bytes();
    huge.splice(29..33, sum);
    let too_large = Undecodable::TooLarge { width: 50_000, height: 50_000 };
    assert_eq!(
        (probe(&huge, Bounds::default()), make(&huge, Bounds::px(Some(9)))),
        (Err(too_large), Err(too_large))
    );
}

#[test]
fn a_webp_frame_larger_than_its_canvas_is_refused_unseen() {
    let mut frame = vec![0x10, 0, 0, 0x9d, 0x01, 0x2a];
    frame.extend([16_383_u16.to_le_bytes(), 16_383_u16.to_le_bytes()].concat());
    frame.resize(64, 0);
    let chunk = |name: &[u8; 4], body: &[u8]| {
        [name.as_slice(), &u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
    };
    let chunks = [chunk(b"VP8X", &[0; 10]), chunk(b"VP8 ", &frame)].concat();
    let bytes = chunk(b"RIFF", &[b"WEBP".as_slice(), &chunks].concat());
    assert_eq!(probe(&bytes, Bounds::default()), Err(Undecodable::Damaged));
}

#[test]
fn a_bmp_that_is_transparent_everywhere_is_opaque() {
    let mut picture = RgbaImage::from_fn(6, 4, |x, y| Rgba([byte(40 * x), byte(60 * y), 9, 0]));
    let made = make(&encoded(&picture.clone().into(), ImageFormat::Bmp), Bounds::default());
    let shown_now = shown(&made.unwrap());
    assert_eq!(shown_now.to_rgb8(), DynamicImage::from(picture.clone()).to_rgb8());
    assert!(!shown_now.color().has_alpha());
    picture.put_pixel(1, 1, Rgba([1, 2, 3, 200]));
    let made = make(&encoded(&picture.clone().into(), ImageFormat::Bmp), Bounds::default());
    assert_eq!(shown(&made.unwrap()).to_rgba8(), picture, "real transparency stays");
}

/// Pixels that no encoder shortens.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    RgbImage::from_fn(width, height, |_, _| Rgb([random(), random(), random()])).into()
}

#[test]
fn a_picture_of_too_many_bytes_is_scaled_until_it_fits() {
    let mut clear = noise(300, 200).to_rgba8();
    clear.pixels_mut().for_each(|pixel| pixel.0[3] = pixel.0[0]);
    for picture in [noise(300, 200), clear.into()] {
        let bytes = encoded(&picture, ImageFormat::Png);
        for max in [60_000, 5_000, 400] {
            let bounds = Bounds { max_bytes: Some(max), ..Bounds::default() };
            let made = make(&bytes, bounds).unwrap();
            assert!(made.bytes.len() as u64 <= max, "{} of {max}", made.bytes.len());
            assert_eq!(shown(&made).dimensions(), made.size);
            assert!(made.bytes.len() as u64 * 4 > max, "{} of {max}", made.bytes.len());
            assert_eq!(make(&bytes, bounds), Ok(made), "the same bytes each time");
        }
        let none = Bounds { max_bytes: Some(9), ..Bounds::default() };
        assert_eq!(make(&bytes, none), Err(Undecodable::TooLarge { width: 1, height: 1 }));
    }
}

#[test]
fn a_size_of_fewer_pixels_keeps_its_shape_too() {
    for (size, max_pixels, to) in [
        ((4000, 3000), 12_000_000, (4000, 3000)),
        ((4000, 3000), 3_000_000, (2000, 1500)),
        ((3, 2), 5, (2, 1)),
        ((65_535, 1), 9, (9, 1)),
        ((10, 10), 0, (1, 1)),
        ((u32::MAX, u32::MAX), 4, (2, 2)),
    ] {
        let bounds = Bounds { max_pixels: Some(max_pixels), ..Bounds::default() };
        assert_eq!(bounds.fit(size), to, "{size:?} at {max_pixels}");
    }
    let both = Bounds { max_px: Some(100), max_pixels: Some(1000), max_bytes: None };
    assert_eq!(both.fit((400, 400)), (31, 31));
    assert_eq!(both.fit((400, 4)), (100, 1));
}
