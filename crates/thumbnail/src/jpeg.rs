//! Memory of a JPEG besides its pixels: a progressive one keeps coefficients until its last scan.

/// A coefficient's bytes.
const COEFFICIENT_BYTES: u64 = 2;
/// The number of components counted. Most images have three, and the coefficients of a rare fourth are not counted.
const COMPONENTS: u64 = 3;
/// A block has 8 x 8 pixels, and a unit is up to four blocks wide and high.
const UNIT_SIDE: u64 = 32;

/// The second byte of the marker of a progressive frame.
const PROGRESSIVE: u8 = 0xc2;
/// The second byte of the marker of a scan.
const SCAN: u8 = 0xda;

/// Returns the bytes of the coefficients that the decoder keeps. A marker in an embedded thumbnail can only make the
/// estimate larger.
pub(super) fn coefficient_bytes(bytes: &[u8], size: (u32, u32)) -> u64 {
    let (mut scans, mut is_progressive) = (0, false);
    for pair in bytes.windows(2) {
        match pair {
            [0xff, PROGRESSIVE] => is_progressive = true,
            [0xff, SCAN] => scans += 1,
            _ => {}
        }
    }
    if scans < 2 && !is_progressive {
        return 0;
    }
    let padded = |side: u32| u64::from(side).next_multiple_of(UNIT_SIDE);
    padded(size.0) * padded(size.1) * COMPONENTS * COEFFICIENT_BYTES
}
