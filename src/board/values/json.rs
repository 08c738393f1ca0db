//! JSON values of any kind, kept as sent, on one line.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::board::json;
use crate::board::json::Unsupported;

/// A JSON value as text.
#[derive(Clone, Debug)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Parses a JSON text of at most this many levels.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where it holds what a client could not read again, or is too deep.
    pub fn from_json(text: &str, levels_max: usize) -> Result<Self, Unsupported> {
        json::check(text, levels_max)?;
        Ok(Self::of(&json::one_line(text)))
    }

    /// A text that is JSON already; anything else would be null.
    pub(crate) fn of(text: &str) -> Self {
        let raw = RawValue::from_string(text.to_owned());
        Self(raw.unwrap_or_default().into())
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Its text, as a value that serde writes as it is.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Whether both are the very same text, to be found without looking into it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The bytes of its text.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.text().len() as u64
    }
}

/// A JSON text that is known to be one: stored, or written by us.
impl From<Box<RawValue>> for Json {
    fn from(text: Box<RawValue>) -> Self {
        Self(text.into())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}
