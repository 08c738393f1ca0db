//! Caps: how many requests may be claimed at once, of all or of those with one value.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::json;
use crate::{Digest, Item};

/// The maximum number of caps of a session.
pub const CAPS_MAX: usize = 8;

/// The maximum number of claims that a cap can allow.
pub const CAP_MAX: u32 = 1_000_000;

/// The longest value that is kept as its text, in bytes. Of a longer one there is a digest.
const VALUE_BYTES_MAX: usize = 64;

/// A rule of the setting `running_max`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// The member by whose value requests are counted. Those without it do not count. Absent: all requests count
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The maximum number of requests that are claimed at once.
    pub max: u32,
}

/// The value of an item that a cap counts by: all equal values have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Counted(Arc<str>);

/// Requests that count together under a cap, given by its index: all, or those with one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group(usize, Counted);

/// The groups that a request counts in, one for each cap whose member it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Groups(Arc<[Group]>);

/// The numbers of claims by groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claims(OrdMap<Group, u32>);

impl Groups {
    /// Returns the groups of an item under these caps.
    pub(super) fn of(caps: &[Cap], item: &Item) -> Self {
        if caps.is_empty() {
            // Shared; an empty list that is collected is not.
            return Self::default();
        }
        let counted = caps.iter().map(|cap| cap.counted(item)).enumerate();
        Self(counted.filter_map(|(cap, counted)| Some(Group(cap, counted?))).collect())
    }

    /// Returns true if no cap counts the request.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Claims {
    pub(super) fn add(&mut self, groups: &Groups) {
        for group in groups.0.iter() {
            let claims = self.0.get(group).copied().unwrap_or(0);
            self.0.insert(group.clone(), claims.saturating_add(1));
        }
    }

    pub(super) fn remove(&mut self, groups: &Groups) {
        for group in groups.0.iter() {
            match self.0.get(group).copied().unwrap_or(0) {
                claims @ 2.. => drop(self.0.insert(group.clone(), claims - 1)),
                0 | 1 => drop(self.0.remove(group)),
            }
        }
    }

    /// Returns the first cap that these and other claims reach, if any.
    pub(super) fn first_full<'a>(
        &self,
        others: Option<&Self>,
        caps: &'a [Cap],
        groups: &Groups,
    ) -> Option<&'a Cap> {
        let count = |claims: &Self, group: &Group| claims.0.get(group).copied().unwrap_or(0);
        let all = |group: &Group| {
            count(self, group).saturating_add(others.map_or(0, |others| count(others, group)))
        };
        let mut counted = groups.0.iter().filter_map(|group| Some((caps.get(group.0)?, group)));
        counted.find(|(cap, group)| all(group) >= cap.max).map(|(cap, _)| cap)
    }
}

impl Cap {
    /// Returns true if the cap is within its limits.
    pub(crate) fn is_sound(&self, bytes_max: usize) -> bool {
        let named = self.by.as_ref().is_none_or(|by| by.len() <= bytes_max);
        named && (1..=CAP_MAX).contains(&self.max)
    }

    fn counted(&self, item: &Item) -> Option<Counted> {
        let Some(by) = &self.by else { return Some(Counted(Arc::default())) };
        let text = json::canonical(item.get(by)?);
        Some(Counted(if text.len() <= VALUE_BYTES_MAX {
            text.into()
        } else {
            // No value's text begins so.
            format!("#{}", Digest::of(text.as_bytes())).into()
        }))
    }
}
