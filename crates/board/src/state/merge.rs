//! JSON merge patch (RFC 7396) on a node.
//!
//! Members outside the patch are not touched.

use std::sync::Arc;

use super::expiries::Expiries;
use super::last_change::Changed;
use super::node::Node;
use super::path::StatePath;
use crate::json;
use crate::json::Tree;

/// A merge in progress. Deadlines of deleted values are removed at once, because a list of these values could be far
/// longer than the patch.
pub(super) struct Merge<'a> {
    pub(super) changed: Changed,
    /// The path of the patched value.
    pub(super) path: &'a StatePath,
    /// The names from there to the current place.
    pub(super) names: Vec<Arc<str>>,
    pub(super) expiries: &'a mut Expiries,
}

impl Merge<'_> {
    /// Returns the value after the patch, or the target itself if nothing changes.
    pub(super) fn merged(&mut self, target: Option<&Node>, patch: &Tree<'_>) -> Node {
        let present = target.and_then(Node::object);
        let Tree::Object(patch) = patch else {
            if present.is_some() {
                self.end_below();
            }
            return Node::read(patch, target, &self.changed);
        };
        let mut object = present.map(Arc::clone).unwrap_or_default();
        for (literal, value) in patch.iter() {
            let name = json::decode(literal);
            let member = object.get(&name);
            self.names.push(name.as_ref().into());
            if !matches!(value, Tree::Scalar("null")) {
                let merged = self.merged(member, value);
                if !member.is_some_and(|member| member.same(&merged)) {
                    Arc::make_mut(&mut object).edit(&name, &self.changed, |slot| *slot = merged);
                }
            } else if member.is_some() {
                self.end_here_and_below();
                Arc::make_mut(&mut object).remove(&name);
            }
            self.names.pop();
        }
        match target {
            Some(target) if present.is_some_and(|present| Arc::ptr_eq(present, &object)) => {
                target.clone()
            }
            _ => Node::of_object(object, self.changed.clone()),
        }
    }

    fn end_here_and_below(&mut self) {
        if !self.expiries.is_empty() {
            self.expiries.end_within(&self.path.below(&self.names), |_| true);
        }
    }

    fn end_below(&mut self) {
        if !self.expiries.is_empty() {
            let here = self.path.below(&self.names);
            self.expiries.end_within(&here, |within| *within != here);
        }
    }
}
