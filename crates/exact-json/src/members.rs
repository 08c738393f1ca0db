//! The members of an object, in order and by name.
//!
//! Each name occurs once and is found in constant time.

use std::borrow::Cow;
use std::collections::HashMap;

use super::string;
use super::tree::Tree;

/// Up to this number of places, a search from the front is faster than an index.
const UNINDEXED_MAX: usize = 16;

/// The members of a parsed object.
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    /// A removed member leaves an empty place, so that later members keep theirs.
    places: Vec<Option<Member<'a>>>,
    count: usize,
    /// The places of the decoded names, only for large objects.
    index: Option<HashMap<Cow<'a, str>, usize>>,
}

#[derive(Clone, Debug)]
struct Member<'a> {
    literal: Cow<'a, str>,
    value: Tree<'a>,
}

impl<'a> Members<'a> {
    /// Returns the number of members.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns each name's literal with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tree<'a>)> {
        let members = self.places.iter().flatten();
        members.map(|member| (&*member.literal, &member.value))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (Cow<'a, str>, Tree<'a>)> {
        let members = self.places.into_iter().flatten();
        members.map(|member| (member.literal, member.value))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Tree<'a>> {
        let place = self.find(name)?;
        Some(&self.places.get(place)?.as_ref()?.value)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Tree<'a>> {
        let place = self.find(name)?;
        Some(&mut self.places.get_mut(place)?.as_mut()?.value)
    }

    /// Sets the member with the name in this literal: in its place if it exists, else at the end.
    pub(super) fn set(&mut self, literal: Cow<'a, str>, value: Tree<'a>) {
        let name = decoded(&literal);
        if let Some(present) = self.get_mut(&name) {
            *present = value;
            return;
        }
        if let Some(index) = &mut self.index {
            index.insert(name, self.places.len());
        }
        self.places.push(Some(Member { literal, value }));
        self.count += 1;
        if self.index.is_none() && self.places.len() > UNINDEXED_MAX {
            self.index = Some(self.indexed());
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Tree<'a>> {
        let place = self.find(name)?;
        let member = self.places.get_mut(place)?.take()?;
        self.count -= 1;
        if let Some(index) = &mut self.index {
            index.remove(name);
        }
        Some(member.value)
    }

    fn find(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.places.iter().position(|place| {
                let member = place.as_ref();
                member.is_some_and(|member| string::is(&member.literal, name))
            }),
        }
    }

    fn indexed(&self) -> HashMap<Cow<'a, str>, usize> {
        let places = self.places.iter().enumerate();
        places
            .filter_map(|(place, member)| Some((decoded(&member.as_ref()?.literal), place)))
            .collect()
    }
}

/// Decodes a name. The result borrows from the text of a borrowed literal.
fn decoded<'a>(literal: &Cow<'a, str>) -> Cow<'a, str> {
    match literal {
        Cow::Borrowed(text) => string::decode(text),
        Cow::Owned(text) => Cow::Owned(string::decode(text).into_owned()),
    }
}
