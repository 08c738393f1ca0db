//! Matching: the documents of a segment that a query matches, each with its score.
//!
//! A score depends on the document alone: on how often it has the words, and on its length. So no score, and no order by
//! scores, depends on other documents.

use super::error::SearchError;
use super::postings::{Occurrence, Postings, length_of};
use super::segment::{Listed, SegmentReader};
use super::words::{Phrase, QueryWords};

/// The number of occurrences at which a word's weight is half of its most, times this and one (BM25's k1).
const SATURATION: f64 = 1.2;

/// The part of the length in a word's weight (BM25's b).
const LENGTH_PART: f64 = 0.75;

/// The number of words of a document that is neither long nor short.
const LENGTH_USUAL: f64 = 100.0;

/// A document that a query matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) document: u32,
    pub(super) score: f64,
}

/// Returns the matches of a query in a segment, ascending by document. Takes the number of occurrences that were read from
/// `left`.
pub(super) fn matches(
    segment: &SegmentReader<'_>,
    query: &QueryWords,
    left: &mut usize,
) -> Result<Vec<Match>, SearchError> {
    let (mut found, mut frequent): (Option<Vec<Match>>, Vec<&[u8]>) = (None, Vec::new());
    let (words, phrases): (Vec<_>, Vec<_>) =
        query.wanted.iter().partition(|phrase| phrase.single().is_some());
    for phrase in words.into_iter().chain(phrases) {
        match looked_up(segment, phrase, left)? {
            LookedUp::Frequent(word) => frequent.push(word),
            LookedUp::All(occurrences) => {
                if narrow(&mut found, &occurrences) == 0 {
                    return Ok(Vec::new());
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
        narrow(&mut found, &counted(postings, left));
    }
    let mut found = found.unwrap_or_default();
    for phrase in &query.unwanted {
        let unwanted = match looked_up(segment, phrase, left)? {
            LookedUp::All(occurrences) => occurrences,
            LookedUp::Frequent(word) => counted(segment.lists_with(word, numbers(&found))?, left),
        };
        found.retain(|one| {
            unwanted.binary_search_by_key(&one.document, |other| other.document).is_err()
        });
    }
    Ok(found)
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

fn numbers(found: &[Match]) -> impl Iterator<Item = u32> {
    found.iter().map(|one| one.document)
}

/// Takes the number of occurrences from `left`.
fn counted(postings: Postings, left: &mut usize) -> Vec<Occurrence> {
    *left = left.saturating_sub(postings.occurrences.len());
    postings.occurrences
}

/// Leaves the documents that also have these occurrences; returns their number.
fn narrow(found: &mut Option<Vec<Match>>, occurrences: &[Occurrence]) -> usize {
    let next = match found.take() {
        None => occurrences.iter().map(Match::of).collect(),
        Some(found) => both(&found, occurrences),
    };
    found.insert(next).len()
}

impl Match {
    fn of(occurrence: &Occurrence) -> Self {
        let Occurrence { document, class, count } = *occurrence;
        let relative = LENGTH_PART.mul_add(length_of(class) / LENGTH_USUAL, 1.0 - LENGTH_PART);
        let count = f64::from(count);
        let score = count * (SATURATION + 1.0) / SATURATION.mul_add(relative, count);
        Self { document, score }
    }
}

/// Returns the documents with both; their scores are sums.
fn both(found: &[Match], next: &[Occurrence]) -> Vec<Match> {
    let (mut joined, mut rest) = (Vec::new(), next.iter().peekable());
    for one in found {
        while rest.next_if(|next| next.document < one.document).is_some() {}
        if let Some(next) = rest.next_if(|next| next.document == one.document) {
            joined.push(Match { score: one.score + Match::of(next).score, ..*one });
        }
    }
    joined
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
            joined.add(next.document, next.class, &places);
        }
    }
    joined
}
