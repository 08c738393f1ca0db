//! Words of texts and queries.
//!
//! They are those of SQLite's tokenizer, which makes snippets, so that what is found is what is marked.

use std::cell::RefCell;

use exact_json::tokens::run_before;

use super::error::SearchError;
use super::fold::{folded, is_plain};
use super::letters::{BLOCK_BYTES, Letters, letters_of};
use super::query::Query;

/// The version of the words of a text: it goes up if a text has other words. What an index has of another version is made anew.
pub const WORDS_VERSION: i64 = 2;

/// The maximum length of a word that is indexed, in bytes.
const WORD_BYTES_MAX: usize = 1024;

const SPACES: &str = match str::from_utf8(&[b' '; BLOCK_BYTES]) {
    Ok(spaces) => spaces,
    Err(_) => "",
};

/// Tokenizer of texts.
#[derive(Debug)]
pub struct Words(RefCell<Texts>);

/// Texts whose words are cut together, a block of bytes at a time.
#[derive(Debug)]
pub(super) struct Texts {
    letters: Letters,
    /// All of them. Outside of ASCII it has letters alone, as they are in words.
    all: String,
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

impl Texts {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) -> Result<(), SearchError> {
        // Control characters separate words, whether they are folded or not.
        if text.is_ascii() {
            self.all.push_str(text);
        } else if is_plain(text) {
            self.add_folded(text)?;
        } else {
            self.add_folded(&folded(text))?;
        }
        self.all.push(' ');
        Ok(())
    }

    /// Adds a folded text; words go on in the next one.
    fn add_folded(&mut self, text: &str) -> Result<(), SearchError> {
        let mut rest = text;
        loop {
            let (run, others) = rest.split_at(run_before(rest.as_bytes(), |byte| !byte.is_ascii()));
            self.all.push_str(run);
            let mut chars = others.chars();
            loop {
                rest = chars.as_str();
                match chars.next() {
                    Some(c) if c.is_ascii() => break,
                    Some(c) => self.all.push(self.letters.of(c)?.unwrap_or(' ')),
                    None => return Ok(()),
                }
            }
        }
    }

    /// Gives each word with its place, from 0.
    fn cut(&mut self, mut each: impl FnMut(Spelled<'_>, u32)) {
        self.all.make_ascii_lowercase();
        // They end the last word, and fill the last block.
        self.all.push_str(SPACES);
        let bytes = self.all.as_bytes();
        let (mut begin, mut place, mut goes_on) = (0, 0, 0);
        for (block, at) in bytes.as_chunks().0.iter().zip((0..).step_by(BLOCK_BYTES)) {
            let letters = letters_of(block);
            let before = letters << 1 | goes_on;
            let (mut begins, mut ends) = (Places(letters & !before), Places(before & !letters));
            if goes_on == 0 {
                begin = at + begins.next();
            }
            goes_on = letters >> (BLOCK_BYTES - 1);
            while ends.0 != 0 {
                let length = at + ends.next() - begin;
                if length <= WORD_BYTES_MAX
                    && let Some(spelled) = Spelled::of(bytes, begin, length)
                {
                    each(spelled, place);
                }
                place += 1;
                begin = at + begins.next();
            }
        }
    }
}

/// Places within a block, each as a bit.
struct Places(u64);

impl Places {
    /// Takes the first one; the end of the block if there is none.
    fn next(&mut self) -> usize {
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}

/// A word as it is spelled, with what is behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelled<'a> {
    /// Its first eight bytes as a number. Zeros, which no word has, fill a shorter one.
    pub(super) first: u64,
    pub(super) length: usize,
    rest: &'a [u8],
}

impl<'a> Spelled<'a> {
    #[inline]
    fn of(bytes: &'a [u8], begin: usize, length: usize) -> Option<Self> {
        let rest = bytes.get(begin..)?;
        let first = u64::from_be_bytes(*rest.first_chunk()?);
        let behind = if length > 8 { 0 } else { 64 - 8 * length };
        Some(Self { first: first >> behind << behind, length, rest })
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.rest.get(..self.length).unwrap_or_default()
    }
}

impl Words {
    /// Prepares the tables.
    ///
    /// # Errors
    ///
    /// [`SearchError`] if SQLite fails.
    pub fn new() -> Result<Self, SearchError> {
        Ok(Self(RefCell::new(Texts { letters: Letters::new()?, all: String::new() })))
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
        self.each(
            |texts| texts.add_folded(text),
            |word, place| {
                let text = String::from_utf8_lossy(word.bytes()).into_owned();
                words.push(Word { text, place: place.saturating_add(1) });
            },
        )?;
        Ok(words)
    }

    /// Gives each word of the texts that `gather` adds in order, with its place from 0.
    pub(super) fn each(
        &self,
        gather: impl FnOnce(&mut Texts) -> Result<(), SearchError>,
        each: impl FnMut(Spelled<'_>, u32),
    ) -> Result<(), SearchError> {
        let mut texts = self.0.borrow_mut();
        texts.all.clear();
        gather(&mut texts)?;
        texts.cut(each);
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
    use crate::segment::merge::beginning;

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
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        let texts = ["b a", &long, &long[1..], "B"];
        words
            .each(
                |to| texts.iter().try_for_each(|text| to.add(text)),
                |word, place| {
                    assert_eq!(word.first, beginning(word.bytes()));
                    all.push((word.bytes().to_owned(), place));
                },
            )
            .unwrap();
        let expected = [("b", 0), ("a", 1), (&long[1..], 3), ("b", 4)];
        assert_eq!(all, expected.map(|(word, at)| (word.as_bytes().to_owned(), at)));
    }

    #[test]
    fn words_may_begin_and_end_anywhere_in_a_block() {
        let words = Words::new().unwrap();
        for before in 0..BLOCK_BYTES {
            for length in [1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129] {
                let word = "x".repeat(length);
                let text = format!("{}{word}.Y", ".".repeat(before));
                let found = words.of(&text).unwrap();
                let expected = [(word, 1), ("y".to_owned(), 2)];
                assert_eq!(found, expected.map(|(text, place)| Word { text, place }));
            }
        }
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
