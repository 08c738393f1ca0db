//! JSON documents: valid text, with what the check of its syntax has found on the way.

mod pass;

use std::borrow::Cow;
use std::iter;

use serde::Deserialize as _;
use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer};
use serde_json::value::RawValue;

use super::check::find;
use super::line::one_line;
use super::syntax::parse;
use super::{Kind, Malformed, Unsupported, scan};
use pass::Traits;

/// A JSON value as text, without white space around it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    text: &'a str,
    /// The traits that the pass found, if it accepted the text.
    traits: Option<Traits>,
}

impl<'a> Document<'a> {
    /// Checks that bytes are exactly one JSON document in UTF-8, per RFC 8259.
    ///
    /// # Errors
    /// [`Malformed`] with the position of the first byte that breaks UTF-8 or the grammar.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let text = simdutf8::basic::from_utf8(bytes).ok();
        match text.and_then(pass::value) {
            Some(value) => Ok(Self::from(value)),
            None => Ok(Self { text: parse(bytes)?, traits: None }),
        }
    }

    /// Wraps a text that is known to be JSON.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        pass::value(text).map_or(Self { text, traits: None }, Self::from)
    }

    /// Returns the text.
    #[must_use]
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the kind of the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        scan::kind(self.text)
    }

    /// Returns the text as a value that serde writes unchanged; null if the text is not JSON.
    #[must_use]
    pub fn raw(&self) -> &'a RawValue {
        if self.traits.is_some() { raw(self.text) } else { parsed(self.text) }
    }

    /// Returns true if the document is surely supported, as [`check()`] finds out for any.
    #[must_use]
    pub fn is_supported(&self, depth_max: usize) -> bool {
        self.traits.is_some_and(|traits| traits.is_readable && traits.levels <= depth_max)
    }

    /// Checks that the document is supported. Its outermost container has level 1.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] names the first unsupported part.
    pub fn check(&self, depth_max: usize) -> Result<(), Unsupported> {
        if self.is_supported(depth_max) { Ok(()) } else { find(self.text, depth_max) }
    }

    /// Returns the text without line breaks, as [`one_line`](one_line()) does.
    #[must_use]
    pub fn one_line(&self) -> Cow<'a, str> {
        match self.traits {
            Some(Traits { is_one_line: true, .. }) => Cow::Borrowed(self.text),
            Some(_) | None => one_line(self.text),
        }
    }

    /// Returns the document on one line, as a value of its own.
    #[must_use]
    pub fn to_line(&self) -> Box<RawValue> {
        let line = self.one_line();
        Document { text: &line, traits: self.traits }.raw().to_owned()
    }

    /// Returns the elements of an array in order. Empty if the document is not an array.
    pub fn elements(&self) -> impl Iterator<Item = Self> {
        let (passed, other) = match self.traits {
            Some(_) => (self.text, ""),
            None => ("", self.text),
        };
        pass::elements(passed).map(Self::from).chain(scan::elements(other).map(Self::of))
    }

    /// Returns true unless surely no object of the document has a member of this name.
    #[must_use]
    pub fn may_have_name(&self, name: &str) -> bool {
        let first = name.bytes().next().unwrap_or(b'"');
        self.traits.is_none_or(|traits| traits.name_lowest <= first)
    }
}

impl<'a> From<pass::Value<'a>> for Document<'a> {
    fn from(value: pass::Value<'a>) -> Self {
        Self { text: value.text, traits: Some(value.traits) }
    }
}

/// Returns the bytes as one JSON document, without the white space around it.
///
/// # Errors
/// [`Malformed`] with the position of the first byte that breaks UTF-8 or the grammar.
pub fn syntax(bytes: &[u8]) -> Result<&str, Malformed> {
    Document::parse(bytes).map(|document| document.text())
}

/// Checks bytes and returns them as a raw value, so that they need not be checked again.
///
/// # Errors
/// As for [`syntax()`].
pub fn document(bytes: &[u8]) -> Result<&RawValue, Malformed> {
    Document::parse(bytes).map(|document| document.raw())
}

/// Checks that JSON text is supported. Its outermost container has level 1.
///
/// # Errors
///
/// [`Unsupported`] names the first unsupported part.
pub fn check(text: &str, depth_max: usize) -> Result<(), Unsupported> {
    Document::of(text).check(depth_max)
}

/// Returns a text that is known to be JSON, without white space around it, as a value that serde writes unchanged. The
/// text is not parsed.
#[must_use]
pub fn raw(text: &str) -> &RawValue {
    debug_assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "{text} is not JSON");
    given(text).unwrap_or_else(|_| parsed(text))
}

/// Gives serde the text as `serde_json` gives it raw values. Fails if raw values have got another name there.
fn given(text: &str) -> Result<&RawValue, Error> {
    const NAME: &str = "$serde_json::private::RawValue";
    let member = (NAME, BorrowedStrDeserializer::new(text));
    <&RawValue>::deserialize(MapDeserializer::new(iter::once(member)))
}

fn parsed(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap_or(RawValue::NULL)
}

#[cfg(test)]
mod tests;
