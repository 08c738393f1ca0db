//! Images of screenshots, stored as bytes apart from their items.
//!
//! The data URL is cut out of the item and rebuilt exactly.

mod check;
mod data_url;
mod limits;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blackboard_thumbnail::recognise;
use serde::{Deserialize, Serialize};

use crate::json;
use crate::{Digest, InvalidItem, Item};

pub use check::ImageWarning;
pub use data_url::{DataUrl, forgiving_base64};
pub use limits::{ANTHROPIC, COMMON_IMAGE_TYPES, GOOGLE, ImageLimits, OPENAI};

/// The largest image, in bytes.
pub const IMAGE_BYTES_MAX: usize = 20 << 20;

/// The screenshot's member that contains the image.
pub const IMAGE_MEMBER: &str = "image_str";

/// An image that was cut out of an item's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The offset of the data URL in the item's text, in bytes.
    pub at: usize,
    /// The data URL up to and including its comma.
    pub head: String,
    /// The SHA-256 of the image's bytes.
    pub sha256: Digest,
    /// The size of the image in bytes.
    pub bytes: u64,
    /// The width and height in pixels, if the image has a format that the server recognises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
}

impl Image {
    /// Returns the start of a data URL for an image of this media type.
    #[must_use]
    pub fn head_of(media_type: &str) -> String {
        format!("data:{media_type};base64,")
    }

    /// Returns the image with another start of its data URL. With an empty start, the data URL is the base64 text.
    #[must_use]
    pub fn with_head(&self, head: String) -> Self {
        Self { head, ..self.clone() }
    }

    /// Returns the media type in the data URL.
    #[must_use]
    pub fn media_type(&self) -> &str {
        let head = self.head.strip_prefix("data:").unwrap_or(&self.head);
        head.split([';', ',']).next().unwrap_or_default()
    }

    /// Returns true if `head` starts a base64 data URL. Such a head needs no escape in a JSON string.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        is_base64_head(&self.head)
    }

    /// Returns the length of the data URL in bytes.
    #[must_use]
    pub fn data_url_bytes(&self) -> u64 {
        self.head.len() as u64 + self.bytes.div_ceil(3) * 4
    }

    /// Rebuilds the data URL from the image's bytes.
    #[must_use]
    pub fn data_url(&self, bytes: &[u8]) -> String {
        let mut url = String::with_capacity(self.head.len() + bytes.len().div_ceil(3) * 4);
        url.push_str(&self.head);
        STANDARD.encode_string(bytes, &mut url);
        url
    }
}

/// A posted screenshot: the item, and the image bytes to store before the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screenshot {
    /// The item, without its image.
    pub item: Item,
    /// The bytes of the image, if the image is stored apart from the item.
    pub bytes: Option<Vec<u8>>,
    /// The reason why a model is not shown the string in `image_str`, or not as it is.
    pub warning: Option<ImageWarning>,
}

impl Screenshot {
    /// Parses a screenshot from checked JSON: an object, or a string as `{"text": …}`.
    ///
    /// Cuts out an `image_str` that is a canonical base64 data URL. Any other value stays in the item, as in the
    /// original. So does a data URL that cannot be rebuilt exactly from its bytes; [`DataUrl::of`] decodes it.
    ///
    /// # Errors
    ///
    /// [`InvalidItem`] as for any item, or if the image is too large.
    pub fn from_json(text: &str) -> Result<Self, InvalidItem> {
        let text = json::one_line(text);
        let Some(found) = find(&text) else {
            let warning = image_text(&text).and_then(|url| ImageWarning::of_text(&url));
            return Ok(Self { item: Item::from_json(&text)?, bytes: None, warning });
        };
        let bytes_len = found.bytes.len();
        if bytes_len > IMAGE_BYTES_MAX {
            return Err(InvalidItem::ImageTooLarge { bytes: bytes_len, max: IMAGE_BYTES_MAX });
        }
        let cut = format!("{}{}", found.before, found.after);
        let image = Image::new(found.before.len(), found.head.to_owned(), &found.bytes);
        let warning = ImageWarning::of_bytes(image.media_type(), &found.bytes);
        let item = Item::from_object(&cut, Some(image))?;
        Ok(Self { item, bytes: Some(found.bytes), warning })
    }

    /// Builds the item of an image posted as bytes: `{"metadata":…,"image_path":…,"image_str":"data:…"}`, in this
    /// order.
    ///
    /// # Errors
    ///
    /// [`InvalidItem`] if the metadata exceeds a limit, or if the image is too large.
    pub fn from_bytes(
        media_type: &str,
        bytes: Vec<u8>,
        metadata: Option<&str>,
        image_path: &str,
    ) -> Result<Self, InvalidItem> {
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(InvalidItem::ImageTooLarge { bytes: bytes.len(), max: IMAGE_BYTES_MAX });
        }
        let metadata = json::one_line(metadata.unwrap_or("null"));
        let mut text = format!("{{\"metadata\":{metadata},\"image_path\":");
        json::quote(image_path, &mut text);
        text.push_str(",\"image_str\":\"");
        let image = Image::new(text.len(), Image::head_of(media_type), &bytes);
        let warning = ImageWarning::of_bytes(media_type, &bytes);
        text.push_str("\"}");
        let item = Item::from_object(&text, Some(image))?;
        Ok(Self { item, bytes: Some(bytes), warning })
    }
}

impl Image {
    fn new(at: usize, head: String, bytes: &[u8]) -> Self {
        Self {
            at,
            head,
            sha256: Digest::of(bytes),
            bytes: bytes.len() as u64,
            size: recognise(bytes).map(|(_, size)| size),
        }
    }
}

struct EmbeddedImage<'a> {
    before: &'a str,
    head: &'a str,
    after: &'a str,
    bytes: Vec<u8>,
}

/// Finds the last `image_str` of an object, if it is a data URL that can be rebuilt exactly from its bytes.
fn find(text: &str) -> Option<EmbeddedImage<'_>> {
    let (at, url) = image_str(text)?;
    let comma = url.find(',')?;
    let (head, data) = url.split_at_checked(comma + 1)?;
    if !is_base64_head(head) || data.is_empty() {
        return None;
    }
    // The standard engine decodes only canonical base64, so that encoding the bytes gives the same text.
    let bytes = STANDARD.decode(data).ok()?;
    let (before, rest) = text.split_at_checked(at)?;
    let after = rest.get(url.len()..)?;
    Some(EmbeddedImage { before, head, after, bytes })
}

/// Finds the last `image_str` of an object, if it is a string, with its offset. Escapes stay.
fn image_str(text: &str) -> Option<(usize, &str)> {
    let member = image_member(text)?;
    let url = member.value.strip_prefix('"')?.strip_suffix('"')?;
    Some((member.value_at + 1, url))
}

/// Returns the last `image_str` of an object without its escapes, if it is a string.
pub(super) fn image_text(text: &str) -> Option<Cow<'_, str>> {
    let member = image_member(text)?;
    member.value.starts_with('"').then(|| json::decode(member.value))
}

fn image_member(text: &str) -> Option<json::Member<'_>> {
    if json::kind(text) != json::Kind::Object {
        return None;
    }
    json::members(text).filter(|member| json::decode(member.name) == IMAGE_MEMBER).last()
}

/// Returns true for `data:`, a media type, parameters, and `;base64,`.
fn is_base64_head(head: &str) -> bool {
    let Some(inner) = head.strip_prefix("data:").and_then(|h| h.strip_suffix(";base64,")) else {
        return false;
    };
    let token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let mut parts = inner.split(';');
    let media_type = parts.next().and_then(|media_type| media_type.split_once('/'));
    media_type.is_some_and(|(kind, subtype)| token(kind) && token(subtype))
        && parts.all(|p| p.split_once('=').is_some_and(|(name, value)| token(name) && token(value)))
}
