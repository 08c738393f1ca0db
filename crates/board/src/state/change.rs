//! Changes of the state's document.
//!
//! `decide` and `admit` have checked values and places. Changes that they would reject are ignored here: text that is
//! too deep, a root that is not an object, a path through a scalar.

use std::sync::Arc;

use super::built::Made;
use super::last_change::Changed;
use super::node::Node;
use super::path::StatePath;
use super::{State, array};
use crate::json::{DEPTH_MAX, Kind, Tree};
use crate::{Revision, Timestamp};

impl State {
    /// Sets a value and its deadline, if any. Deadlines at this path and below are removed.
    pub(crate) fn put(
        &mut self,
        path: &StatePath,
        value: &str,
        expires_at: Option<Timestamp>,
        revision: Revision,
    ) {
        if let Some(made) = self.made(path, value, Changed::at(revision)) {
            self.put_made(path, &made, expires_at);
        }
    }

    /// Sets a value built for this place, with deadlines as in [`put`](Self::put).
    pub(super) fn put_made(
        &mut self,
        path: &StatePath,
        made: &Made,
        expires_at: Option<Timestamp>,
    ) {
        self.replace(path, made);
        // An identical deadline is left untouched, so that the state is recognised as unchanged.
        let stays = expires_at.is_some() && self.expiries.get(path) == expires_at;
        self.expiries.end_within(path, |within| !(stays && within == path));
        if let Some(at) = expires_at.filter(|_| !stays) {
            self.expiries.set(path.clone(), at);
        }
    }

    /// Sets a value. Paths that still exist keep their deadlines.
    pub(crate) fn set(&mut self, path: &StatePath, value: &str, revision: Revision) {
        if let Some(made) = self.made(path, value, Changed::at(revision)) {
            self.set_made(path, &made);
        }
    }

    /// Sets a value built for this place. Paths that still exist keep their deadlines.
    pub(super) fn set_made(&mut self, path: &StatePath, made: &Made) {
        self.replace(path, made);
        let Self { root, expiries } = self;
        expiries.end_within(path, |within| root.find(within.segments()).is_none());
    }

    /// Applies a JSON merge patch (RFC 7396). Paths that still exist keep their deadlines.
    pub(crate) fn merge(&mut self, path: &StatePath, patch: &str, revision: Revision) {
        let Some((tree, present)) = self.admitted(path, patch) else { return };
        let (changed, expiries) = (Changed::at(revision), &mut self.expiries);
        let made = Made::merged(path, &tree, present, changed, expiries);
        self.replace(path, &made);
    }

    /// Appends elements to an array, creating an absent array. All deadlines are kept.
    pub(crate) fn append<'a>(
        &mut self,
        path: &StatePath,
        elements: impl IntoIterator<Item = &'a str>,
        revision: Revision,
    ) {
        let levels_max = DEPTH_MAX.saturating_sub(path.len() + 1);
        let text = |element| shallow(element, levels_max).map(|tree| array::compact(&tree));
        let Some(elements) = elements.into_iter().map(text).collect::<Option<Vec<_>>>() else {
            return;
        };
        // Takes only the kind: a node held here would be copied when the document changes.
        let Ok(present) = self.place(path).map(|value| value.map(|value| value.kind())) else {
            return;
        };
        let changes = match present {
            None => true,
            Some(kind) => kind == Kind::Array && !elements.is_empty(),
        };
        if changes {
            let changed = Changed::at(revision);
            edit(&mut self.root, path.segments(), &changed, |node| node.append(elements, &changed));
        }
    }

    /// Removes a value with all deadlines at this path and below. Removing the root leaves an empty object.
    pub(crate) fn remove(&mut self, path: &StatePath, revision: Revision) {
        if self.node(path).is_none() {
            return;
        }
        let changed = Changed::at(revision);
        match path.segments().split_last() {
            None if self.is_empty() => {}
            None => self.root = Node::empty_object(changed),
            Some((name, above)) => edit(&mut self.root, above, &changed, |node| {
                node.edit_object(&changed, |object| object.remove(name));
            }),
        }
        self.expiries.end_within(path, |_| true);
    }

    /// Builds a value for this path, if it is allowed there.
    pub(super) fn made(&self, path: &StatePath, value: &str, changed: Changed) -> Option<Made> {
        let (tree, present) = self.admitted(path, value)?;
        Some(Made::read(&tree, present, changed))
    }

    /// Parses a value that is allowed at this path. Returns the tree and the present value.
    pub(super) fn admitted<'a>(
        &self,
        path: &StatePath,
        value: &'a str,
    ) -> Option<(Tree<'a>, Option<Node>)> {
        let tree = shallow(value, DEPTH_MAX.checked_sub(path.len())?)?;
        let fits = matches!(tree, Tree::Object(_)) || !path.is_root();
        let present = self.place(path).ok()?;
        fits.then_some((tree, present.map(|value| value.0)))
    }

    /// Sets the value at this path and the revisions above it, if the value differs.
    fn replace(&mut self, path: &StatePath, made: &Made) {
        let Made { present, node, changed } = made;
        if !present.as_ref().is_some_and(|present| present.same(node)) {
            edit(&mut self.root, path.segments(), changed, |slot| *slot = node.clone());
        }
    }
}

/// Parses text with at most `levels_max` levels.
fn shallow(text: &str, levels_max: usize) -> Option<Tree<'_>> {
    Tree::parse(text).ok().filter(|tree| tree.measure().levels <= levels_max)
}

/// Changes the node at these names, with the revisions of all nodes above. Creates missing objects on the way.
fn edit(node: &mut Node, names: &[Arc<str>], changed: &Changed, change: impl FnOnce(&mut Node)) {
    let Some((name, below)) = names.split_first() else { return change(node) };
    node.edit_object(changed, |object| {
        object.edit(name, changed, |member| edit(member, below, changed, change));
    });
}
