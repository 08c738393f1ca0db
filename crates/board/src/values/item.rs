//! Items: JSON objects, kept as sent.
//!
//! Key order, number text, escapes and unknown fields are preserved. Line breaks between tokens are removed, so that
//! an item is one line. A stored image is cut out of the text and put back exactly.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memchr2;
use serde_json::value::RawValue;

use super::image::{DataUrl, Image};
use crate::json;
use crate::json::{Document, Kind, Member, Reason, Unsupported};
use crate::{Code, Cost, size};

/// The maximum size of an item: the bytes of its text, without a stored image.
pub const ITEM_BYTES_MAX: usize = 1 << 20;

/// The maximum size of a stored item. An answer added to an item may bring it over [`ITEM_BYTES_MAX`].
const STORED_BYTES_MAX: usize = 2 * ITEM_BYTES_MAX;

/// The maximum nesting depth of an item. The item's own object is level 1.
pub const ITEM_DEPTH_MAX: usize = 128;

/// The reason why a JSON value is not an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidItem {
    /// The value is neither an object nor, where a string becomes `{"text": …}`, a string.
    #[error("an item must be a JSON object or a string, not {}", found.with_article())]
    NotAnItem {
        /// The value found.
        found: Kind,
    },
    /// The item contains a value that some clients could not parse, or is nested too deeply.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The item's text is longer than [`ITEM_BYTES_MAX`].
    #[error("the item has {bytes} bytes; the limit is {ITEM_BYTES_MAX}")]
    TooLarge {
        /// The length of the text.
        bytes: usize,
    },
    /// The same, where most of the text is an image that is not cut out of it.
    #[error(
        "the item has {bytes} bytes; the limit is {ITEM_BYTES_MAX}, in which the data URL in \"image_str\" counts as text: only \
         data:TYPE;base64, and base64 without white space, with its padding, is stored as an image"
    )]
    UrlTooLarge {
        /// The length of the text.
        bytes: usize,
    },
    /// The item's image is too large.
    #[error("the image has {bytes} bytes; the limit is {max}")]
    ImageTooLarge {
        /// The size of the image.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

impl InvalidItem {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NotAnItem { .. } => Code::UnsupportedItem,
            Self::Unsupported(Unsupported { reason: Reason::TooDeep { .. }, .. }) => Code::TooDeep,
            Self::Unsupported(_) => Code::UnsupportedValue,
            Self::TooLarge { .. } | Self::UrlTooLarge { .. } | Self::ImageTooLarge { .. } => {
                Code::ItemTooLarge
            }
        }
    }
}

/// A JSON object as text, alone or on a page with others.
#[derive(Clone, Debug)]
pub struct Item {
    page: Arc<Page>,
    /// The place on the page, if there are others.
    start: u32,
    bytes: u32,
}

/// The storage of texts.
#[derive(Debug)]
enum Page {
    /// One item, and the image cut out of it.
    One { text: Box<RawValue>, image: Option<Box<Image>> },
    /// The texts of several items without images, one after another.
    Many(Box<str>),
}

/// The memory of a page besides its texts.
pub(crate) const PAGE_BYTES: usize = size::shared(size_of::<Page>());

impl Item {
    /// Parses an item from checked JSON: an object, or a string as `{"text": …}`.
    ///
    /// # Errors
    ///
    /// [`InvalidItem`] if the value is of another kind, or exceeds a limit.
    pub fn from_json(text: &str) -> Result<Self, InvalidItem> {
        Self::from_document(&Document::of(text))
    }

    /// Parses an item from a document, as [`from_json`](Self::from_json) does. The usual object is only copied.
    ///
    /// # Errors
    ///
    /// As for [`from_json`](Self::from_json).
    pub fn from_document(document: &Document<'_>) -> Result<Self, InvalidItem> {
        let text = document.text();
        match document.kind() {
            Kind::Object
                if text.len() <= ITEM_BYTES_MAX && document.is_supported(ITEM_DEPTH_MAX) =>
            {
                Ok(Self::restore(document.to_line(), None))
            }
            Kind::Object => Self::from_object(&document.one_line(), None),
            Kind::String => Self::from_object(&format!("{{\"text\":{text}}}"), None),
            found @ (Kind::Array | Kind::Number | Kind::Bool | Kind::Null) => {
                Err(InvalidItem::NotAnItem { found })
            }
        }
    }

    /// Builds an item from the text of a JSON object and the image cut out of it.
    pub(crate) fn from_object(text: &str, image: Option<Image>) -> Result<Self, InvalidItem> {
        if text.len() > ITEM_BYTES_MAX {
            let bytes = text.len();
            let is_url = DataUrl::stands_in_text(text);
            let too_large = InvalidItem::TooLarge { bytes };
            return Err(if is_url { InvalidItem::UrlTooLarge { bytes } } else { too_large });
        }
        let document = Document::of(text);
        document.check(ITEM_DEPTH_MAX)?;
        let raw = document.raw();
        let found = json::kind(raw.get());
        if found != Kind::Object {
            return Err(InvalidItem::NotAnItem { found });
        }
        Ok(Self::restore(raw.to_owned(), image))
    }

    /// Restores a stored item.
    pub(crate) fn restore(text: Box<RawValue>, image: Option<Image>) -> Self {
        let page = Page::One { text, image: image.map(Box::new) };
        Self { page: Arc::new(page), start: 0, bytes: 0 }
    }

    /// Returns true if the item is valid as stored: an object on one line, within the limits.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let text = self.text();
        text.len() <= STORED_BYTES_MAX
            && json::kind(text) == Kind::Object
            && memchr2(b'\n', b'\r', text.as_bytes()).is_none()
            && json::check(text, ITEM_DEPTH_MAX).is_ok()
    }

    /// Builds an item from a text that is known to be a JSON object.
    pub(crate) fn trusted(text: &str) -> Self {
        Self::restore(Document::of(text).raw().to_owned(), None)
    }

    /// Returns the text, with an empty string in place of a stored image.
    #[must_use]
    pub fn text(&self) -> &str {
        match &*self.page {
            Page::One { text, .. } => text.get(),
            Page::Many(texts) => {
                let place = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
                let end = place(self.start).saturating_add(place(self.bytes));
                texts.get(place(self.start)..end).unwrap_or_default()
            }
        }
    }

    /// Returns the text as a value that serde writes unchanged.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        match &*self.page {
            Page::One { text, .. } => text,
            // The text was valid JSON before it was copied into the page.
            Page::Many(_) => json::raw(self.text()),
        }
    }

    /// Copies items without images to one page. Allocates the exact size, because a buffer that grew would keep
    /// unused memory.
    pub(crate) fn on_one_page(items: &[&Self]) -> Vec<Self> {
        let is_copied = |item: &&&Self| item.image().is_none();
        let texts = || items.iter().filter(is_copied).map(|item| item.text());
        let mut page = String::with_capacity(texts().map(str::len).sum());
        page.extend(texts());
        let page = Arc::new(Page::Many(page.into()));
        let mut end = 0_u32;
        let mut place = |item: &&Self| {
            let bytes = u32::try_from(item.text().len()).ok().filter(|_| item.image().is_none())?;
            let start = end;
            end = start.checked_add(bytes)?;
            Some(Self { page: Arc::clone(&page), start, bytes })
        };
        let copy = |item: &&Self| place(item).unwrap_or_else(|| Self::clone(item));
        items.iter().map(copy).collect()
    }

    /// Returns the item with its text copied out of its page.
    pub(crate) fn detached(&self) -> Self {
        if self.is_in_page() { Self::trusted(self.text()) } else { self.clone() }
    }

    /// Returns true if the text shares a page with others.
    pub(crate) fn is_in_page(&self) -> bool {
        matches!(&*self.page, Page::Many(_))
    }

    /// Estimates the memory of the item. Items on a page share it.
    pub(crate) fn resident_bytes(&self) -> usize {
        match &*self.page {
            Page::One { text, image } => {
                let image = image.as_ref().map_or(0, |_| size::block(size_of::<Image>()));
                PAGE_BYTES + size::block(text.get().len()) + image
            }
            Page::Many(_) => size::filled(self.text().len()),
        }
    }

    /// Returns the image that was cut out of the item.
    #[must_use]
    pub fn image(&self) -> Option<&Image> {
        match &*self.page {
            Page::One { image, .. } => image.as_deref(),
            Page::Many(_) => None,
        }
    }

    /// Returns the text with `url`, a data URL or an address, in place of the stored image. `url` must need no escape
    /// in a JSON string.
    #[must_use]
    pub fn with_image_text(&self, url: &str) -> String {
        match self.around_image() {
            (all, "") => all.to_owned(),
            (before, after) => [before, url, after].concat(),
        }
    }

    /// Returns the texts before and after the stored image's place. Without an image, the first is the whole text.
    #[must_use]
    pub fn around_image(&self) -> (&str, &str) {
        let at = self.image().map_or(0, |image| image.at);
        self.text().split_at_checked(at).filter(|_| at > 0).unwrap_or((self.text(), ""))
    }

    /// Returns the item with only the members for which `keep` returns true, in their order. A stored image's offset
    /// is valid only if its member is kept.
    #[must_use]
    pub fn selected(&self, keep: impl Fn(&str) -> bool) -> Self {
        let members: Vec<_> = json::members(self.text()).collect();
        self.written(members.iter().filter(|member| keep(&json::decode(member.name))))
    }

    /// Returns the length of the text in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.text().len() as u64
    }

    /// Returns the text of the last member with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        json::get(self.text(), name)
    }

    /// Returns the item's `cost`, if it is a number.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let text = self.text();
        // Most items name none. A name may also be written with escapes.
        if !text.contains("\"cost\"") && !text.contains('\\') {
            return Cost::default();
        }
        let cost = self.get("cost").filter(|cost| json::kind(cost) == Kind::Number);
        cost.map_or_else(Cost::default, |cost| Cost::of(json::to_f64(cost)))
    }

    /// Returns the item with its members in the order of another item, and new members last.
    ///
    /// Follows the original, where an existing key keeps its place. Text that is already in this order stays
    /// unchanged.
    #[must_use]
    pub fn in_order_of(&self, other: &Self) -> Self {
        // Lookups by name take constant time, because all writes wait for this function.
        let mut places = HashMap::new();
        for member in json::members(other.text()) {
            let next = places.len();
            places.entry(json::decode(member.name)).or_insert(next);
        }
        let place = |member: &Member<'_>| {
            places.get(&json::decode(member.name)).copied().unwrap_or(places.len())
        };
        let mut members: Vec<_> = json::members(self.text()).map(|m| (place(&m), m)).collect();
        if members.is_sorted_by_key(|(place, _)| *place) {
            return self.clone();
        }
        members.sort_by_key(|(place, _)| *place);
        self.written(members.iter().map(|(_, member)| member))
    }

    /// Builds an item from these members and the image.
    fn written<'a>(&self, members: impl Iterator<Item = &'a Member<'a>>) -> Self {
        let (mut text, mut image) = (String::from("{"), self.image().cloned());
        for member in members {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(member.name);
            text.push(':');
            if let Some(image) = &mut image
                && self.image().is_some_and(|image| image.at == member.value_at + 1)
            {
                image.at = text.len() + 1;
            }
            text.push_str(member.value);
        }
        text.push('}');
        // Members of a JSON object between braces are valid JSON.
        RawValue::from_string(text).map_or_else(|_| self.clone(), |text| Self::restore(text, image))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() && self.image() == other.image()
    }
}

impl Eq for Item {}
