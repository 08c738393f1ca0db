//! The state of a session: one JSON document, addressed by path.
//!
//! The root is an object. Cloning is O(1). A change copies the path down to the changed value, and leaves the old
//! document unchanged. The root and every member have the revision at which their text last changed.

mod array;
mod built;
mod change;
mod difference;
mod expiries;
mod last_change;
mod merge;
mod node;
mod object;
mod path;
mod text;
mod value;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use built::Made;
use expiries::Expiries;
use last_change::Changed;
use node::Node;
pub use path::{InvalidPath, StatePath};
pub use value::StateValue;

use super::json::{Kind, Tree};
use super::{Revision, Timestamp};

/// The maximum size of the document, in bytes of its text.
pub const STATE_BYTES_MAX: u64 = 16 << 20;

/// The empty document that never changed, shared by the sessions without a state.
static NO_ROOT: LazyLock<Node> =
    LazyLock::new(|| Node::empty_object(Changed::at(Revision::default())));

/// The document with its revisions and deadlines.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    root: Node,
    expiries: Expiries,
}

/// A write passes through a value that is not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value at '{at}' is {}, not an object", kind.with_article())]
pub struct NotAnObject {
    /// The path of the value.
    pub at: StatePath,
    /// The kind of the value.
    pub kind: Kind,
}

impl State {
    /// Returns the length of the document's text in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.root.bytes()
    }

    /// Returns the revision of the document's last change.
    #[must_use]
    pub fn changed(&self) -> Revision {
        self.root.changed()
    }

    /// Returns true if the document is an empty object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.object().is_none_or(|object| object.len() == 0)
    }

    /// Returns true if one state is an unchanged copy of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.root.same(&other.root) && self.expiries.same(&other.expiries)
    }

    /// Returns the document's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(usize::try_from(self.bytes()).unwrap_or_default());
        self.root.write(&mut text);
        text
    }

    /// Returns the value at this path, if any.
    #[must_use]
    pub fn value(&self, path: &StatePath) -> Option<StateValue> {
        self.node(path).cloned().map(StateValue)
    }

    /// Returns the present value at the place of a write, if any.
    ///
    /// # Errors
    ///
    /// [`NotAnObject`] if an existing value above is not an object.
    pub fn place(&self, path: &StatePath) -> Result<Option<StateValue>, NotAnObject> {
        let mut node = &self.root;
        for (above, name) in path.segments().iter().enumerate() {
            let object = node
                .object()
                .ok_or_else(|| NotAnObject { at: path.prefix(above), kind: node.kind() })?;
            let Some(member) = object.get(name) else { return Ok(None) };
            node = member;
        }
        Ok(Some(StateValue(node.clone())))
    }

    /// Returns the next time at which a value expires.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.next()
    }

    /// Returns at most `limit` expired paths, by time, omitting paths below another one.
    #[must_use]
    pub fn due(&self, now: Timestamp, limit: usize) -> Vec<StatePath> {
        self.expiries.due(now, limit)
    }

    /// Returns all deadlines, ordered by path.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (&StatePath, Timestamp)> {
        self.expiries.iter()
    }

    /// Replaces all deadlines. Paths that do not exist are ignored.
    pub(crate) fn set_expiries(&mut self, expiries: &[(StatePath, Timestamp)]) {
        self.expiries = Expiries::default();
        for (path, at) in expiries {
            if self.node(path).is_some() {
                self.expiries.set(path.clone(), *at);
            }
        }
    }

    /// Returns the revisions of the root and of all members, in preorder. The document's text, these revisions and
    /// the deadlines describe the whole state.
    pub(crate) fn revisions(&self) -> Vec<Revision> {
        let mut revisions = Vec::new();
        self.root.revisions(&mut revisions);
        revisions
    }

    /// Builds a state from text and revisions, without deadlines. Returns `None` if they do not match.
    pub(crate) fn restore(document: &str, revisions: &[Revision]) -> Option<Self> {
        let tree = Tree::parse(document).ok()?;
        // Values with the same revision share it, as after the original change.
        let mut known: HashMap<Revision, Changed> = HashMap::new();
        let mut known =
            |at: &Revision| known.entry(*at).or_insert_with(|| Changed::at(*at)).clone();
        let mut revisions = revisions.iter().map(&mut known);
        let root = Node::restore(&tree, &mut revisions)?;
        if root.kind() != Kind::Object || revisions.next().is_some() {
            return None;
        }
        Some(Self { root, expiries: Expiries::default() })
    }

    /// Restores a deadline. Returns `false` if the path is absent, or already has a deadline.
    pub(crate) fn restore_expiry(&mut self, path: &StatePath, at: Timestamp) -> bool {
        if self.node(path).is_none() || self.expiries.get(path).is_some() {
            return false;
        }
        self.expiries.set(path.clone(), at);
        true
    }

    fn node(&self, path: &StatePath) -> Option<&Node> {
        self.root.find(path.segments())
    }
}

impl Default for State {
    fn default() -> Self {
        Self { root: NO_ROOT.clone(), expiries: Expiries::default() }
    }
}

#[cfg(test)]
mod tests;
