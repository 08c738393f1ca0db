//! Text in the document: names, scalars and array elements.
//!
//! Cloning is O(1).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::json;

/// The maximum length of inline text, chosen so that inline text takes no more space than a pointer to long text.
const SHORT_BYTES_MAX: usize = 22;

/// A text, stored inline if short. Most texts are short, and a separate allocation would cost several times their
/// size.
#[derive(Clone)]
pub(super) enum Text {
    Short { bytes: [u8; SHORT_BYTES_MAX], len: u8 },
    Long(Arc<str>),
}

impl Text {
    pub(super) fn as_str(&self) -> &str {
        match self {
            // The bytes are valid UTF-8, since they were copied from a `str`.
            Self::Short { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Long(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { bytes, len } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(text) => text.as_bytes(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.as_bytes() == text.as_bytes()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut bytes = [0; SHORT_BYTES_MAX];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(text.as_bytes());
                Self::Short { bytes, len }
            }
            _ => Self::Long(text.into()),
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// The key for lookups. A `str` would be validated as UTF-8 at every comparison.
impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Returns the length of the text when quoted by [`json::quote`].
pub(super) fn quoted_len(name: &str) -> u64 {
    let escape = |special: char| match json::short_escape(special) {
        Some(_) => 2,
        None if special < ' ' => 6,
        None => special.len_utf8() as u64,
    };
    2 + name.chars().map(escape).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_the_str_it_was_made_of(text in ".{0,30}", other in ".{0,2}") {
            let made = Text::from(&*text);
            prop_assert_eq!(made.as_str(), &*text);
            prop_assert_eq!(made.len(), text.len() as u64);
            prop_assert!(made.is(&text));
            prop_assert_eq!(made == Text::from(&*other), text == other);
        }

        #[test]
        fn the_quoted_length_is_that_of_the_literal(name in any::<String>()) {
            let mut literal = String::new();
            json::quote(&name, &mut literal);
            prop_assert_eq!(quoted_len(&name), literal.len() as u64);
        }
    }

    #[test]
    fn a_short_text_has_no_memory_of_its_own() {
        assert_eq!(size_of::<Text>(), 24);
        assert!(matches!(Text::from(&*"x".repeat(22)), Text::Short { .. }));
        assert!(matches!(Text::from(&*"x".repeat(23)), Text::Long(_)));
    }
}
