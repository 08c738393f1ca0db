//! Sessions of a batch whose parts are stored all or none: a fork and its source, an answer and the Q&A session.

use std::collections::HashMap;

use blackboard_board::SessionName;

/// Groups of sessions, by disjoint sets. A session that was never linked stands alone.
#[derive(Debug, Default)]
pub(crate) struct Links {
    parents: HashMap<SessionName, SessionName>,
}

impl Links {
    /// Puts two sessions, with all that they are linked to, in one group.
    pub(crate) fn link(&mut self, one: &SessionName, other: &SessionName) {
        let (one, other) = (self.root(one).clone(), self.root(other).clone());
        if one != other {
            self.parents.insert(one, other);
        }
    }

    /// Returns the session that stands for the group of this one.
    pub(crate) fn root<'a>(&'a self, name: &'a SessionName) -> &'a SessionName {
        let mut root = name;
        while let Some(parent) = self.parents.get(root) {
            root = parent;
        }
        root
    }

    /// Returns true if no sessions are linked.
    pub(crate) fn are_none(&self) -> bool {
        self.parents.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_sessions_have_one_root() {
        let name = |text: &str| text.parse::<SessionName>().expect("a name");
        let [a, b, c, d] = ["a", "b", "c", "d"].map(name);
        let mut links = Links::default();
        assert!(links.are_none());
        links.link(&a, &b);
        links.link(&c, &b);
        links.link(&b, &a);
        assert_eq!(links.root(&a), links.root(&c));
        assert_ne!(links.root(&a), links.root(&d));
    }
}
