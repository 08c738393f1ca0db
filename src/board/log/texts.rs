//! Texts that readers made of a run of entries, kept beside it so that nobody makes them twice.
//!
//! What they say is their readers' own. Here they are only held, by the members that were chosen for them, and
//! given up again; since a run's entries never change, a text of them never gets wrong.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The members that a text shows; all of them where none are named.
pub type Keys = Option<Arc<[String]>>;

/// What was made of the first entries of a run: their texts, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    text: Bytes,
    /// Where the text of each entry ends.
    ends: Box<[u32]>,
}

impl Made {
    /// What was made of so many entries by `write`, after what is known of the first of them.
    pub(super) fn after(
        known: Option<&Self>,
        count: usize,
        bytes: usize,
        mut write: impl FnMut(usize, &mut String),
    ) -> Self {
        let known_text = known.and_then(|known| str::from_utf8(&known.text).ok());
        let known_ends =
            known.filter(|_| known_text.is_some()).map_or(&[][..], |known| &known.ends);
        let mut text = String::with_capacity(known_text.map_or(0, str::len) + bytes);
        text.push_str(known_text.unwrap_or_default());
        let mut ends = Vec::with_capacity(count);
        ends.extend_from_slice(known_ends);
        for index in ends.len()..count {
            write(index, &mut text);
            // A chunk's text has some MiB at the most, its only item being as long as it may be.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { text: Bytes::from(text.into_boxed_str().into_boxed_bytes()), ends: ends.into() }
    }

    /// Of how many entries it is.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The texts of these entries.
    pub(super) fn of(&self, entries: Range<usize>) -> Bytes {
        let (start, end) = (self.end(entries.start), self.end(entries.end));
        self.text.slice(start.min(end)..end)
    }

    /// What was made of these entries, as far as it was.
    fn part(&self, entries: Range<usize>) -> Option<Self> {
        let entries = entries.start..entries.end.min(self.count());
        let ends = self.ends.get(entries.clone()).filter(|ends| !ends.is_empty())?;
        let start = u32::try_from(self.end(entries.start)).unwrap_or(u32::MAX);
        let ends = ends.iter().map(|end| end.saturating_sub(start)).collect();
        Some(Self { text: self.of(entries), ends })
    }

    fn end(&self, count: usize) -> usize {
        let end = count.checked_sub(1).map_or(Some(&0), |last| self.ends.get(last));
        end.map_or(self.text.len(), |end| usize::try_from(*end).unwrap_or(usize::MAX))
    }
}

/// The texts that are kept of a run: one that shows all members, and one that shows only some.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    all: Option<Arc<Made>>,
    chosen: Option<(Arc<[String]>, Arc<Made>)>,
}

impl Texts {
    /// What was made that shows these members.
    pub(super) fn get(&self, keys: &Keys) -> Option<Arc<Made>> {
        let slots = self.0.lock();
        match (keys, &slots.chosen) {
            (None, _) => slots.all.clone(),
            (Some(keys), Some((own, made))) if own == keys => Some(Arc::clone(made)),
            (Some(_), _) => None,
        }
    }

    /// Keeps what was made, unless somebody kept more meanwhile.
    pub(super) fn keep(&self, keys: &Keys, made: &Arc<Made>) {
        let mut slots = self.0.lock();
        match keys {
            None => {
                if slots.all.as_ref().is_none_or(|own| own.count() < made.count()) {
                    slots.all = Some(Arc::clone(made));
                }
            }
            Some(keys) => {
                let own = slots.chosen.as_ref().filter(|(own, _)| own == keys);
                if own.is_none_or(|(_, own)| own.count() < made.count()) {
                    slots.chosen = Some((Arc::clone(keys), Arc::clone(made)));
                }
            }
        }
    }

    /// Those of a run that has these entries of this one.
    pub(super) fn part(&self, entries: Range<usize>) -> Self {
        let slots = self.0.lock();
        let part = |made: &Arc<Made>| made.part(entries.clone()).map(Arc::new);
        let chosen = slots.chosen.as_ref();
        Self(Mutex::new(Slots {
            all: slots.all.as_ref().and_then(part),
            chosen: chosen.and_then(|(keys, made)| Some((Arc::clone(keys), part(made)?))),
        }))
    }

    /// How many bytes they have.
    pub(super) fn bytes(&self) -> usize {
        let slots = self.0.lock();
        let chosen = slots.chosen.as_ref().map(|(_, made)| made);
        slots.all.iter().chain(chosen).map(|made| made.text.len() + 4 * made.ends.len()).sum()
    }

    /// Gives them up; who has one at hand keeps it.
    pub(super) fn forget(&self) {
        *self.0.lock() = Slots::default();
    }
}
