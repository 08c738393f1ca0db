//! Memory of a JPEG besides its pixels: a progressive one keeps coefficients until its last scan.

/// A coefficient's bytes.
const COEFFICIENT_BYTES: u64 = 2;
/// Most have that many components; one with four is rare, and its coefficients are counted too.
const COMPONENTS: u64 = 3;
/// Blocks are of 8 x 8, and up to four of them side by side make a unit.
const UNIT_SIDE: u64 = 32;

/// The second byte of the marker of a progressive frame.
const PROGRESSIVE: u8 = 0xc2;
/// The second byte of the marker of a scan.
const SCAN: u8 = 0xda;

/// The bytes of the coefficients that the decoder keeps. A marker in an embedded thumbnail makes the estimate too
/// large, never too small.
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
