//! Traits of items, by which a search passes over those that cannot match without reading them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::json::{self, Kind};
use crate::{Item, Wanted};

/// A set of a few bits for each member and its value, so that an item that matches has all bits of what is looked for. An
/// item that does not match rarely has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u128);

impl Traits {
    /// Returns the traits of an item.
    pub(super) fn of(item: &Item) -> Self {
        let members = json::members(item.text());
        members.fold(Self::default(), |traits, member| {
            traits.with(&json::decode(member.name), member.value)
        })
    }

    /// Returns the traits that an item with these members has.
    pub(super) fn wanted(wanted: &Wanted) -> Self {
        let members = wanted.0.iter();
        members.fold(Self::default(), |traits, (name, value)| traits.with(name, value.text()))
    }

    /// Returns true if there is no member to look for.
    pub(super) fn are_none(self) -> bool {
        self == Self::default()
    }

    /// Returns true if an item with these traits may have the wanted ones.
    pub(super) fn may_have(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    fn with(self, name: &str, value: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        match json::kind(value) {
            kind @ (Kind::Object | Kind::Array) => std::mem::discriminant(&kind).hash(&mut hasher),
            Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
                json::canonical(value).hash(&mut hasher);
            }
        }
        let hash = hasher.finish();
        let bit = |shift: u32| 1_u128 << ((hash >> shift) & 127);
        Self(self.0 | bit(0) | bit(7) | bit(14))
    }
}
