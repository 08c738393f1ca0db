//! Words of texts and queries, for an index that another engine keeps.
//!
//! The same tokenizer makes them as in our own index, so that what is found is the same.

use rusqlite::Connection;

use super::error::SearchError;
use super::index::TOKENIZER;
use super::query::Query;
use super::text::segmented;

/// The maximum length of a word that is indexed, in bytes.
const WORD_BYTES_MAX: usize = 1024;

/// Tokenizer of texts, with tables in memory.
#[derive(Debug)]
pub struct Words(Connection);

/// A word at its place in a text, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without case and accents.
    pub text: String,
    /// Its place.
    pub place: u32,
}

/// The words that a text must have, and those that it must not have, so that a query may match it. A text that has
/// them may still not match: phrases are not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordQuery {
    /// Words, and true for the beginning of a word.
    pub wanted: Vec<(String, bool)>,
    /// Words that no match has, and true for the beginning of a word.
    pub unwanted: Vec<(String, bool)>,
}

impl Words {
    /// Prepares the tables.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn new() -> Result<Self, SearchError> {
        let memory = Connection::open_in_memory()?;
        memory.execute_batch(&format!(
            "CREATE VIRTUAL TABLE texts USING fts5(text, {TOKENIZER});
             CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance);"
        ))?;
        Ok(Self(memory))
    }

    /// Returns the words of a text, in order.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn of(&self, text: &str) -> Result<Vec<Word>, SearchError> {
        self.of_segmented(&segmented(text))
    }

    fn of_segmented(&self, text: &str) -> Result<Vec<Word>, SearchError> {
        let insert = "INSERT INTO texts(rowid, text) VALUES (1, ?)";
        self.0.prepare_cached(insert)?.execute([text])?;
        let words = {
            let select = "SELECT term, offset FROM words ORDER BY offset";
            let mut select = self.0.prepare_cached(select)?;
            let rows = select.query_map([], |row| {
                Ok(Word { text: row.get(0)?, place: row.get::<_, u32>(1)?.saturating_add(1) })
            })?;
            rows.collect::<rusqlite::Result<Vec<Word>>>()?
        };
        self.0.prepare_cached("DELETE FROM texts WHERE rowid = 1")?.execute([])?;
        Ok(words.into_iter().filter(|word| word.text.len() <= WORD_BYTES_MAX).collect())
    }

    /// Returns the words of a query.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn query(&self, query: &Query) -> Result<WordQuery, SearchError> {
        let mut words = WordQuery::default();
        for (text, is_prefix) in query.wanted() {
            words.wanted.append(&mut self.term(text, is_prefix)?);
        }
        for (text, is_prefix) in query.unwanted() {
            let mut term = self.term(text, is_prefix)?;
            // A text may have the words of an excluded phrase, but not in a row.
            if term.len() == 1 {
                words.unwanted.append(&mut term);
            }
        }
        Ok(words)
    }

    fn term(&self, text: &str, is_prefix: bool) -> Result<Vec<(String, bool)>, SearchError> {
        let words = self.of_segmented(text)?;
        let last = words.len();
        let numbered = (1..).zip(words);
        Ok(numbered.map(|(n, word)| (word.text, is_prefix && n == last)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_index() {
        let words = Words::new().unwrap();
        let of = |text: &str| -> Vec<String> {
            words.of(text).unwrap().into_iter().map(|word| word.text).collect()
        };
        assert_eq!(
            of("Naïve DISKS, disk-full; 日本"),
            ["naive", "disks", "disk", "full", "日", "本"]
        );
        assert_eq!(words.of("a b").unwrap()[1], Word { text: "b".to_owned(), place: 2 });
        assert!(of("").is_empty());
    }

    #[test]
    fn a_query_is_its_words() {
        let words = Words::new().unwrap();
        let query = words.query(&"Disk \"is full\" err* -quota -\"a b\"".parse().unwrap()).unwrap();
        let word = |text: &str, is_prefix| (text.to_owned(), is_prefix);
        let wanted =
            [word("disk", false), word("is", false), word("full", false), word("err", true)];
        assert_eq!(query.wanted, wanted);
        assert_eq!(query.unwanted, [word("quota", false)]);
    }
}
