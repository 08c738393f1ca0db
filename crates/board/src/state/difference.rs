//! Edits that restore an earlier document of the same history.

use std::sync::Arc;

use super::State;
use super::node::Node;
use super::object::Object;
use super::path::StatePath;
use crate::Json;

/// The differing places, none above another, with their earlier values. `None` deletes the value.
type Places = Vec<(StatePath, Option<Json>)>;

impl State {
    /// Returns the edits that restore `then`, in order, including the order of members.
    pub(crate) fn difference(&self, then: &Self) -> Places {
        let mut places = Places::new();
        differ(&self.root, &then.root, &mut Vec::new(), &mut places);
        places
    }
}

/// Collects the differences between two nodes at `names`.
fn differ(now: &Node, then: &Node, names: &mut Vec<Arc<str>>, places: &mut Places) {
    // A commit leaves one value at a place, so equal revisions mean equal values.
    if now.changed() == then.changed() || now.is_same_leaf(then) {
        return;
    }
    if let (Some(now), Some(then)) = (now.object(), then.object())
        && is_piecemeal(now, then)
    {
        return differ_inside(now, then, names, places);
    }
    let then = text(then);
    if then != text(now) {
        places.push((StatePath::root().below(names), Some(then)));
    }
}

fn differ_inside(now: &Object, then: &Object, above: &mut Vec<Arc<str>>, places: &mut Places) {
    for name in names(now) {
        if then.get(name).is_none() {
            places.push((path_of(above, name), None));
        }
    }
    for member in then.iter() {
        let name = member.name.as_str();
        match now.get(name) {
            Some(node) => {
                above.push(name.into());
                differ(node, &member.node, above, places);
                above.pop();
            }
            None => places.push((path_of(above, name), Some(text(&member.node)))),
        }
    }
}

/// Returns true if the members can be edited one by one. Kept members must be in order and lost members must come
/// last. Differing members must have names that are valid in paths.
fn is_piecemeal(now: &Object, then: &Object) -> bool {
    let staying = names(now).filter(|name| then.get(name).is_some());
    let common = names(now).filter(|name| then.get(name).is_some()).count();
    let in_order = staying.eq(names(then).take(common));
    let differs = |name: &str| match (now.get(name), then.get(name)) {
        (Some(now), Some(then)) => now.changed() != then.changed(),
        _ => true,
    };
    let odd = |name: &str| StatePath::from_segments([name]).is_err();
    in_order && !names(now).chain(names(then)).any(|name| odd(name) && differs(name))
}

fn names(object: &Object) -> impl Iterator<Item = &str> {
    object.iter().map(|member| member.name.as_str())
}

fn path_of(names: &[Arc<str>], last: &str) -> StatePath {
    StatePath::root().below(&[names, &[last.into()]].concat())
}

fn text(node: &Node) -> Json {
    let mut text = String::with_capacity(usize::try_from(node.bytes()).unwrap_or_default());
    node.write(&mut text);
    Json::of(&text)
}
