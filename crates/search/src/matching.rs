//! Matching: the documents of a segment that a query matches, each with its score.
//!
//! A score depends on the document alone: on how often it has the words, and on its length. So no score, and no order by
//! scores, depends on other documents.

use super::error::SearchError;
use super::segment::part::length_of;
use super::segment::postings::{Occurrence, Postings};
use super::segment::{Listed, SegmentReader};
use super::words::{Phrase, QueryWords};

/// The number of occurrences at which a word's weight is half of its most, times this and one (BM25's k1).
const SATURATION: f64 = 1.2;

/// The part of the length in a word's weight (BM25's b).
const LENGTH_PART: f64 = 0.75;

/// The number of words of a document that is neither long nor short.
const LENGTH_USUAL: f64 = 100.0;

/// A weight is a multiple of this. So a sum of weights is exact, and the same in whatever order they are added.
const WEIGHT_STEP: f64 = 1.0 / 1_048_576.0;

/// The documents that a query matches, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) documents: Vec<u32>,
    /// How often the documents have each of the words and phrases.
    counts: Vec<Vec<u32>>,
}

impl Found {
    /// Returns the score of the document at an index, whose length has this class.
    pub(super) fn score(&self, at: usize, class: u8) -> f64 {
        self.counts
            .iter()
            .filter_map(|counts| counts.get(at))
            .map(|count| weight(class, *count))
            .sum()
    }

    /// Leaves the documents at these indexes.
    fn keep(&mut self, indexes: &[usize]) {
        if indexes.len() < self.documents.len() {
            for column in self.counts.iter_mut().chain([&mut self.documents]) {
                *column = indexes.iter().filter_map(|at| column.get(*at)).copied().collect();
            }
        }
    }
}

/// Returns the weight of a word in a document.
fn weight(class: u8, count: u32) -> f64 {
    let relative = LENGTH_PART.mul_add(length_of(class) / LENGTH_USUAL, 1.0 - LENGTH_PART);
    let count = f64::from(count);
    let weight = count * (SATURATION + 1.0) / SATURATION.mul_add(relative, count);
    (weight / WEIGHT_STEP).round() * WEIGHT_STEP
}

/// A query that goes through segments.
pub(super) struct Matching<'q> {
    /// Wanted words. The one that a segment lacked comes first: the next one is likely to lack it too, and then no other
    /// word is looked up.
    words: Vec<&'q Phrase>,
    /// What else is wanted.
    phrases: Vec<&'q Phrase>,
    unwanted: &'q [Phrase],
    /// The number of occurrences that it may yet read.
    left: usize,
}

impl<'q> Matching<'q> {
    pub(super) fn new(query: &'q QueryWords, examined_max: usize) -> Self {
        let (words, phrases) = query.wanted.iter().partition(|phrase| phrase.single().is_some());
        Self { words, phrases, unwanted: &query.unwanted, left: examined_max }
    }

    /// Returns true if it has read what it may.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns the matches in a segment.
    pub(super) fn matches(&mut self, segment: &SegmentReader<'_>) -> Result<Found, SearchError> {
        let Some(mut found) = self.wanted(segment)? else { return Ok(Found::default()) };
        for phrase in self.unwanted {
            let unwanted = match looked_up(segment, phrase, &mut self.left)? {
                LookedUp::All(occurrences) => occurrences,
                LookedUp::Frequent(word) => {
                    counted(segment.lists_with(word, numbers(&found))?, &mut self.left)
                }
            };
            let is_unwanted = |document: &u32| {
                unwanted.binary_search_by_key(document, |other| other.document).is_ok()
            };
            let documents = found.documents.iter().enumerate();
            let kept: Vec<usize> =
                documents.filter(|(_, one)| !is_unwanted(one)).map(|(at, _)| at).collect();
            found.keep(&kept);
        }
        Ok(found)
    }

    fn wanted(&mut self, segment: &SegmentReader<'_>) -> Result<Option<Found>, SearchError> {
        let (mut found, mut frequent): (Option<Found>, Vec<&[u8]>) = (None, Vec::new());
        let all: Vec<&Phrase> = self.words.iter().chain(&self.phrases).copied().collect();
        for (at, phrase) in all.into_iter().enumerate() {
            match looked_up(segment, phrase, &mut self.left)? {
                LookedUp::Frequent(word) => frequent.push(word),
                LookedUp::All(occurrences) => {
                    if occurrences.is_empty()
                        && let Some(up_to_it) = self.words.get_mut(..=at)
                    {
                        up_to_it.rotate_right(1);
                    }
                    if narrow(&mut found, &occurrences) == 0 {
                        return Ok(None);
                    }
                }
            }
        }
        // Last, since only those lists are read in which a document that the others found would be.
        for word in frequent {
            let postings = match &found {
                None => segment.lists(word, false)?,
                Some(found) => segment.lists_with(word, numbers(found))?,
            };
            narrow(&mut found, &counted(postings, &mut self.left));
        }
        Ok(found)
    }
}

/// What a segment has of a phrase.
enum LookedUp<'q> {
    /// All occurrences.
    All(Vec<Occurrence>),
    /// Its word, which has several lists. None of them is read yet.
    Frequent(&'q [u8]),
}

fn looked_up<'q>(
    segment: &SegmentReader<'_>,
    phrase: &'q Phrase,
    left: &mut usize,
) -> Result<LookedUp<'q>, SearchError> {
    let Some(word) = phrase.single() else {
        return occurrences(segment, phrase, left).map(LookedUp::All);
    };
    Ok(match segment.find(word, false)? {
        Listed::Nowhere => LookedUp::All(Vec::new()),
        Listed::Once(postings) => LookedUp::All(counted(postings, left)),
        Listed::Often => LookedUp::Frequent(word),
    })
}

fn numbers(found: &Found) -> impl Iterator<Item = u32> {
    found.documents.iter().copied()
}

/// Takes the number of occurrences from `left`.
fn counted(postings: Postings, left: &mut usize) -> Vec<Occurrence> {
    *left = left.saturating_sub(postings.occurrences.len());
    postings.occurrences
}

/// Leaves the documents that also have these occurrences; returns their number.
fn narrow(found: &mut Option<Found>, occurrences: &[Occurrence]) -> usize {
    let Some(found) = found.as_mut() else {
        let (documents, counts) = occurrences.iter().map(|one| (one.document, one.count)).unzip();
        let first = Found { documents, counts: vec![counts] };
        return found.insert(first).documents.len();
    };
    let (mut kept, mut counts, mut rest) = (Vec::new(), Vec::new(), occurrences.iter().peekable());
    for (at, document) in found.documents.iter().enumerate() {
        while rest.next_if(|next| next.document < *document).is_some() {}
        if let Some(next) = rest.next_if(|next| next.document == *document) {
            kept.push(at);
            counts.push(next.count);
        }
    }
    found.keep(&kept);
    found.counts.push(counts);
    kept.len()
}

/// Returns the documents with a phrase.
fn occurrences(
    segment: &SegmentReader<'_>,
    phrase: &Phrase,
    left: &mut usize,
) -> Result<Vec<Occurrence>, SearchError> {
    let (needs_places, last) = (phrase.words.len() > 1, phrase.words.len() - 1);
    let mut found: Option<Postings> = None;
    for (at, word) in phrase.words.iter().enumerate() {
        let next = if phrase.is_prefix && at == last {
            segment.prefixed(word.as_bytes(), needs_places)?
        } else {
            segment.postings(word.as_bytes(), needs_places)?
        };
        *left = left.saturating_sub(next.occurrences.len());
        let next = match found {
            None => next,
            Some(found) => following(&found, &next),
        };
        if next.occurrences.is_empty() {
            return Ok(Vec::new());
        }
        found = Some(next);
    }
    Ok(found.unwrap_or_default().occurrences)
}

/// Returns those places of `next` that follow one of `found`.
fn following(found: &Postings, next: &Postings) -> Postings {
    let (mut joined, mut rest) = (Postings::default(), next.documents().peekable());
    for (one, before) in found.documents() {
        while rest.next_if(|(next, _)| next.document < one.document).is_some() {}
        let Some((next, places)) = rest.next_if(|(next, _)| next.document == one.document) else {
            continue;
        };
        let follows = |place: &u32| {
            place.checked_sub(1).is_some_and(|place| before.binary_search(&place).is_ok())
        };
        let places: Vec<u32> = places.iter().copied().filter(follows).collect();
        if !places.is_empty() {
            joined.add(next.document, &places);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_weights_is_the_same_in_any_order() {
        let mut weights: Vec<f64> =
            (0..32).zip(1..).map(|(class, count)| weight(class, count)).collect();
        let sum = |weights: &[f64]| weights.iter().fold(0.0, |sum, one| sum + one);
        let in_order = sum(&weights);
        for _ in 0..weights.len() {
            weights.rotate_left(1);
            assert_eq!(sum(&weights).to_bits(), in_order.to_bits());
        }
        assert!(in_order > 32.0 * weight(31, 1));
    }
}
