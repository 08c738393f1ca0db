//! Snippets: the words around the best matches of a query in a text, with the matches marked.
//!
//! The texts go through an index in memory, so that words match exactly as they were found. Which words are shown is chosen here: the
//! time of FTS5's own snippets grows with the square of the matches. Texts match as they are folded, and are shown as they are.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::error::SearchError;
use super::fold::{Folded, GAP, folded, is_between_words, is_word_alone};
use super::letters::TOKENIZER;
use super::query::Query;

/// The maximum number of words in a snippet.
const WORDS_MAX: usize = 32;

/// The length of a part of a long text, in bytes.
const PART_BYTES: usize = 4 << 10;

/// The bytes that a part has of the one before it, so that a phrase stands whole in one of them.
const OVERLAP_BYTES: usize = 1 << 10;

/// Mark the beginning and end of a match in SQLite's answer; no text contains them.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

/// The number of connections that are kept.
const KEPT_MAX: usize = 2;

/// Maker of snippets, with tables in memory that are kept from one search to the next.
#[derive(Debug, Default)]
pub struct Snippets(Mutex<Vec<Connection>>);

/// A text, or the part of a long one that has the most terms of a query.
struct Excerpt {
    text: String,
    folded: Folded,
    /// True if there is text before it.
    has_before: bool,
    /// True if there is text after it.
    has_after: bool,
    matches: Vec<Matched>,
}

/// A match of a term, by its number, in the bytes of an excerpt.
struct Matched {
    term: usize,
    bytes: Range<usize>,
}

impl Snippets {
    /// Returns a snippet of each text that the query matches: HTML whose only tags are `<mark>` and `</mark>`. `goes_on` is
    /// asked between texts.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails, or [`SearchError::Ended`].
    pub fn of(
        &self,
        query: &Query,
        texts: impl IntoIterator<Item = String>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<String>>, SearchError> {
        let kept = self.0.lock().pop();
        let memory = kept.map_or_else(made, Ok)?;
        let excerpts = excerpts(&memory, query, texts, goes_on)?;
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(memory);
        }
        drop(kept);
        Ok(excerpts.into_iter().map(|excerpt| excerpt.map(Excerpt::snippet)).collect())
    }
}

fn made() -> Result<Connection, SearchError> {
    let memory = Connection::open_in_memory()?;
    for table in ["excerpts", "long_texts", "parts"] {
        memory.execute_batch(&format!(
            "CREATE VIRTUAL TABLE {table} USING fts5(text, {TOKENIZER})"
        ))?;
    }
    Ok(memory)
}

/// Returns an excerpt of each text that the query matches.
fn excerpts(
    memory: &Connection,
    query: &Query,
    texts: impl IntoIterator<Item = String>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Option<Excerpt>>, SearchError> {
    let terms: Vec<String> = query.wanted_expressions().collect();
    let mut excerpts = Vec::new();
    // It is rolled back: the texts leave nothing.
    let transaction = memory.unchecked_transaction()?;
    let mut insert =
        transaction.prepare_cached("INSERT INTO excerpts(rowid, text) VALUES (?, ?)")?;
    let mut insert_long =
        transaction.prepare_cached("INSERT INTO long_texts(rowid, text) VALUES (?, ?)")?;
    for (at, text) in (0_i64..).zip(texts) {
        if !goes_on() {
            return Err(SearchError::Ended);
        }
        let folded = if is_long(&text) {
            insert_long.execute(params![at, folded(&text)])?;
            Folded::default()
        } else {
            let folded = Folded::of(&text);
            insert.execute(params![at, folded.text])?;
            folded
        };
        excerpts.push(Some(Excerpt {
            text,
            folded,
            has_before: false,
            has_after: false,
            matches: Vec::new(),
        }));
    }
    let whole = query.expression();
    let mut matching =
        rows(&transaction, "SELECT rowid FROM excerpts WHERE excerpts MATCH ?", &whole)?;
    matching.extend(rows(
        &transaction,
        "SELECT rowid FROM long_texts WHERE long_texts MATCH ?",
        &whole,
    )?);
    for (at, slot) in excerpts.iter_mut().enumerate() {
        *slot = slot.take().filter(|_| matching.contains(&at));
        let Some(excerpt) = slot.as_mut().filter(|excerpt| is_long(&excerpt.text)) else {
            continue;
        };
        if !goes_on() {
            return Err(SearchError::Ended);
        }
        *excerpt = best_part(&transaction, &terms, &excerpt.text)?;
        insert.execute(params![at.cast_signed(), excerpt.folded.text])?;
    }
    let [begin, end] = MARKS.map(String::from);
    let sql = "SELECT rowid, highlight(excerpts, 0, ?, ?) FROM excerpts WHERE excerpts MATCH ?";
    let mut select = transaction.prepare_cached(sql)?;
    for (number, term) in terms.iter().enumerate() {
        let mut rows = select.query((&begin, &end, term))?;
        while let Some(row) = rows.next()? {
            let (at, marked) = (row.get::<_, u32>(0)? as usize, row.get_ref(1)?);
            let marked = marked.as_str().map_err(|_| SearchError::Damaged)?;
            if let Some(Some(excerpt)) = excerpts.get_mut(at) {
                let Excerpt { folded, matches, .. } = excerpt;
                let places = marks(marked).map(|bytes| folded.original(&bytes));
                matches.extend(places.map(|bytes| Matched { term: number, bytes }));
            }
        }
    }
    Ok(excerpts)
}

/// Returns true for a text of which a part is shown.
const fn is_long(text: &str) -> bool {
    text.len() > PART_BYTES
}

/// Returns the numbers of the rows that an expression matches.
fn rows(memory: &Connection, sql: &str, expression: &str) -> Result<HashSet<usize>, SearchError> {
    let mut select = memory.prepare_cached(sql)?;
    let rows = select.query_map([expression], |row| Ok(row.get::<_, u32>(0)? as usize))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the first of the parts with the most terms.
fn best_part(memory: &Connection, terms: &[String], text: &str) -> Result<Excerpt, SearchError> {
    memory.execute_batch("SAVEPOINT parts")?;
    let parts = parts(text);
    let mut insert = memory.prepare_cached("INSERT INTO parts(rowid, text) VALUES (?, ?)")?;
    for (at, part) in (0_i64..).zip(&parts) {
        insert.execute(params![at, folded(part)])?;
    }
    let mut counts = vec![0_usize; parts.len()];
    for term in terms {
        for at in rows(memory, "SELECT rowid FROM parts WHERE parts MATCH ?", term)? {
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
        }
    }
    memory.execute_batch("ROLLBACK TO parts; RELEASE parts")?;
    let most = counts.iter().copied().max().unwrap_or(0);
    let best = counts.iter().position(|count| *count == most).unwrap_or(0);
    let text = parts.get(best).copied().unwrap_or_default().to_owned();
    Ok(Excerpt {
        folded: Folded::of(&text),
        text,
        has_before: best > 0,
        has_after: best + 1 < parts.len(),
        matches: Vec::new(),
    })
}

/// Returns the parts of a long text, each with the end of the one before it.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while rest.len() > PART_BYTES {
        let end = word_end(rest, PART_BYTES);
        let (part, next) = (&rest[..end], word_end(rest, end - OVERLAP_BYTES));
        parts.push(part);
        rest = &rest[next..];
    }
    parts.push(rest);
    parts
}

/// Returns a place at most at `max` and above its half where no word is cut in two, unless one is that long.
fn word_end(text: &str, max: usize) -> usize {
    let max = text.floor_char_boundary(max);
    let end = text[..max].rfind(|c| is_between_words(c) || is_word_alone(c));
    end.filter(|end| *end > max / 2).unwrap_or(max)
}

/// Returns the places between marks, in the text without them.
fn marks(marked: &str) -> impl Iterator<Item = Range<usize>> {
    let places = marked.match_indices(MARKS).enumerate();
    // Each mark before a place is one byte.
    let mut places = places.map(|(before, (at, _))| at - before);
    std::iter::from_fn(move || Some(places.next()?..places.next()?))
}

impl Excerpt {
    /// Returns the words around the most terms, or the first words if a match is in no part.
    fn snippet(mut self) -> String {
        self.matches.sort_unstable_by_key(|one| (one.bytes.start, one.bytes.end));
        let words = self.words();
        let Range { start, end } = self.shown(&words);
        let first = words.get(start).filter(|_| start > 0);
        let from = first.map_or(0, |word| word.start);
        let last = words.get(end).and_then(|_| words.get(end - 1));
        let to = last.map_or(self.text.len(), |word| word.end);
        let mut out = String::with_capacity(to.saturating_sub(from) + 64);
        if from > 0 || self.has_before {
            out.push('…');
        }
        let mut at = from;
        for bytes in joined(&self.matches) {
            let (start, end) = (bytes.start.clamp(at, to), bytes.end.clamp(at, to));
            if start < end {
                put(&self.text[at..start], &mut out);
                out.push_str("<mark>");
                put(&self.text[start..end], &mut out);
                out.push_str("</mark>");
                at = end;
            }
        }
        put(&self.text[at..to], &mut out);
        if to < self.text.len() || self.has_after {
            out.push('…');
        }
        out
    }

    /// Returns the words of the text. Those of a folded text are no fewer, since there gaps are between words too.
    fn words(&self) -> Vec<Range<usize>> {
        let mut words: Vec<Range<usize>> = Vec::new();
        let is_of_word = |(_, c): &(usize, char)| !is_between_words(*c);
        for (at, c) in self.folded.text.char_indices().filter(is_of_word) {
            let end = at + c.len_utf8();
            match words.last_mut() {
                Some(word) if word.end == at => word.end = end,
                Some(_) | None => words.push(at..end),
            }
        }
        words.iter().map(|word| self.folded.original(word)).collect()
    }

    /// Returns the words that are shown: those around the first matches of the most terms.
    fn shown(&self, words: &[Range<usize>]) -> Range<usize> {
        let word_at = |byte: usize| {
            words.partition_point(|word| word.end <= byte).min(words.len().saturating_sub(1))
        };
        let placed = self.matches.iter().map(|Matched { term, bytes }| {
            (*term, word_at(bytes.start)..word_at(bytes.end.saturating_sub(1)) + 1)
        });
        let placed: Vec<(usize, Range<usize>)> = placed.collect();
        // The matches of each term that begin at this one and end within a snippet.
        let (mut counts, mut next) = (HashMap::new(), 0);
        let mut best = (0, 0..0);
        for (at, (term, place)) in placed.iter().enumerate() {
            let end_max = place.start + WORDS_MAX;
            let is_within = |next: usize, place: &Range<usize>| next == at || place.end <= end_max;
            while let Some((other, place)) = placed.get(next)
                && is_within(next, place)
            {
                *counts.entry(*other).or_insert(0_usize) += 1;
                next += 1;
            }
            if counts.len() > best.0 {
                let last = placed.get(next - 1).map_or(place, |(_, last)| last);
                best = (counts.len(), place.start..last.end.min(end_max));
            }
            if let Entry::Occupied(mut count) = counts.entry(*term) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        let (_, Range { start, end }) = best;
        let before = WORDS_MAX.saturating_sub(end - start) / 2;
        let end = (start.saturating_sub(before) + WORDS_MAX).min(words.len());
        end.saturating_sub(WORDS_MAX)..end
    }
}

/// Returns the places of sorted matches, overlapping ones as one.
fn joined(matches: &[Matched]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for Matched { bytes, .. } in matches {
        match joined.last_mut() {
            Some(last) if bytes.start < last.end => last.end = last.end.max(bytes.end),
            Some(_) | None => joined.push(bytes.clone()),
        }
    }
    joined
}

/// Writes text as HTML.
fn put(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            GAP => {}
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(query: &str, text: &str) -> Option<String> {
        let query = query.parse().unwrap();
        Snippets::default().of(&query, [text.to_owned()], &|| true).unwrap().remove(0)
    }

    #[test]
    fn matches_are_marked() {
        let marked = |text: &str| Some(text.to_owned());
        assert_eq!(snippet("disk", "the Disk is full"), marked("the <mark>Disk</mark> is full"));
        assert_eq!(snippet("\"is full\"", "disk is full"), marked("disk <mark>is full</mark>"));
        assert_eq!(snippet("ful*", "disk is full"), marked("disk is <mark>full</mark>"));
        assert_eq!(snippet("naive", "naïve"), marked("<mark>naïve</mark>"));
        assert_eq!(snippet("本語", "日本語です"), marked("日<mark>本語</mark>です"));
        assert_eq!(snippet("हिन्दी", "यह हिन्दी है"), marked("यह <mark>हिन्दी</mark> है"));
        assert_eq!(snippet("게임", "온라인게임을 했다"), marked("온라인<mark>게임</mark>을 했다"));
        assert_eq!(snippet("strasse", "die Straße!"), marked("die <mark>Straße</mark>!"));
        assert_eq!(snippet("cafe", "e\u{301} cafe\u{301}s"), None);
        assert_eq!(snippet("cafe", "cafe\u{301}\n"), marked("<mark>cafe\u{301}</mark> "));
        assert_eq!(snippet("会社", "\u{337F}の"), marked("<mark>\u{337F}</mark>の"));
        assert_eq!(snippet("b", "<b>&\u{2}"), marked("&lt;<mark>b</mark>&gt;&amp; "));
        assert_eq!(snippet("disk -full", "disk is full"), None);
        assert_eq!(snippet("disc", "disk is full"), None);
    }

    #[test]
    fn the_words_around_the_most_terms_are_shown() {
        let text = |begin: &str, end: &str| {
            let (before, after) = ("before ".repeat(2_000), "after ".repeat(2_000));
            format!("disk {before}{begin}{end}{after}full")
        };
        let found = snippet("disk full", &text("the disk ", "is full ")).unwrap();
        let around = "before the <mark>disk</mark> is <mark>full</mark> after";
        assert!(found.contains(around), "{found}");
        assert!(found.starts_with("…before") && found.ends_with("after…"), "{found}");
        assert_eq!(found.split(' ').count(), WORDS_MAX);
        // They are nowhere near each other: the first one is shown.
        let found = snippet("disk full", &text("", "")).unwrap();
        assert!(
            found.starts_with("<mark>disk</mark> before") && found.ends_with("before…"),
            "{found}"
        );
        let found = snippet("full", &text("", "")).unwrap();
        assert!(
            found.starts_with("…after") && found.ends_with("after <mark>full</mark>"),
            "{found}"
        );
        assert_eq!(snippet("disk -the", &text("the ", "")), None);
        // A phrase is in one part, wherever parts end; unless more lies between its words.
        for words in 0..OVERLAP_BYTES / 2 {
            let text = format!(
                "{}the disk {}",
                "a ".repeat(PART_BYTES / 2 - words),
                "b ".repeat(PART_BYTES)
            );
            let found = snippet("\"the disk\"", &text).unwrap();
            assert!(found.contains("<mark>the disk</mark>"), "{found}");
        }
        let apart = format!("the{}disk", " ".repeat(2 * PART_BYTES));
        let found = snippet("\"the disk\"", &apart).unwrap();
        assert!(found.starts_with("the ") && found.ends_with(" …"), "{found}");
    }

    /// FTS5's own snippets took minutes for the like.
    #[test]
    fn a_text_of_many_matches_is_as_good_as_any() {
        let word = "a".repeat(35);
        let terms: Vec<String> = (3..35).map(|length| format!("{}*", "a".repeat(length))).collect();
        let text = format!("{word} ").repeat(7_000);
        let found = snippet(&terms.join(" "), &text).unwrap();
        let marked = format!("<mark>{word}</mark>");
        assert_eq!(found, format!("{}…", vec![marked; WORDS_MAX].join(" ")));
    }

    #[test]
    fn a_search_leaves_no_text_for_the_next_one() {
        let snippets = Snippets::default();
        let of = |query: &str, texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            snippets.of(&query.parse().unwrap(), texts, &|| true).unwrap()
        };
        let marked = Some("<mark>disk</mark>".to_owned());
        assert_eq!(of("disk", &["disk", "full"]), [marked.clone(), None]);
        assert_eq!(of("disk", &["full", "disk"]), [None, marked]);
        let ended = snippets.of(&"disk".parse().unwrap(), ["disk".to_owned()], &|| false);
        assert!(matches!(ended, Err(SearchError::Ended)));
        assert_eq!(of("full", &["disk"]), [None]);
    }
}
