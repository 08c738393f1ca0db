//! Values read from the document.
//!
//! Later writes do not change them.

use super::node::Node;
use crate::Revision;
use crate::json;
use crate::json::{Kind, Tree};

/// A value of the document with the revision of its last change. Cloning one is O(1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateValue(pub(super) Node);

impl StateValue {
    /// Returns the kind of the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Returns the revision of the last change of the value or its members.
    #[must_use]
    pub fn changed(&self) -> Revision {
        self.0.changed()
    }

    /// Returns the length of the value's text in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Appends the value's compact text to `out`.
    pub fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    /// Returns true if the value equals this JSON text. Numbers compare by value, objects ignore the order of
    /// members.
    #[must_use]
    pub fn equals(&self, json: &str) -> bool {
        Tree::parse(json).is_ok_and(|tree| self.0.equals(&tree))
    }

    /// Returns an object's members in order. Other values have none.
    pub fn members(&self) -> impl Iterator<Item = (&str, Self)> {
        let members = self.0.object().into_iter().flat_map(|object| object.iter());
        members.map(|member| (member.name.as_str(), Self(member.node.clone())))
    }

    /// Returns an object's member with this name, if any.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        self.0.object()?.get(name).cloned().map(Self)
    }

    /// Returns the text of a number.
    #[must_use]
    pub fn number(&self) -> Option<&str> {
        self.0.scalar().filter(|text| json::kind(text) == Kind::Number)
    }
}
