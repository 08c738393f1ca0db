//! Objects: members in order, each name once.
//!
//! Cloning is O(1) or one small copy. Changing a member is O(log members).

use imbl::OrdMap;

use super::last_change::Changed;
use super::node::Node;
use super::text::{Text, quoted_len};

/// The maximum number of members in a small object, which takes half the memory and is searched quickly.
const SMALL_MAX: usize = 16;

/// The number of members at which a wide object becomes small again. Far below [`SMALL_MAX`], to avoid switching back
/// and forth.
const SMALL_AGAIN: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Object {
    /// The length of the object's text in bytes.
    bytes: u64,
    members: Members,
}

#[derive(Clone, Debug)]
enum Members {
    Small(Vec<Member>),
    // Boxed, so that the many small objects stay small.
    Wide(Box<Wide>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: Text,
    pub(super) node: Node,
}

/// The members of a wide object. Changing a member copies one path in `members`, and only reads `places`.
#[derive(Clone, Debug, Default)]
struct Wide {
    places: OrdMap<Text, u64>,
    members: OrdMap<u64, Member>,
}

impl Object {
    /// Creates an object of these members, whose names must be distinct.
    pub(super) fn new(mut members: Vec<Member>) -> Self {
        let inside: u64 = members.iter().map(Member::bytes).sum();
        let commas = members.len().saturating_sub(1) as u64;
        let members = if members.len() > SMALL_MAX {
            Members::Wide(Box::new(members.into()))
        } else {
            members.shrink_to_fit();
            Members::Small(members)
        };
        Self { bytes: 2 + inside + commas, members }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        match &self.members {
            Members::Small(all) => all.len(),
            Members::Wide(wide) => wide.members.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        let (small, wide) = match &self.members {
            Members::Small(all) => (all.as_slice(), None),
            Members::Wide(wide) => (&[][..], Some(wide)),
        };
        small.iter().chain(wide.into_iter().flat_map(|wide| wide.members.values()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        let member = match &self.members {
            Members::Small(all) => all.iter().find(|member| member.name.is(name)),
            Members::Wide(wide) => wide.members.get(wide.places.get(name.as_bytes())?),
        };
        member.map(|member| &member.node)
    }

    /// Edits the member with this name in its place. An absent member is added at the end as null first.
    pub(super) fn edit(&mut self, name: &str, changed: &Changed, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.get_mut(name) {
            let before = node.bytes();
            change(node);
            let after = node.bytes();
            self.bytes = self.bytes - before + after;
            return;
        }
        let mut node = Node::null(changed.clone());
        change(&mut node);
        self.push(Member { name: Text::from(name), node });
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        let member = match &mut self.members {
            Members::Small(all) => all.iter_mut().find(|member| member.name.is(name)),
            Members::Wide(wide) => wide.members.get_mut(wide.places.get(name.as_bytes())?),
        };
        member.map(|member| &mut member.node)
    }

    fn push(&mut self, member: Member) {
        self.bytes += member.bytes() + u64::from(self.len() > 0);
        match &mut self.members {
            Members::Small(all) => {
                all.reserve_exact(1);
                all.push(member);
            }
            Members::Wide(wide) => wide.push(member),
        }
        if let Members::Small(all) = &mut self.members
            && all.len() > SMALL_MAX
        {
            self.members = Members::Wide(Box::new(std::mem::take(all).into()));
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        let removed = match &mut self.members {
            Members::Small(all) => {
                let place = all.iter().position(|member| member.name.is(name));
                place.map(|place| all.remove(place))
            }
            Members::Wide(wide) => wide.remove(name),
        };
        let Some(removed) = removed else { return };
        self.bytes -= removed.bytes() + u64::from(self.len() > 0);
        if let Members::Wide(wide) = &self.members
            && wide.members.len() <= SMALL_AGAIN
        {
            self.members = Members::Small(wide.members.values().cloned().collect());
        }
    }

    /// Returns true if both have the same nodes under the same names, in order. Does not look into the nodes.
    pub(super) fn same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Member, &Member)| a.name == b.name && a.node.same(&b.node);
        self.len() == other.len() && self.iter().zip(other.iter()).all(same)
    }
}

impl Default for Object {
    fn default() -> Self {
        Self { bytes: 2, members: Members::Small(Vec::new()) }
    }
}

// Compares the members in order, whatever their representation.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Object {}

impl Member {
    /// Returns the length of the member's text in bytes: name, colon, value.
    fn bytes(&self) -> u64 {
        quoted_len(self.name.as_str()) + 1 + self.node.bytes()
    }
}

impl Wide {
    fn push(&mut self, member: Member) {
        let place = self.members.get_max().map_or(0, |(last, _)| last + 1);
        self.places.insert(member.name.clone(), place);
        self.members.insert(place, member);
    }

    fn remove(&mut self, name: &str) -> Option<Member> {
        let place = self.places.remove(name.as_bytes())?;
        self.members.remove(&place)
    }
}

impl From<Vec<Member>> for Wide {
    fn from(members: Vec<Member>) -> Self {
        let mut wide = Self::default();
        let (mut even, mut odd) = (Vec::new(), Vec::new());
        for (place, member) in (0_u64..).zip(members) {
            wide.places.insert(member.name.clone(), place);
            if place % 2 == 0 { &mut even } else { &mut odd }.push((place, member));
        }
        // Filling leaves only from the left would leave them half empty after each split. The odd places fill them.
        for (place, member) in even.into_iter().chain(odd) {
            wide.members.insert(place, member);
        }
        wide
    }
}
