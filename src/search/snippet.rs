//! Snippets: the words around the best match of a query in a text, with the matches marked.
//!
//! The texts go through an index in memory, so that words match exactly as they were found.

use rusqlite::Connection;

use super::error::SearchError;
use super::query::Query;
use super::text::{GAP, segmented};
use super::words::TOKENIZER;

/// The maximum number of words in a snippet.
const WORDS_MAX: u32 = 32;

/// Mark the beginning and end of a match in SQLite's snippet; no text contains them.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

/// Returns a snippet of each text that the query matches: HTML whose only tags are `<mark>` and `</mark>`. `goes_on` is
/// asked between texts.
///
/// # Errors
///
/// [`SearchError`] if SQLite fails, or [`SearchError::Ended`].
pub fn snippets(
    query: &Query,
    texts: impl IntoIterator<Item = String>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Option<String>>, SearchError> {
    let mut found = Vec::new();
    let memory = Connection::open_in_memory()?;
    memory.execute_batch(&format!("CREATE VIRTUAL TABLE texts USING fts5(text, {TOKENIZER})"))?;
    let mut insert = memory.prepare("INSERT INTO texts(rowid, text) VALUES (?, ?)")?;
    for (at, text) in (0_i64..).zip(texts) {
        if !goes_on() {
            return Err(SearchError::Ended);
        }
        insert.execute((at, segmented(&text)))?;
        found.push(None);
    }
    let [begin, end] = MARKS;
    let sql = "SELECT rowid, snippet(texts, 0, ?, ?, '…', ?) FROM texts WHERE texts MATCH ?";
    let mut select = memory.prepare(sql)?;
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
        snippets(&query.parse().unwrap(), [text.to_owned()], &|| true).unwrap().remove(0)
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
}
