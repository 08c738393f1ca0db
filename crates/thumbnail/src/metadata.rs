//! Metadata of a picture: its orientation and its colour profile.

use image::metadata::Orientation;
use image::{DynamicImage, ImageFormat};

use super::{jpeg, webp};

/// The most bytes of a colour profile that is carried along. That of a screen or a camera has a few thousand; those
/// with tables of a printer's colours have more than the picture that they are for.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;

/// The bytes before the first chunk of a PNG, and those of a chunk beside its body: a length, a name and a checksum.
const PNG_SIGNATURE: usize = 8;
const PNG_LENGTH: usize = 4;
const PNG_CHECKSUM: usize = 4;

/// The prefix of Exif data in a JPEG, and in some WebP.
const EXIF: &[u8] = b"Exif\0\0";
/// The second byte of the marker of a JPEG's segment with Exif data.
const APP1: u8 = 0xe1;

/// The bytes of a profile's header, with the offsets of its colour space and of its signature.
const PROFILE_HEAD: usize = 128;
const PROFILE_SPACE: usize = 16;
const PROFILE_SIGNATURE: usize = 36;

/// Returns how the picture is to be turned before it is shown. Only the headers of the file's parts are read.
pub(super) fn orientation(kind: ImageFormat, bytes: &[u8]) -> Orientation {
    exif(kind, bytes).and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms)
}

/// Whether the turn makes rows of the columns.
pub(super) fn swaps_sides(orientation: Orientation) -> bool {
    match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => true,
        Orientation::NoTransforms
        | Orientation::Rotate180
        | Orientation::FlipHorizontal
        | Orientation::FlipVertical => false,
    }
}

fn exif(kind: ImageFormat, bytes: &[u8]) -> Option<&[u8]> {
    if kind == ImageFormat::Jpeg {
        // The last of several counts.
        let segments = jpeg::segments(bytes).filter(|segment| segment.marker == APP1);
        segments.filter_map(|segment| segment.body.strip_prefix(EXIF)).last()
    } else if kind == ImageFormat::Png {
        png_chunks(bytes).find(|(name, _)| *name == b"eXIf").map(|(_, body)| body)
    } else if kind == ImageFormat::WebP {
        let body = webp::body(bytes, b"EXIF")?;
        Some(body.strip_prefix(EXIF).unwrap_or(body))
    } else {
        None
    }
}

/// Iterates over the chunks of a PNG with their names.
fn png_chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = bytes.get(PNG_SIGNATURE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<PNG_LENGTH>()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        let (body, after) =
            after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        rest = after.get(PNG_CHECKSUM..).unwrap_or_default();
        Some((name, body))
    })
}

/// Returns the profile if it is one of the picture's own colour space, and short enough. The profile of a CMYK picture
/// does not fit the RGB that was made of it.
pub(super) fn fitting<'a>(profile: Option<&'a [u8]>, picture: &DynamicImage) -> Option<&'a [u8]> {
    let profile = profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX)?;
    let space = if picture.color().has_color() { b"RGB " } else { b"GRAY" };
    let head = profile.first_chunk::<PROFILE_HEAD>()?;
    let is_sound = head.get(PROFILE_SIGNATURE..)?.starts_with(b"acsp")
        && head.get(PROFILE_SPACE..)?.starts_with(space);
    is_sound.then_some(profile)
}
