//! Arrays as leaves of the document: the text of each element.
//!
//! Cloning is O(1), appending O(appended).

use imbl::Vector;

use super::text::Text;
use crate::json::Tree;

/// The maximum number of elements in a flat array. The chunks of a `Vector` are too large for the many short arrays.
const FLAT_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    /// The length of the array's text in bytes.
    bytes: u64,
    elements: Elements,
}

/// The representation follows from the number of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Elements {
    Flat(Vec<Text>),
    // Boxed, so that the many short arrays stay small.
    Chunked(Box<Vector<Text>>),
}

impl Array {
    pub(super) fn new(mut elements: Vec<Text>) -> Self {
        let inside: u64 = elements.iter().map(Text::len).sum();
        let bytes = 2 + inside + elements.len().saturating_sub(1) as u64;
        let elements = if elements.len() > FLAT_MAX {
            Elements::Chunked(Box::new(elements.into()))
        } else {
            elements.shrink_to_fit();
            Elements::Flat(elements)
        };
        Self { bytes, elements }
    }

    pub(super) fn append(&mut self, appended: Vec<Text>) {
        let commas =
            if self.len() == 0 { appended.len().saturating_sub(1) } else { appended.len() };
        self.bytes += appended.iter().map(Text::len).sum::<u64>() + commas as u64;
        match &mut self.elements {
            Elements::Flat(all) if all.len() + appended.len() > FLAT_MAX => {
                let all = std::mem::take(all).into_iter().chain(appended).collect();
                self.elements = Elements::Chunked(Box::new(all));
            }
            Elements::Flat(all) => {
                all.reserve_exact(appended.len());
                all.extend(appended);
            }
            Elements::Chunked(all) => all.extend(appended),
        }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        match &self.elements {
            Elements::Flat(all) => all.len(),
            Elements::Chunked(all) => all.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Text> {
        let (flat, chunked) = match &self.elements {
            Elements::Flat(all) => (all.as_slice(), None),
            Elements::Chunked(all) => (&[][..], Some(&**all)),
        };
        flat.iter().chain(chunked.into_iter().flatten())
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push('[');
        for (position, element) in self.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            out.push_str(element.as_str());
        }
        out.push(']');
    }

    /// Returns true if the values are equal. Numbers compare by value, objects ignore the order of members.
    pub(super) fn equals(&self, tree: &Tree<'_>) -> bool {
        let Tree::Array(elements) = tree else { return false };
        self.len() == elements.len()
            && self.iter().zip(elements.iter()).all(|(text, tree)| text_equals(text, tree))
    }
}

/// Returns true if the text's value equals the tree.
pub(super) fn text_equals(text: &Text, tree: &Tree<'_>) -> bool {
    Tree::parse(text.as_str()).is_ok_and(|parsed| parsed.equals(tree))
}

/// Returns the compact text of a value.
pub(super) fn compact(tree: &Tree<'_>) -> Text {
    if let Tree::Scalar(text) = tree {
        return Text::from(*text);
    }
    let mut text = String::new();
    tree.write(&mut text);
    Text::from(&*text)
}
