//! Tests of pictures that are scaled while they are decoded.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Rgb, RgbImage};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::thumbnail::{byte, drawn, encoded, shown};
use crate::decode::Decoded;
use crate::jpeg::JpegRows;
use crate::png::PngRows;
use crate::shrink::{Source, shrink, shrink_rows};
use crate::*;

/// Memory of the encoders: at most the size of what is encoded.
const BESIDES: u64 = 32 << 20;

/// Decodes an image whole, whatever its size.
fn whole(bytes: &[u8]) -> Decoded {
    let decoder = ImageReader::new(Cursor::new(bytes)).with_guessed_format().unwrap();
    let decoder = decoder.into_decoder().unwrap();
    let (size, color) = (decoder.dimensions(), decoder.color_type());
    let mut pixels = vec![0; usize::try_from(decoder.total_bytes()).unwrap()];
    decoder.read_image(&mut pixels).unwrap();
    Decoded { size, color, bytes: pixels }
}

fn jpeg(
    picture: &RgbImage,
    sampling: SamplingFactor,
    configure: impl Fn(&mut Encoder<&mut Vec<u8>>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 90);
    encoder.set_sampling_factor(sampling);
    configure(&mut encoder);
    let side = |side: u32| u16::try_from(side).unwrap();
    let (width, height) = (side(picture.width()), side(picture.height()));
    encoder.encode(picture.as_raw(), width, height, ColorType::Rgb).unwrap();
    bytes
}

/// Makes a thumbnail, and checks the memory that it took.
fn made_within(bytes: &[u8], bounds: Bounds) -> Thumbnail {
    let need = probe(bytes, bounds).unwrap().need;
    assert!(need <= DECODING_BYTES_MAX);
    let mut thumbnail = None;
    let took = allocation_counter::measure(|| thumbnail = Some(made(bytes, bounds))).bytes_max;
    assert!(took <= need + BESIDES && took <= DECODING_BYTES_MAX, "{took} for {need}");
    thumbnail.unwrap().unwrap()
}

#[test]
fn rows_of_a_png_give_what_the_whole_picture_gives() {
    let picture = drawn(131, 97);
    let mut clear = picture.to_rgba8();
    clear.pixels_mut().for_each(|pixel| pixel.0[3] = pixel.0[1]);
    // The last row alone is transparent.
    let mut late = picture.to_rgba8();
    late.pixels_mut().skip(131 * 96).for_each(|pixel| pixel.0[3] = 7);
    let clear = DynamicImage::from(clear);
    let pictures = [
        picture.to_luma8().into(),
        picture.to_luma16().into(),
        picture.to_luma_alpha8().into(),
        clear.to_luma_alpha8().into(),
        picture.to_rgb16().into(),
        picture.to_rgba8().into(),
        clear.to_rgba16().into(),
        late.into(),
        clear,
        picture,
    ];
    for picture in pictures {
        let bytes = encoded(&picture, ImageFormat::Png);
        for to in [(1, 1), (40, 30), (64, 96), (130, 97), (131, 3)] {
            let channels = picture.color().channel_count();
            let rows = shrink_rows(|| PngRows::open(&bytes), channels, (131, 97), to).unwrap();
            assert_eq!(rows, shrink(whole(&bytes), to).unwrap(), "{:?} to {to:?}", picture.color());
        }
    }
}

#[test]
fn rows_of_a_jpeg_are_those_of_the_other_decoder() {
    let smooth =
        RgbImage::from_fn(203, 101, |x, y| Rgb([byte(x), byte((x + y) / 2), byte(255 - y * 2)]));
    let all = [
        (SamplingFactor::F_1_1, 2),
        (SamplingFactor::F_2_1, 8),
        (SamplingFactor::F_1_2, 8),
        (SamplingFactor::F_2_2, 8),
    ];
    let mut files: Vec<(Vec<u8>, i16)> = Vec::new();
    for (sampling, most) in all {
        files.push((jpeg(&smooth, sampling, |_| {}), most));
        files.push((jpeg(&smooth, sampling, |encoder| encoder.set_restart_interval(3)), most));
    }
    files.push((encoded(&DynamicImage::from(smooth).to_luma8().into(), ImageFormat::Jpeg), 2));
    for (bytes, most) in files {
        let expected = whole(&bytes);
        let mut rows = JpegRows::open(&bytes).unwrap();
        assert_eq!(rows.size(), expected.size);
        let stride = 203 * usize::from(rows.channels());
        let mut row = vec![0; stride];
        for expected in expected.bytes.chunks(stride) {
            rows.next(&mut row).unwrap();
            let far = row.iter().zip(expected).map(|(a, b)| (i16::from(*a) - i16::from(*b)).abs());
            assert!(far.max().unwrap() <= most);
        }
        assert!(rows.finish().is_ok());
    }
}

#[test]
fn captures_of_pages_and_of_three_screens_are_scaled() {
    let (tall, wide) = (drawn(1600, 18_000), drawn(11_520, 2160));
    for (picture, max_px, size) in [(&tall, 1024, (91, 1024)), (&wide, 2000, (2000, 375))] {
        let opaque: DynamicImage = picture.to_rgba8().into();
        let rgb = picture.to_rgb8();
        for bytes in [
            encoded(&opaque, ImageFormat::Png),
            encoded(picture, ImageFormat::Png),
            jpeg(&rgb, SamplingFactor::F_2_2, |_| {}),
        ] {
            let made = made_within(&bytes, Bounds::px(Some(max_px)));
            assert_eq!((made.size, shown(&made).to_rgb8().dimensions()), (size, size));
        }
    }
    // Without a bound it is as large as fits.
    let (width, height) = made_within(&encoded(&tall, ImageFormat::Png), Bounds::default()).size;
    assert!((9_000_000..=11_200_000).contains(&(width * height)), "{width} x {height}");
}

#[test]
fn a_photograph_of_48_megapixels_is_scaled() {
    let picture = RgbImage::from_fn(8064, 6048, |x, y| {
        Rgb(if x < 4032 { [250, 10, 10] } else { [byte(x / 64), byte(y / 32), 90] })
    });
    // A phone's picture has a small one in its Exif data, whose markers are not its own, and is to be turned.
    let small = jpeg(&drawn(160, 120).to_rgb8(), SamplingFactor::F_2_2, |_| {});
    let mut exif = super::metadata::exif(6);
    exif.extend(small);
    let with_exif = |encoder: &mut Encoder<&mut Vec<u8>>| {
        encoder.add_app_segment(1, [b"Exif\0\0", exif.as_slice()].concat()).unwrap();
    };
    let bytes = jpeg(&picture, SamplingFactor::F_2_2, with_exif);
    let made = made_within(&bytes, Bounds::px(Some(1000)));
    assert_eq!(made.size, (750, 1000));
    let shown = shown(&made).to_rgb8();
    let [red, green, _] = shown.get_pixel(375, 100).0;
    assert!(red > 240 && green < 20, "the left half is on top");
}

#[test]
fn a_large_picture_that_is_cut_shows_nothing() {
    let picture = drawn(9000, 2400);
    let files = [
        encoded(&picture, ImageFormat::Png),
        encoded(&picture.to_rgba8().into(), ImageFormat::Png),
        jpeg(&picture.to_rgb8(), SamplingFactor::F_2_2, |_| {}),
    ];
    for bytes in files {
        for length in [bytes.len() / 3, bytes.len() * 9 / 10, bytes.len() - 60] {
            assert_eq!(make(&bytes[..length], Bounds::px(Some(64))), Err(Undecodable::Damaged));
            assert_eq!(check(&bytes[..length]), Err(Undecodable::Damaged));
        }
        assert_eq!(check(&bytes), Ok(()));
    }
}

#[test]
fn what_has_no_rows_or_too_many_stays_too_large() {
    let too_large = Err(Undecodable::TooLarge { width: 11_520, height: 2160 });
    let mut png = encoded(&drawn(8, 8), ImageFormat::Png);
    png.splice(16..24, [11_520_u32.to_be_bytes(), 2160_u32.to_be_bytes()].concat());
    // Interlaced: its rows do not come in order.
    png[28] = 1;
    let sum = crc32fast::hash(&png[12..29]).to_be_bytes();
    png.splice(29..33, sum);
    assert_eq!(make(&png, Bounds::px(Some(9))), too_large);
    let wide = drawn(11_520, 2160).to_rgb8();
    let progressive = jpeg(&wide, SamplingFactor::F_2_2, |encoder| encoder.set_progressive(true));
    assert_eq!(make(&progressive, Bounds::px(Some(9))), too_large);
    png.splice(16..24, [60_000_u32.to_be_bytes(), 2000_u32.to_be_bytes()].concat());
    png[28] = 0;
    let sum = crc32fast::hash(&png[12..29]).to_be_bytes();
    png.splice(29..33, sum);
    let too_large = Err(Undecodable::TooLarge { width: 60_000, height: 2000 });
    assert_eq!(make(&png, Bounds::px(Some(9))), too_large);
}

#[test]
fn a_cut_jpeg_is_damaged_unless_it_lacks_its_end_alone() {
    for is_progressive in [true, false] {
        let picture = drawn(90, 70).to_rgb8();
        let bytes = jpeg(&picture, SamplingFactor::F_2_2, |encoder| {
            encoder.set_progressive(is_progressive);
        });
        for length in [bytes.len() / 2, bytes.len() * 3 / 4, bytes.len() - 20] {
            let damaged = Err(Undecodable::Damaged);
            assert_eq!(make(&bytes[..length], Bounds::default()), damaged, "{length}");
        }
    }
    let bytes = jpeg(&drawn(90, 70).to_rgb8(), SamplingFactor::F_2_2, |_| {});
    let without = make(&bytes[..bytes.len() - 2], Bounds::default());
    assert_eq!(without, make(&bytes, Bounds::default()));
    let padded = [&bytes[..bytes.len() / 2], &[0; 4000]].concat();
    assert_eq!(make(&padded, Bounds::default()), Err(Undecodable::Damaged));
}
