//! Files that end before their picture does, found without decoding: by the marks that a whole file has.

use image::ImageFormat;

use super::{image_type::kind, jpeg};

/// The bytes of a PNG before its first chunk.
const PNG_HEAD: usize = 8;
/// The bytes of a PNG chunk besides its content: length, name, checksum.
const PNG_CHUNK_FRAME: usize = 12;
/// The last chunk of a PNG.
const PNG_END: &[u8] = b"IEND";
/// The bytes of a RIFF file that its length does not count.
const RIFF_HEAD: usize = 8;

/// Whether a PNG, JPEG or WebP lacks its end, as an upload that broke off does. Another file is taken for whole.
#[must_use]
pub fn is_cut(bytes: &[u8]) -> bool {
    match kind(bytes) {
        Some(ImageFormat::Png) => !has_png_end(bytes),
        Some(ImageFormat::Jpeg) => !jpeg::has_end(bytes),
        Some(ImageFormat::WebP) => !is_whole_riff(bytes),
        _ => false,
    }
}

fn has_png_end(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(PNG_HEAD..).unwrap_or_default();
    while let [a, b, c, d, name @ ..] = rest {
        if name.starts_with(PNG_END) {
            return true;
        }
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
        rest = rest.get(length.saturating_add(PNG_CHUNK_FRAME)..).unwrap_or_default();
    }
    false
}

fn is_whole_riff(bytes: &[u8]) -> bool {
    let Some([a, b, c, d]) = bytes.get(4..RIFF_HEAD) else { return false };
    let length = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
    bytes.len() - RIFF_HEAD >= length
}
