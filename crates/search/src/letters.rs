//! Letters: which characters are parts of words, and what they become, as SQLite's tokenizer has it.
//!
//! Snippets go through that tokenizer, and what is found must be what is marked. So no table of characters stands here: the
//! tokenizer is asked about a page of characters at once, when a text first has one of them.

use std::collections::HashMap;

use rusqlite::Connection;

use super::error::SearchError;

/// The tokenizer: words of letters, digits and combining marks. Texts are folded before; of ASCII it folds the case.
pub(super) const TOKENIZER: &str =
    "tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\"";

/// The characters in a page. There are 8,704 pages of 32 bytes.
const PAGE: u32 = 128;

/// A byte that is a small letter or a digit of ASCII.
const SMALL: u8 = 1;

/// A byte that is a capital letter of ASCII.
pub(super) const CAPITAL: u8 = 2;

/// A byte that separates words. Other kinds that end a run of ASCII are greater.
pub(super) const SEPARATOR: u8 = 4;

/// A byte of a character outside of ASCII.
pub(super) const OTHER: u8 = 8;

/// The kind of each byte.
const KINDS: [u8; 256] = {
    let (mut kinds, mut byte) = ([OTHER; 256], 0_u8);
    let mut places = kinds.as_mut_slice();
    while let Some((kind, after)) = places.split_first_mut()
        && byte < 128
    {
        *kind = match byte {
            b'0'..=b'9' | b'a'..=b'z' => SMALL,
            b'A'..=b'Z' => CAPITAL,
            _ => SEPARATOR,
        };
        (places, byte) = (after, byte + 1);
    }
    kinds
};

/// Returns the kind of a byte.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
pub(super) fn kind(byte: u8) -> u8 {
    KINDS[usize::from(byte)]
}

/// The characters of words, as far as texts had them.
#[derive(Debug)]
pub(super) struct Letters {
    tokenizer: Connection,
    pages: HashMap<u32, Page>,
    /// Characters that become others.
    changed: HashMap<char, char>,
    /// The page of the last character: the next one is likely to be in it too.
    last: (u32, Page),
}

/// The characters of a page, each as a bit.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    of_words: u128,
    /// Those that become others.
    changed: u128,
}

impl Letters {
    pub(super) fn new() -> Result<Self, SearchError> {
        let tokenizer = Connection::open_in_memory()?;
        tokenizer.execute_batch(&format!(
            "CREATE VIRTUAL TABLE texts USING fts5(text, content = '', {TOKENIZER});
             CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance);"
        ))?;
        let (pages, changed) = (HashMap::new(), HashMap::new());
        Ok(Self { tokenizer, pages, changed, last: (u32::MAX, Page::default()) })
    }

    /// Returns what a character becomes in a word; `None` if it separates words.
    pub(super) fn of(&mut self, c: char) -> Result<Option<char>, SearchError> {
        let (page, bit) = (u32::from(c) / PAGE, 1 << (u32::from(c) % PAGE));
        if page != self.last.0 {
            let known = self.pages.get(&page).copied();
            self.last = (page, known.map_or_else(|| self.learn(page), Ok)?);
        }
        let (_, page) = self.last;
        if page.of_words & bit == 0 {
            return Ok(None);
        }
        let changed = if page.changed & bit == 0 { None } else { self.changed.get(&c) };
        Ok(Some(changed.copied().unwrap_or(c)))
    }

    /// Asks the tokenizer about a page: each character is a text.
    fn learn(&mut self, number: u32) -> Result<Page, SearchError> {
        let mut page = Page::default();
        // It is rolled back: the texts leave nothing.
        let transaction = self.tokenizer.unchecked_transaction()?;
        let mut insert =
            transaction.prepare_cached("INSERT INTO texts(rowid, text) VALUES (?, ?)")?;
        let first = number * PAGE;
        for c in (first..first + PAGE).filter_map(char::from_u32) {
            insert.execute((u32::from(c), c.to_string()))?;
        }
        let mut select = transaction.prepare_cached("SELECT term, doc FROM words")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let term = row.get_ref(0)?.as_str().map_err(|_| SearchError::Damaged)?.chars().next();
            let c = char::from_u32(row.get(1)?).ok_or(SearchError::Damaged)?;
            let (term, bit) = (term.ok_or(SearchError::Damaged)?, 1 << (u32::from(c) % PAGE));
            page.of_words |= bit;
            if term != c {
                page.changed |= bit;
                self.changed.insert(c, term);
            }
        }
        self.pages.insert(number, page);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_as_the_tokenizer_has_it() {
        let mut letters = Letters::new().unwrap();
        for byte in 0..128_u8 {
            let c = char::from(byte);
            let letter = letters.of(c).unwrap();
            let expected = match letter {
                None => SEPARATOR,
                Some(letter) if letter == c => SMALL,
                Some(letter) => {
                    assert_eq!(letter, c.to_ascii_lowercase());
                    CAPITAL
                }
            };
            assert_eq!(kind(byte), expected, "{c:?}");
        }
        assert!((128..=255).all(|byte| kind(byte) == OTHER));
    }

    #[test]
    fn characters_of_many_scripts_are_parts_of_words() {
        let mut letters = Letters::new().unwrap();
        for _ in 0..2 {
            for (c, expected) in [
                ('é', Some('é')),
                ('Ж', Some('ж')),
                ('日', Some('日')),
                ('\u{93F}', Some('\u{93F}')),
                ('\u{200B}', None),
                ('€', None),
                ('“', None),
            ] {
                assert_eq!(letters.of(c).unwrap(), expected, "{c:?}");
            }
        }
    }
}
