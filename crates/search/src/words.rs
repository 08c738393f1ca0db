//! Words of texts and queries.
//!
//! SQLite's tokenizer makes them, as it does for snippets, so that what is found is what is marked.

use rusqlite::Connection;

use super::error::SearchError;
use super::fold::folded;
use super::query::Query;

/// The version of the words of a text: it goes up if a text has other words. What an index has of another version is made anew.
pub const WORDS_VERSION: i64 = 1;

/// The tokenizer: words of letters, digits and combining marks. Texts are folded before; of ASCII it folds the case.
pub(super) const TOKENIZER: &str =
    "tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\"";

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

/// Words in a row. Of a prefix, the last one is the beginning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// One word or more.
    pub words: Vec<String>,
    /// True for a prefix.
    pub is_prefix: bool,
}

/// The words of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryWords {
    /// The phrases that a text must have.
    pub wanted: Vec<Phrase>,
    /// The phrases that a text must not have.
    pub unwanted: Vec<Phrase>,
}

impl Phrase {
    /// Returns the word of a phrase that is one whole word.
    pub(super) fn single(&self) -> Option<&[u8]> {
        match self.words.as_slice() {
            [word] if !self.is_prefix => Some(word.as_bytes()),
            _ => None,
        }
    }
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
            "CREATE VIRTUAL TABLE texts USING fts5(text, content = '', {TOKENIZER});
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
        self.of_folded(folded(text))
    }

    fn of_folded(&self, text: String) -> Result<Vec<Word>, SearchError> {
        let mut words = Vec::new();
        self.each([text], |text, _, place| {
            words.push(Word { text: text.to_owned(), place: place.saturating_add(1) });
        })?;
        words.sort_unstable_by_key(|word| word.place);
        Ok(words)
    }

    /// Gives each word of folded texts: in the order of words, then of texts, then of places, which count from 0.
    pub(super) fn each(
        &self,
        texts: impl IntoIterator<Item = String>,
        mut each: impl FnMut(&str, u32, u32),
    ) -> Result<(), SearchError> {
        // It is rolled back: the texts leave nothing.
        let transaction = self.0.unchecked_transaction()?;
        let mut insert =
            transaction.prepare_cached("INSERT INTO texts(rowid, text) VALUES (?, ?)")?;
        for (at, text) in (0_i64..).zip(texts) {
            insert.execute((at, text))?;
        }
        let mut select = transaction.prepare_cached("SELECT term, doc, offset FROM words")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let word = row.get_ref(0)?.as_str().map_err(|_| SearchError::Damaged)?;
            if word.len() <= WORD_BYTES_MAX {
                each(word, row.get(1)?, row.get(2)?);
            }
        }
        Ok(())
    }

    /// Returns the words of a query, each phrase once.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn query(&self, query: &Query) -> Result<QueryWords, SearchError> {
        let (wanted, unwanted) = (self.phrases(query.wanted())?, self.phrases(query.unwanted())?);
        Ok(QueryWords { wanted, unwanted })
    }

    fn phrases<'a>(
        &self,
        terms: impl Iterator<Item = (&'a str, bool)>,
    ) -> Result<Vec<Phrase>, SearchError> {
        let mut phrases = Vec::new();
        for (text, is_prefix) in terms {
            let words = self.of_folded(text.to_owned())?.into_iter().map(|word| word.text);
            let phrase = Phrase { words: words.collect(), is_prefix };
            // Two terms may be the same without case and accents.
            if !phrase.words.is_empty() && !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        Ok(phrases)
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
            of("Naïve DISKS, disk-full; 日本 ΑΘΉΝΑ"),
            ["naive", "disks", "disk", "full", "日", "本", "αθηνα"]
        );
        assert_eq!(words.of("a b").unwrap()[1], Word { text: "b".to_owned(), place: 2 });
        assert!(of("").is_empty());
    }

    #[test]
    fn words_come_in_order_and_leave_nothing() {
        let words = Words::new().unwrap();
        for _ in 0..2 {
            let mut all = Vec::new();
            let texts = ["b a b", "", "a c"].map(str::to_owned);
            words
                .each(texts, |word, text, place| all.push((word.to_owned(), text, place)))
                .unwrap();
            let word = |word: &str, text, place| (word.to_owned(), text, place);
            let expected = [
                word("a", 0, 1),
                word("a", 2, 0),
                word("b", 0, 0),
                word("b", 0, 2),
                word("c", 2, 1),
            ];
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn a_query_is_its_words_each_phrase_once() {
        let words = Words::new().unwrap();
        let text = "Disk \"is full\" err* disk DÍSK err -quota -\"a b\" -Quota";
        let query = words.query(&text.parse().unwrap()).unwrap();
        let phrase = |words: &[&str], is_prefix| Phrase {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            is_prefix,
        };
        let wanted = [
            phrase(&["disk"], false),
            phrase(&["is", "full"], false),
            phrase(&["err"], true),
            phrase(&["err"], false),
        ];
        assert_eq!(query.wanted, wanted);
        assert_eq!(query.unwanted, [phrase(&["quota"], false), phrase(&["a", "b"], false)]);
    }
}
