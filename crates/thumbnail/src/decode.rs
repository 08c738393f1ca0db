//! Decoding within bounds: the decoder has a memory limit, and the header is checked before any pixel is decoded.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::kind::kind;
use super::need::{DECODED_BYTES_MAX, PNG_BESIDES_MAX, SIDE_MAX, need};
use super::{Probe, Undecodable};

/// Decoded pixels, in the decoder's format.
pub(super) struct Decoded {
    /// Width and height.
    pub(super) size: (u32, u32),
    /// The format of a pixel.
    pub(super) color: ColorType,
    /// Row after row.
    pub(super) bytes: Vec<u8>,
    /// The rotation to apply before showing it.
    pub(super) orientation: Orientation,
}

/// Reads the header.
pub(super) fn probe(bytes: &[u8]) -> Result<Probe, Undecodable> {
    open(bytes).map(|(_, probe)| probe)
}

/// Decodes the image if its header is within the limits.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Undecodable> {
    let (mut decoder, probe) = open(bytes)?;
    // Other formats rarely have an orientation, and finding it would cost their decoders too much.
    let orientation = match kind(bytes) {
        Some(ImageFormat::Jpeg) => decoder.orientation().unwrap_or(Orientation::NoTransforms),
        Some(_) | None => Orientation::NoTransforms,
    };
    let color = decoder.color_type();
    let length = usize::try_from(decoder.total_bytes()).map_err(|_| Undecodable::Damaged)?;
    let mut pixels = vec![0; length];
    decoder.read_image(&mut pixels).map_err(|_| Undecodable::Damaged)?;
    Ok(Decoded { size: probe.size, color, bytes: pixels, orientation })
}

fn open(bytes: &[u8]) -> Result<(impl ImageDecoder + '_, Probe), Undecodable> {
    let kind = kind(bytes).ok_or(Undecodable::Unknown)?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), kind);
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(SIDE_MAX), Some(SIDE_MAX));
    // The PNG decoder applies its limit to the memory besides the pixels.
    limits.max_alloc =
        Some(if kind == ImageFormat::Png { PNG_BESIDES_MAX } else { DECODED_BYTES_MAX });
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|_| Undecodable::Damaged)?;
    let size = decoder.dimensions();
    if size.0 == 0 || size.1 == 0 {
        return Err(Undecodable::Damaged);
    }
    let need = need(kind, bytes, size, decoder.total_bytes())?;
    if kind == ImageFormat::Gif {
        // A frame may claim to be larger than the screen; its buffer is allocated separately.
        limits.max_alloc = Some(decoder.total_bytes());
        decoder.set_limits(limits).map_err(|_| Undecodable::Damaged)?;
    }
    Ok((decoder, Probe { size, need }))
}
