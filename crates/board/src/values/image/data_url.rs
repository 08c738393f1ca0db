//! Data URLs as browsers read them: WHATWG's forgiving base64, and the URL-safe alphabet too.
//!
//! The canonical ones are cut out of their items. The others stay the strings that they were, and their bytes are
//! decoded when an image is shown.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;

use super::image_text;
use crate::Item;

const SCHEME: &str = "data:";
const BASE64: &str = "base64";

/// Bits beyond the last byte are ignored, and the padding is removed before.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// What a base64 data URL stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataUrl {
    /// Its media type in lower case, without parameters. The bytes may be of another one.
    pub media_type: String,
    /// Its bytes, at least one.
    pub bytes: Vec<u8>,
}

impl DataUrl {
    /// Reads a data URL. `None` if it is none, is not in base64, or is empty.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (media_type, data) = parts(url)?;
        let data: Cow<'_, [u8]> = percent_decode_str(data).into();
        let bytes = forgiving_base64(&data).filter(|bytes| !bytes.is_empty())?;
        Some(Self { media_type: media_type.to_ascii_lowercase(), bytes })
    }

    /// Reads the data URL that stayed in the text of a screenshot. `None` if its image is stored apart.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        Self::parse(&text_of(item)?)
    }

    /// Whether such a URL stands in a screenshot. Its data is not decoded.
    #[must_use]
    pub fn stands_in(item: &Item) -> bool {
        item.image().is_none() && Self::stands_in_text(item.text())
    }

    /// Whether such a URL stands in the text of a screenshot's item.
    pub(crate) fn stands_in_text(text: &str) -> bool {
        image_text(text).is_some_and(|url| parts(&url).is_some())
    }
}

/// Returns the image's text if no image is stored apart.
fn text_of(item: &Item) -> Option<Cow<'_, str>> {
    if item.image().is_some() { None } else { image_text(item.text()) }
}

/// Returns the media type and the data of a URL in base64.
fn parts(url: &str) -> Option<(&str, &str)> {
    let url = url.trim_matches(|c: char| c <= ' ');
    let (scheme, rest) = url.split_at_checked(SCHEME.len())?;
    let (head, data) = rest.split_once(',')?;
    let (media_type, encoding) = head.trim_ascii().rsplit_once(';')?;
    let is_base64 = encoding.trim_start_matches(' ').eq_ignore_ascii_case(BASE64);
    let is_data_url = scheme.eq_ignore_ascii_case(SCHEME) && is_base64;
    let media_type = media_type.split(';').next().unwrap_or_default().trim_ascii();
    is_data_url.then_some((media_type, data))
}

/// Decodes base64 with white space, without padding, or of the URL-safe alphabet. `None` for anything else.
#[must_use]
pub fn forgiving_base64(data: &[u8]) -> Option<Vec<u8>> {
    // Most data is canonical, and may have many megabytes.
    if let Ok(bytes) = STANDARD.decode(data) {
        return Some(bytes);
    }
    let standard = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    };
    let mut data: Vec<u8> =
        data.iter().filter(|byte| !byte.is_ascii_whitespace()).map(standard).collect();
    if data.len().is_multiple_of(4) {
        let length =
            data.len() - data.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
        data.truncate(length);
    }
    FORGIVING.decode(data).ok()
}
