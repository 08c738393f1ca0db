//! Small valid images, made byte by byte, and their data URLs.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

pub(crate) const GIF: &str = "R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7";
pub(crate) const WEBP: &str = "UklGRh4AAABXRUJQVlA4TBEAAAAvAYAAAAdQjyJXof+BiOh/AAA=";
pub(crate) const BMP: &str = "Qk1OAAAAAAAAADYAAAAoAAAAAgAAAAMAAAABABgAAAAAABgAAADEDgAAxA4AAAAAAAAAAAAACh7ICh7IAAAKHsgKHsgAAAoeyAoeyAAA";
pub(crate) const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////2wBDAf//////////////////////////////////////////////////////////////////////////////////////wAARCAADAAIDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAAAQL/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCQAt//2Q==";

pub(crate) fn decoded(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).expect("base64")
}

pub(crate) fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}

/// A grey PNG of that size; another shade makes other bytes.
pub(crate) fn png(width: u32, height: u32, shade: u8) -> Vec<u8> {
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..height {
        rows.write_all(&[0]).unwrap();
        rows.write_all(&vec![shade; width as usize]).unwrap();
    }
    png_of(width, height, &rows.finish().unwrap())
}

/// A PNG that does not compress: about `width * height` bytes of noise.
pub(crate) fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::none());
    for _ in 0..height {
        rows.write_all(&[0]).unwrap();
        for _ in 0..width {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            rows.write_all(&state.to_le_bytes()[..1]).unwrap();
        }
    }
    png_of(width, height, &rows.finish().unwrap())
}

/// A text of 770 kB that hardly gets shorter than half by compression.
pub(crate) fn noise_text() -> String {
    noise(620, 620).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn png_of(width: u32, height: u32, rows: &[u8]) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, body) in [(b"IHDR", header.as_slice()), (b"IDAT", rows), (b"IEND", &[])] {
        let length = u32::try_from(body.len()).expect("a small image");
        let chunk = [kind.as_slice(), body].concat();
        bytes.extend(length.to_be_bytes());
        bytes.extend(&chunk);
        bytes.extend(crc32fast::hash(&chunk).to_be_bytes());
    }
    bytes
}
