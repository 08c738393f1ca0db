//! JSON values of any kind, kept as sent, on one line.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::{Document, Unsupported};

/// A JSON value as text.
#[derive(Clone, Debug)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Parses a JSON text with at most `levels_max` levels.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the text contains a value that some clients could not parse, or is nested too deeply.
    pub fn from_json(text: &str, levels_max: usize) -> Result<Self, Unsupported> {
        let document = Document::of(text);
        document.check(levels_max)?;
        Ok(Self(document.to_line().into()))
    }

    /// Wraps a text that is known to be JSON. Any other text becomes null.
    pub(crate) fn of(text: &str) -> Self {
        Self(Document::of(text).raw().to_owned().into())
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the text as a value that serde writes unchanged.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Returns true if both share one text in memory. The texts are not compared.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the length of the text in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.text().len() as u64
    }
}

/// Wraps a stored text, or one that the server wrote. Such a text is known to be JSON.
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
