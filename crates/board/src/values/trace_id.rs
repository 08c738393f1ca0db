//! Ids of traces (W3C Trace Context).

use std::fmt;
use std::num::NonZeroU128;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The length of an id in hexadecimal digits.
const DIGITS: usize = 32;

/// The id of the trace that a write belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

/// The text is not a trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 32 lower-case hexadecimal digits, not all of them 0")]
pub struct InvalidTraceId;

impl FromStr for TraceId {
    type Err = InvalidTraceId;

    fn from_str(text: &str) -> Result<Self, InvalidTraceId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != DIGITS || !text.bytes().all(is_digit) {
            return Err(InvalidTraceId);
        }
        let id = u128::from_str_radix(text, 16).ok().and_then(NonZeroU128::new);
        id.map(Self).ok_or(InvalidTraceId)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for TraceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_32_lower_case_digits() {
        let text = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(text.parse::<TraceId>().unwrap().to_string(), text);
        let upper = text.to_uppercase();
        for text in
            ["", "0", &text[1..], &"0".repeat(32), &upper, "+af7651916cd43dd8448eb211c80319c"]
        {
            assert_eq!(text.parse::<TraceId>(), Err(InvalidTraceId));
        }
    }
}
