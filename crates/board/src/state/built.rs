//! Values built for a place in the document.
//!
//! They are built before they are set, or while they are set. Building takes time proportional to the text. Setting
//! takes O(depth), if the place still holds the value that was there during building. Otherwise the built value is
//! useless, since its new parts depend on that earlier value.

use super::State;
use super::expiries::Expiries;
use super::last_change::Changed;
use super::merge::Merge;
use super::node::Node;
use super::path::StatePath;
use crate::json::Tree;
use crate::{Revision, Timestamp};

#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// The value at the place during building, if any.
    pub(super) present: Option<Node>,
    /// The new value, which shares its unchanged parts with the earlier value.
    pub(super) node: Node,
    /// The revision of all new parts.
    pub(super) changed: Changed,
}

impl Made {
    /// Builds the value of a tree.
    pub(super) fn read(tree: &Tree<'_>, present: Option<Node>, changed: Changed) -> Self {
        let node = Node::read(tree, present.as_ref(), &changed);
        Self { present, node, changed }
    }

    /// Applies a merge patch to the present value. Removes the deadlines of deleted values.
    pub(super) fn merged(
        path: &StatePath,
        patch: &Tree<'_>,
        present: Option<Node>,
        changed: Changed,
        expiries: &mut Expiries,
    ) -> Self {
        let mut merge = Merge { changed: changed.clone(), path, names: Vec::new(), expiries };
        let node = merge.merged(present.as_ref(), patch);
        Self { present, node, changed }
    }
}

impl State {
    /// Builds the value that [`put`](Self::put) would set. Returns `None` if `put` would set nothing.
    pub(crate) fn make_put(&self, path: &StatePath, value: &str) -> Option<Made> {
        self.made(path, value, Changed::unknown())
    }

    /// Builds the value that [`merge`](Self::merge) would set. Returns `None` if `merge` would set nothing.
    pub(crate) fn make_merged(&self, path: &StatePath, patch: &str) -> Option<Made> {
        let (tree, present) = self.admitted(path, patch)?;
        let expiries = &mut Expiries::default();
        Some(Made::merged(path, &tree, present, Changed::unknown(), expiries))
    }

    /// Sets a built value like [`put`](Self::put). Returns `false` if the place has changed since.
    pub(crate) fn take_put(
        &mut self,
        path: &StatePath,
        made: &Made,
        expires_at: Option<Timestamp>,
        revision: Revision,
    ) -> bool {
        let fits = self.fits(path, made) && made.changed.tell(revision);
        if fits {
            self.put_made(path, made, expires_at);
        }
        fits
    }

    /// Sets a built value like [`merge`](Self::merge). Returns `false` if the place has changed since.
    pub(crate) fn take_merged(
        &mut self,
        path: &StatePath,
        made: &Made,
        revision: Revision,
    ) -> bool {
        let fits = self.fits(path, made) && made.changed.tell(revision);
        if fits {
            // A patch removes the deadlines of the values that it deletes. The remaining values keep theirs.
            self.set_made(path, made);
        }
        fits
    }

    /// Returns true if the value was built against the current one.
    pub(crate) fn fits(&self, path: &StatePath, made: &Made) -> bool {
        match (self.place(path), &made.present) {
            (Ok(Some(value)), Some(present)) => value.0.same(present),
            (Ok(None), None) => true,
            (Ok(_) | Err(_), _) => false,
        }
    }
}
