//! Byte sizes with a unit, such as `512MiB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written as `512MiB`, `1GiB` or without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// The text is not a byte size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size is a whole number, optionally with KiB, MiB, GiB or TiB, such as 512MiB")]
pub struct InvalidSize;

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let (digits, shift) = UNITS
            .iter()
            .find_map(|(unit, shift)| Some((strip_unit(text, unit)?, *shift)))
            .unwrap_or((text, 0));
        let digits = digits.trim_end();
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(InvalidSize);
        }
        let count: u64 = digits.parse().map_err(|_| InvalidSize)?;
        count.checked_mul(1 << shift).map(Self).ok_or(InvalidSize)
    }
}

fn strip_unit<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    let (digits, suffix) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
    suffix.eq_ignore_ascii_case(unit).then_some(digits)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in UNITS {
            let size = 1 << shift;
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("7B", 7),
            ("4KiB", 4096),
            ("512mib", 512 << 20),
            ("1 GiB", 1 << 30),
            ("2TiB", 2 << 40),
        ] {
            let size: ByteSize = text.parse().expect(text);
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse::<ByteSize>().expect("a size"), size);
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "GiB", "-1", "+1", "1.5GiB", "1GB", "1é", "99999999TiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
