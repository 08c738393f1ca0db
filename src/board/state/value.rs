//! Values read from the document. Later writes do not change them.

use super::node::Node;
use crate::board::Revision;
use crate::board::json;
use crate::board::json::{Kind, Tree};

/// A value of the document with the revision of its last change. Cloning one is O(1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateValue(pub(super) Node);

impl StateValue {
    /// Returns the kind of the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// The revision of its last change, or of a value's below it.
    #[must_use]
    pub fn changed(&self) -> Revision {
        self.0.changed()
    }

    /// The length of its text.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Its text without white space, at the end of `out`.
    pub fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    /// Whether it is what this JSON text says: numbers by value, members in any order.
    #[must_use]
    pub fn equals(&self, json: &str) -> bool {
        Tree::parse(json).is_ok_and(|tree| self.0.equals(&tree))
    }

    /// Its members in order, where it is an object.
    pub fn members(&self) -> impl Iterator<Item = (&str, Self)> {
        let members = self.0.object().into_iter().flat_map(|object| object.iter());
        members.map(|member| (member.name.as_str(), Self(member.node.clone())))
    }

    /// Its member of this name, where it is an object that has one.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        self.0.object()?.get(name).cloned().map(Self)
    }

    /// The text of the number that it is.
    #[must_use]
    pub fn number(&self) -> Option<&str> {
        self.0.scalar().filter(|text| json::kind(text) == Kind::Number)
    }
}
