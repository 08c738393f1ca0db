//! Decoding within bounds: the decoder has a memory limit, and the header is checked before any pixel is decoded.
//!
//! A picture that fits the limit is decoded whole. Of a larger one the rows are added up while they are decoded, if its
//! kind allows that.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::bounds::Bounds;
use super::image_type::kind;
use super::jpeg::{self, JpegRows};
use super::need::{self, DECODED_BYTES_MAX, PNG_BESIDES_MAX, ROWS_BYTES_MAX, SIDE_MAX};
use super::png::{self, PngRows};
use super::shrink::{shrink, shrink_rows};
use super::{Probe, Undecodable, metadata};

/// Decoded pixels, in the decoder's format.
pub(super) struct Decoded {
    /// Width and height.
    pub(super) size: (u32, u32),
    /// The format of a pixel.
    pub(super) color: ColorType,
    /// Row after row.
    pub(super) bytes: Vec<u8>,
}

/// A picture as a person would see it, scaled.
pub(super) struct Seen {
    pub(super) picture: DynamicImage,
    /// The profile of its colours.
    pub(super) profile: Option<Vec<u8>>,
}

/// How a picture is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    /// The rows of a PNG or of a JPEG.
    PngRows,
    JpegRows,
}

/// The plan of decoding, made from the header.
struct Plan {
    kind: ImageFormat,
    /// Width and height in the header, and of the result.
    from: (u32, u32),
    to: (u32, u32),
    way: Way,
    need: u64,
    orientation: Orientation,
}

/// Reads the header.
pub(super) fn probe(bytes: &[u8], bounds: Bounds) -> Result<Probe, Undecodable> {
    let (_, plan) = open(bytes, bounds)?;
    let (width, height) = plan.from;
    let size =
        if metadata::swaps_sides(plan.orientation) { (height, width) } else { (width, height) };
    Ok(Probe { size, need: plan.need, is_turned: plan.orientation != Orientation::NoTransforms })
}

/// Decodes the image if its header is within the limits.
pub(super) fn decode(bytes: &[u8], bounds: Bounds) -> Result<Seen, Undecodable> {
    let (mut decoder, plan) = open(bytes, bounds)?;
    if plan.kind == ImageFormat::Jpeg && jpeg::is_cut(bytes, plan.from) {
        return Err(Undecodable::Damaged);
    }
    let profile = decoder.icc_profile().ok().flatten();
    let channels = decoder.color_type().channel_count();
    let mut picture = match plan.way {
        Way::Whole => shrink(whole(decoder, &plan)?, plan.to).ok_or(Undecodable::Damaged)?,
        Way::PngRows => {
            drop(decoder);
            shrink_rows(|| PngRows::open(bytes), channels, plan.from, plan.to)?
        }
        Way::JpegRows => {
            drop(decoder);
            let open = || JpegRows::open(bytes).ok_or(Undecodable::Damaged);
            shrink_rows(open, channels, plan.from, plan.to)?
        }
    };
    picture.apply_orientation(plan.orientation);
    let profile = metadata::fitting(profile.as_deref(), &picture).map(<[u8]>::to_vec);
    Ok(Seen { picture, profile })
}

fn whole(decoder: impl ImageDecoder, plan: &Plan) -> Result<Decoded, Undecodable> {
    let color = decoder.color_type();
    let length = usize::try_from(decoder.total_bytes()).map_err(|_| Undecodable::Damaged)?;
    let mut pixels = vec![0; length];
    decoder.read_image(&mut pixels).map_err(|_| Undecodable::Damaged)?;
    if plan.kind == ImageFormat::Bmp && color == ColorType::Rgba8 {
        show_invisible(&mut pixels);
    }
    Ok(Decoded { size: plan.from, color, bytes: pixels })
}

/// Makes a picture opaque whose alpha channel is zero everywhere, as browsers do with a BMP: programs that name the
/// channel often leave it empty.
fn show_invisible(pixels: &mut [u8]) {
    let pixels = pixels.as_chunks_mut::<4>().0;
    if pixels.iter().all(|[.., alpha]| *alpha == 0) {
        pixels.iter_mut().for_each(|[.., alpha]| *alpha = u8::MAX);
    }
}

fn open(bytes: &[u8], bounds: Bounds) -> Result<(impl ImageDecoder + '_, Plan), Undecodable> {
    let kind = kind(bytes).ok_or(Undecodable::Unknown)?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), kind);
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(SIDE_MAX), Some(SIDE_MAX));
    // The PNG decoder applies its limit to the memory besides the pixels.
    limits.max_alloc =
        Some(if kind == ImageFormat::Png { PNG_BESIDES_MAX } else { DECODED_BYTES_MAX });
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|_| Undecodable::Damaged)?;
    let from = decoder.dimensions();
    if from.0 == 0 || from.1 == 0 {
        return Err(Undecodable::Damaged);
    }
    let orientation = metadata::orientation(kind, bytes);
    let plan = match need::whole(kind, bytes, from, decoder.total_bytes()) {
        Ok(need) => Plan { kind, from, to: bounds.fit(from), way: Way::Whole, need, orientation },
        Err(Undecodable::TooLarge { width, height }) => {
            let channels = decoder.color_type().channel_count();
            let rows = by_rows(kind, bytes, from, channels, bounds);
            let (way, to, need) = rows.ok_or(Undecodable::TooLarge { width, height })?;
            Plan { kind, from, to, way, need, orientation }
        }
        Err(undecodable) => return Err(undecodable),
    };
    if kind == ImageFormat::Gif {
        // A frame may claim to be larger than the screen; its buffer is allocated separately.
        limits.max_alloc = Some(decoder.total_bytes());
        decoder.set_limits(limits).map_err(|_| Undecodable::Damaged)?;
    }
    Ok((decoder, plan))
}

/// Returns how the rows are decoded, the size of the result, and the bytes that it takes. `None` if the rows of this
/// picture cannot be decoded one after the other, or are too many.
fn by_rows(
    kind: ImageFormat,
    bytes: &[u8],
    from: (u32, u32),
    channels: u8,
    bounds: Bounds,
) -> Option<(Way, (u32, u32), u64)> {
    let way = if kind == ImageFormat::Png && png::is_sequential(bytes) {
        Way::PngRows
    } else if kind == ImageFormat::Jpeg {
        let rows = JpegRows::open(bytes)?;
        // Two decoders that read different things in one header do not both have the picture.
        if (rows.size(), rows.channels()) != (from, channels) {
            return None;
        }
        Way::JpegRows
    } else {
        return None;
    };
    let to = bounds.within(ROWS_BYTES_MAX / u64::from(channels)).fit(from);
    Some((way, to, need::by_rows(kind, bytes, from, to, channels)?))
}
