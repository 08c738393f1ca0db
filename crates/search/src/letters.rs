//! Letters: which characters are parts of words, and what they become, as SQLite's tokenizer has it.
//!
//! Snippets go through that tokenizer, and what is found must be what is marked. So no table of characters stands here: the
//! tokenizer is asked about a page of characters at once, when a text first has one of them.

use std::collections::HashMap;

use rusqlite::Connection;
use wide::u8x16;

use super::error::SearchError;

/// The tokenizer: words of letters, digits and combining marks. Texts are folded before; of ASCII it folds the case.
pub(super) const TOKENIZER: &str =
    "tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\"";

/// The characters in a page. There are 8,704 pages of 32 bytes.
const PAGE: u32 = 128;

/// The bytes that are looked at together.
pub(super) const BLOCK_BYTES: usize = 64;

/// Returns a bit for each byte of a block, the first lowest: 1 if it is of a word. Capitals are none, and all that is not ASCII is.
pub(super) fn letters_of(block: &[u8; BLOCK_BYTES]) -> u64 {
    let (parts, _) = block.as_chunks();
    parts
        .iter()
        .rev()
        .fold(0, |letters, part| letters << u8x16::LANES | u64::from(letters_in(*part)))
}

fn letters_in(part: [u8; 16]) -> u32 {
    let part = u8x16::new(part);
    let is_among = |first: u8, last: u8| {
        let from_first = part - u8x16::splat(first);
        from_first.min(u8x16::splat(last - first)).cmp_eq(from_first)
    };
    // The mask is of the highest bits, which ASCII has not.
    let is_letter = part | is_among(b'a', b'z') | is_among(b'0', b'9');
    is_letter.move_mask().cast_unsigned()
}

/// The characters of words, as far as texts had them.
#[derive(Debug)]
pub(super) struct Letters {
    tokenizer: Connection,
    pages: Vec<Page>,
    /// For each page its place in `pages`, from 1; 0 if the tokenizer was not asked about it.
    places: Vec<u16>,
    /// Characters that become others.
    changed: HashMap<char, char>,
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
        let places = vec![0; char::MAX as usize / PAGE as usize + 1];
        Ok(Self { tokenizer, pages: Vec::new(), places, changed: HashMap::new() })
    }

    /// Returns what a character becomes in a word; `None` if it separates words.
    pub(super) fn of(&mut self, c: char) -> Result<Option<char>, SearchError> {
        let (number, bit) = (u32::from(c) / PAGE, 1 << (u32::from(c) % PAGE));
        let place = self.places.get(number as usize).copied().unwrap_or_default();
        let page = match self.pages.get(usize::from(place).wrapping_sub(1)) {
            Some(page) => *page,
            None => self.learn(number)?,
        };
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
        self.pages.push(page);
        if let Some(place) = self.places.get_mut(number as usize) {
            // There are fewer pages than numbers of two bytes.
            *place = u16::try_from(self.pages.len()).unwrap_or_default();
        }
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
            let expected = letters.of(c).unwrap();
            let small = byte.to_ascii_lowercase();
            let is_of_word = letters_of(&[small; BLOCK_BYTES]) == u64::MAX;
            assert_eq!(is_of_word.then_some(char::from(small)), expected, "{c:?}");
        }
    }

    #[test]
    fn a_block_has_a_bit_for_each_byte() {
        for at in 0..BLOCK_BYTES {
            for byte in 0..=u8::MAX {
                let mut block = [b' '; BLOCK_BYTES];
                block[at] = byte;
                let is_letter =
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || !byte.is_ascii();
                assert_eq!(letters_of(&block), u64::from(is_letter) << at, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn no_letter_becomes_a_separator_of_ascii() {
        let mut letters = Letters::new().unwrap();
        for c in ('\u{80}'..'\u{10000}').filter_map(|c| letters.of(c).unwrap()) {
            assert!(!c.is_ascii() || c.is_ascii_lowercase(), "{c:?}");
        }
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
