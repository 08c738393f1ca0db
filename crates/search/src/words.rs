//! Words of texts and queries.
//!
//! They are those of SQLite's tokenizer, which makes snippets, so that what is found is what is marked.

use std::cell::RefCell;

use super::error::SearchError;
use super::fold::folded;
use super::letters::{CAPITAL, Letters, OTHER, SEPARATOR, kind};
use super::query::Query;

/// The version of the words of a text: it goes up if a text has other words. What an index has of another version is made anew.
pub const WORDS_VERSION: i64 = 1;

/// The maximum length of a word that is indexed, in bytes.
const WORD_BYTES_MAX: usize = 1024;

/// Tokenizer of texts.
#[derive(Debug)]
pub struct Words(RefCell<Scanner>);

/// What the tokenizer has learnt, and the word that it makes.
#[derive(Debug)]
struct Scanner {
    letters: Letters,
    word: String,
}

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

impl Scanner {
    /// Gives each word of a folded text.
    fn each(&mut self, text: &str, mut each: impl FnMut(&str)) -> Result<(), SearchError> {
        let mut rest = text;
        while !rest.is_empty() {
            let mut seen = 0;
            let is_end = |byte: &u8| {
                seen |= kind(*byte);
                seen >= SEPARATOR
            };
            let end = rest.as_bytes().iter().position(is_end);
            let (run, behind) =
                rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
            if seen & OTHER != 0 {
                rest = self.mixed(run, behind)?;
            } else if seen & CAPITAL != 0 {
                self.word.clear();
                self.word.push_str(run);
                self.word.make_ascii_lowercase();
                rest = behind.get(1..).unwrap_or_default();
            } else {
                if !run.is_empty() {
                    each(run);
                }
                rest = behind.get(1..).unwrap_or_default();
                continue;
            }
            if !self.word.is_empty() {
                each(&self.word);
            }
        }
        Ok(())
    }

    /// Makes the word that begins with a run of ASCII and goes on outside of ASCII. Returns what is behind it.
    fn mixed<'a>(&mut self, run: &str, rest: &'a str) -> Result<&'a str, SearchError> {
        self.word.clear();
        self.word.push_str(run);
        self.word.make_ascii_lowercase();
        for (at, c) in rest.char_indices() {
            let letter = if c.is_ascii() {
                c.is_ascii_alphanumeric().then(|| c.to_ascii_lowercase())
            } else {
                self.letters.of(c)?
            };
            match letter {
                Some(letter) => self.word.push(letter),
                None => return Ok(rest.get(at + c.len_utf8()..).unwrap_or_default()),
            }
        }
        Ok("")
    }
}

impl Words {
    /// Prepares the tables.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn new() -> Result<Self, SearchError> {
        Ok(Self(RefCell::new(Scanner { letters: Letters::new()?, word: String::new() })))
    }

    /// Returns the words of a text, in order.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn of(&self, text: &str) -> Result<Vec<Word>, SearchError> {
        self.of_folded(&folded(text))
    }

    fn of_folded(&self, text: &str) -> Result<Vec<Word>, SearchError> {
        let mut words = Vec::new();
        self.each(text, &mut 0, |word, place| {
            words.push(Word { text: word.to_owned(), place: place.saturating_add(1) });
        })?;
        Ok(words)
    }

    /// Gives each word of a folded text in order with its place. The first one has the place `next`, which goes on.
    pub(super) fn each(
        &self,
        text: &str,
        next: &mut u32,
        mut each: impl FnMut(&str, u32),
    ) -> Result<(), SearchError> {
        self.0.borrow_mut().each(text, |word| {
            if word.len() <= WORD_BYTES_MAX {
                each(word, *next);
            }
            *next += 1;
        })
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
            let words = self.of_folded(text)?.into_iter().map(|word| word.text);
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
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;
    use crate::letters::TOKENIZER;

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
    fn words_have_their_places_and_long_ones_none() {
        let words = Words::new().unwrap();
        let mut all = Vec::new();
        let text = format!("b a {} B", "x".repeat(WORD_BYTES_MAX + 1));
        let mut next = 7;
        words.each(&text, &mut next, |word, place| all.push((word.to_owned(), place))).unwrap();
        assert_eq!(all, [("b", 7), ("a", 8), ("b", 10)].map(|(word, at)| (word.to_owned(), at)));
        assert_eq!(next, 11);
    }

    /// Returns the words of a folded text as SQLite's tokenizer makes them.
    fn of_the_tokenizer(text: &str) -> Vec<String> {
        let memory = Connection::open_in_memory().unwrap();
        memory
            .execute_batch(&format!(
                "CREATE VIRTUAL TABLE texts USING fts5(text, content = '', {TOKENIZER});
                 CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance);"
            ))
            .unwrap();
        memory.execute("INSERT INTO texts(rowid, text) VALUES (1, ?)", [text]).unwrap();
        let mut select = memory.prepare("SELECT term FROM words ORDER BY offset").unwrap();
        let words = select.query_map([], |row| row.get(0)).unwrap();
        words.collect::<Result<_, _>>().unwrap()
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_tokenizer(text in "([ -~]{0,6}|\\PC{0,4}|[\u{300}-\u{36F}é日가ЖΣ€]{0,3}){0,8}") {
            let words = Words::new().unwrap();
            for text in [folded(&text), text.replace('\0', " ")] {
                let of: Vec<String> = words.of_folded(&text).unwrap().into_iter().map(|word| word.text).collect();
                prop_assert_eq!(of, of_the_tokenizer(&text));
            }
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
