//! Counters by a word of ours.

use std::collections::BTreeMap;

use parking_lot::RwLock;

use super::Text;
use super::number::Counter;

/// How often each of some words came; the words are in this program, so there are not many.
#[derive(Debug)]
pub struct CounterByWord {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    counts: RwLock<BTreeMap<&'static str, Counter>>,
}

impl CounterByWord {
    pub(super) const fn new(name: &'static str, help: &'static str, label: &'static str) -> Self {
        Self { name, help, label, counts: RwLock::new(BTreeMap::new()) }
    }

    /// One more of this word.
    pub fn add_one(&self, word: &'static str) {
        if let Some(count) = self.counts.read().get(word) {
            return count.add_one();
        }
        self.counts.write().entry(word).or_default().add_one();
    }

    pub(super) fn write(&self, text: &mut Text) {
        text.head(self.name, self.help, "counter");
        for (word, count) in &*self.counts.read() {
            text.part(self.name, "", &[(self.label, word)], None, count.get());
        }
    }
}
