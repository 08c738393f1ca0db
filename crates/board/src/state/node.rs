//! Nodes of the document: values with the revision of their last change.
//!
//! Cloning is O(1). No document is deeper than [`DEPTH_MAX`](json::DEPTH_MAX), so the recursion here and in `Drop` is
//! safe.

use std::sync::Arc;

use super::array;
use super::array::Array;
use super::last_change::Changed;
use super::object::{Member, Object};
use super::text::Text;
use crate::Revision;
use crate::json;
use crate::json::Tree;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    changed: Changed,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Scalar(Text),
    Array(Arc<Array>),
    Object(Arc<Object>),
}

impl Node {
    pub(super) fn empty_object(changed: Changed) -> Self {
        Self { changed, value: Value::Object(Arc::default()) }
    }

    /// Creates the placeholder of a new place until its value is set.
    pub(super) fn null(changed: Changed) -> Self {
        Self { changed, value: Value::Scalar(Text::from("null")) }
    }

    pub(super) const fn of_object(object: Arc<Object>, changed: Changed) -> Self {
        Self { changed, value: Value::Object(object) }
    }

    /// Builds the value of a tree. Nodes of `old` with an equal value at the same place are reused.
    pub(super) fn read(tree: &Tree<'_>, old: Option<&Self>, changed: &Changed) -> Self {
        let value = match tree {
            Tree::Scalar(text) => Value::Scalar(Text::from(*text)),
            Tree::Array(elements) => {
                Value::Array(Arc::new(Array::new(elements.iter().map(array::compact).collect())))
            }
            Tree::Object(members) => {
                let old = old.and_then(Self::object);
                let read = |(literal, tree): (&str, &Tree<'_>)| {
                    let name = json::decode(literal);
                    let node = Self::read(tree, old.and_then(|old| old.get(&name)), changed);
                    Member { name: Text::from(&*name), node }
                };
                Value::Object(Arc::new(Object::new(members.iter().map(read).collect())))
            }
        };
        match old {
            Some(old) if old.value.stays(&value) => old.clone(),
            _ => Self { changed: changed.clone(), value },
        }
    }

    /// Builds the value of a tree, with the revisions of the value and its members in preorder.
    pub(super) fn restore(
        tree: &Tree<'_>,
        revisions: &mut impl Iterator<Item = Changed>,
    ) -> Option<Self> {
        let changed = revisions.next()?;
        let Tree::Object(members) = tree else {
            return Some(Self::read(tree, None, &changed));
        };
        let restore = |(literal, tree): (&str, &Tree<'_>)| {
            let node = Self::restore(tree, revisions)?;
            Some(Member { name: Text::from(&*json::decode(literal)), node })
        };
        let members = members.iter().map(restore).collect::<Option<_>>()?;
        Some(Self { changed, value: Value::Object(Arc::new(Object::new(members))) })
    }

    /// Adds the revisions of this value and all members below, in preorder.
    pub(super) fn revisions(&self, out: &mut Vec<Revision>) {
        out.push(self.changed());
        for member in self.object().into_iter().flat_map(|object| object.iter()) {
            member.node.revisions(out);
        }
    }

    /// Returns true if both are the same node, without comparing the contents of arrays and objects.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.changed == other.changed
            && match (&self.value, &other.value) {
                (Value::Scalar(a), Value::Scalar(b)) => a == b,
                (Value::Array(a), Value::Array(b)) => Arc::ptr_eq(a, b),
                (Value::Object(a), Value::Object(b)) => {
                    Arc::ptr_eq(a, b) || (a.len() == 0 && b.len() == 0)
                }
                (Value::Scalar(_) | Value::Array(_) | Value::Object(_), _) => false,
            }
    }

    /// Returns true if both are equal scalars or equal arrays.
    pub(super) fn is_same_leaf(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Scalar(a), Value::Scalar(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Scalar(_) | Value::Array(_) | Value::Object(_), _) => false,
        }
    }

    /// Returns the node at these names.
    pub(super) fn find(&self, names: &[Arc<str>]) -> Option<&Self> {
        names.iter().try_fold(self, |node, name| node.object()?.get(name))
    }

    pub(super) fn changed(&self) -> Revision {
        self.changed.revision()
    }

    /// Returns the length of the value's text in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match &self.value {
            Value::Scalar(text) => text.len(),
            Value::Array(array) => array.bytes(),
            Value::Object(object) => object.bytes(),
        }
    }

    pub(super) fn kind(&self) -> json::Kind {
        match &self.value {
            Value::Scalar(text) => json::kind(text.as_str()),
            Value::Array(_) => json::Kind::Array,
            Value::Object(_) => json::Kind::Object,
        }
    }

    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text.as_str()),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(super) const fn object(&self) -> Option<&Arc<Object>> {
        match &self.value {
            Value::Object(object) => Some(object),
            Value::Scalar(_) | Value::Array(_) => None,
        }
    }

    /// Edits the value as an object. Any other value first becomes an empty object.
    pub(super) fn edit_object(&mut self, changed: &Changed, edit: impl FnOnce(&mut Object)) {
        self.changed = changed.clone();
        match &mut self.value {
            Value::Object(object) => edit(Arc::make_mut(object)),
            Value::Scalar(_) | Value::Array(_) => {
                let mut object = Object::default();
                edit(&mut object);
                self.value = Value::Object(Arc::new(object));
            }
        }
    }

    /// Appends elements to the value as an array. Any other value first becomes an empty array.
    pub(super) fn append(&mut self, elements: Vec<Text>, changed: &Changed) {
        self.changed = changed.clone();
        match &mut self.value {
            Value::Array(array) => Arc::make_mut(array).append(elements),
            Value::Scalar(_) | Value::Object(_) => {
                self.value = Value::Array(Arc::new(Array::new(elements)));
            }
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        match &self.value {
            Value::Scalar(text) => out.push_str(text.as_str()),
            Value::Array(array) => array.write(out),
            Value::Object(object) => {
                out.push('{');
                for (position, member) in object.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    json::quote(member.name.as_str(), out);
                    out.push(':');
                    member.node.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Returns true if the values are equal. Numbers compare by value, objects ignore the order of members.
    pub(super) fn equals(&self, tree: &Tree<'_>) -> bool {
        match &self.value {
            Value::Scalar(text) => array::text_equals(text, tree),
            Value::Array(array) => array.equals(tree),
            Value::Object(object) => {
                let Tree::Object(members) = tree else { return false };
                let equal = |(literal, tree): (&str, &Tree<'_>)| {
                    object.get(&json::decode(literal)).is_some_and(|node| node.equals(tree))
                };
                object.len() == members.len() && members.iter().all(equal)
            }
        }
    }
}

impl Value {
    /// Returns true if the node of this value can stay in place of `set`, whose equal members are already this
    /// value's.
    fn stays(&self, set: &Self) -> bool {
        match (self, set) {
            (Self::Scalar(a), Self::Scalar(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a.same(b),
            (Self::Scalar(_) | Self::Array(_) | Self::Object(_), _) => false,
        }
    }
}
