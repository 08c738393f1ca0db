//! Snippets: the words around the best match of a query in a text, with the matches marked.
//!
//! The texts go through an index in memory, so that words match exactly as they were found.

use parking_lot::Mutex;
use rusqlite::Connection;

use super::error::SearchError;
use super::query::Query;
use super::text::{GAP, segmented};
use super::words::TOKENIZER;

/// The maximum number of words in a snippet.
const WORDS_MAX: u32 = 32;

/// Mark the beginning and end of a match in SQLite's snippet; no text contains them.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

/// The number of connections that are kept.
const KEPT_MAX: usize = 2;

/// Maker of snippets, with tables in memory that are kept from one search to the next.
#[derive(Debug, Default)]
pub struct Snippets(Mutex<Vec<Connection>>);

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
        let found = marked(&memory, query, texts, goes_on)?;
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(memory);
        }
        Ok(found)
    }
}

fn made() -> Result<Connection, SearchError> {
    let memory = Connection::open_in_memory()?;
    memory.execute_batch(&format!("CREATE VIRTUAL TABLE texts USING fts5(text, {TOKENIZER})"))?;
    Ok(memory)
}

fn marked(
    memory: &Connection,
    query: &Query,
    texts: impl IntoIterator<Item = String>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Option<String>>, SearchError> {
    let mut found = Vec::new();
    // It is rolled back: the texts leave nothing.
    let transaction = memory.unchecked_transaction()?;
    let mut insert = transaction.prepare_cached("INSERT INTO texts(rowid, text) VALUES (?, ?)")?;
    for (at, text) in (0_i64..).zip(texts) {
        if !goes_on() {
            return Err(SearchError::Ended);
        }
        insert.execute((at, segmented(&text)))?;
        found.push(None);
    }
    let [begin, end] = MARKS;
    let sql = "SELECT rowid, snippet(texts, 0, ?, ?, '…', ?) FROM texts WHERE texts MATCH ?";
    let mut select = transaction.prepare_cached(sql)?;
    let values = (begin.to_string(), end.to_string(), WORDS_MAX, query.expression());
    let mut rows = select.query(values)?;
    while let Some(row) = rows.next()? {
        let (at, snippet): (i64, String) = (row.get(0)?, row.get(1)?);
        if let Some(place) = usize::try_from(at).ok().and_then(|at| found.get_mut(at)) {
            *place = Some(html(&snippet));
        }
    }
    Ok(found)
}

fn html(snippet: &str) -> String {
    let mut out = String::with_capacity(snippet.len() + 32);
    for c in snippet.chars() {
        match c {
            '\u{2}' => out.push_str("<mark>"),
            '\u{3}' => out.push_str("</mark>"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            GAP => {}
            '\n' => out.push(' '),
            other => out.push(other),
        }
    }
    out
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
        assert_eq!(snippet("b", "<b>&\u{2}"), marked("&lt;<mark>b</mark>&gt;&amp; "));
        assert_eq!(snippet("disk -full", "disk is full"), None);
        assert_eq!(snippet("disc", "disk is full"), None);
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
