//! The query language: words, "phrases", prefix* and -exclusions, all of which must hold.

use std::fmt::Write;
use std::str::FromStr;

use super::fold::{folded_term, is_word_alone};

/// The maximum length of a query in bytes.
pub const QUERY_BYTES_MAX: usize = 1024;

/// The maximum number of terms in a query.
pub const TERMS_MAX: usize = 32;

/// The minimum number of letters before a star, unless one of them is a word of its own.
const PREFIX_LETTERS_MIN: usize = 2;

/// A query: terms that a text must have, and terms that it must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    wanted: Vec<Term>,
    unwanted: Vec<Term>,
}

/// A word or phrase. Of a prefix, the last word is the beginning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    text: String,
    is_prefix: bool,
}

/// The reason why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuery {
    /// It is empty.
    #[error("must have a word")]
    Empty,
    /// It has no letter or digit.
    #[error("must have a letter or a digit; other characters are ignored")]
    OnlySigns,
    /// It is longer than [`QUERY_BYTES_MAX`].
    #[error("must have at most {QUERY_BYTES_MAX} bytes")]
    TooLong,
    /// It has more than [`TERMS_MAX`] terms.
    #[error("must have at most {TERMS_MAX} words and phrases")]
    TooMany,
    /// A quotation mark has no other.
    #[error("has an opening quotation mark without a closing one")]
    Unbalanced,
    /// A prefix is too short.
    #[error("needs at least {PREFIX_LETTERS_MIN} letters before a star: {0}*")]
    ShortPrefix(String),
    /// All of its terms are excluded.
    #[error("must have a word that is not excluded; in quotation marks a minus excludes nothing")]
    OnlyExclusions,
}

impl FromStr for Query {
    type Err = InvalidQuery;

    fn from_str(text: &str) -> Result<Self, InvalidQuery> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(InvalidQuery::TooLong);
        }
        let mut query = Self { wanted: Vec::new(), unwanted: Vec::new() };
        let (mut rest, mut is_after_space, mut number) = (text.trim(), true, 0);
        let is_empty = rest.is_empty();
        while !rest.is_empty() {
            let excluded = excluded(rest).filter(|_| is_after_space);
            let (term, after) = term(excluded.unwrap_or(rest))?;
            if let Some(term) = term {
                number += 1;
                let is_unwanted = excluded.is_some();
                let terms = if is_unwanted { &mut query.unwanted } else { &mut query.wanted };
                // A repeated term finds nothing more.
                if !terms.contains(&term) {
                    terms.push(term);
                }
            }
            rest = after.trim_start();
            is_after_space = rest.len() < after.len();
        }
        if number > TERMS_MAX {
            return Err(InvalidQuery::TooMany);
        }
        match (query.wanted.is_empty(), query.unwanted.is_empty()) {
            (true, true) if is_empty => Err(InvalidQuery::Empty),
            (true, true) => Err(InvalidQuery::OnlySigns),
            (true, false) => Err(InvalidQuery::OnlyExclusions),
            (false, _) => Ok(query),
        }
    }
}

/// Returns the text behind a minus that excludes a word or phrase. People write other ones too: `--upgrade`, `-5`, `a - b`.
fn excluded(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    rest.starts_with(|c: char| c.is_alphabetic() || c == '"').then_some(rest)
}

/// Takes the first term of a text, and returns it with the rest. A term without a letter or digit is passed over.
fn term(text: &str) -> Result<(Option<Term>, &str), InvalidQuery> {
    let (words, rest) = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or(InvalidQuery::Unbalanced)?,
        None => {
            let end = text.find(|c: char| c.is_whitespace() || c == '"' || c == '*');
            text.split_at(end.unwrap_or(text.len()))
        }
    };
    let (is_prefix, rest) = rest.strip_prefix('*').map_or((false, rest), |rest| (true, rest));
    let (text, goes_on) = folded_term(words);
    if !text.contains(char::is_alphanumeric) {
        return Ok((None, rest));
    }
    let last = text.rsplit(|c: char| !c.is_alphanumeric()).find(|last| !last.is_empty());
    let last = last.unwrap_or_default();
    if is_prefix && last.chars().count() < PREFIX_LETTERS_MIN && !last.contains(is_word_alone) {
        return Err(InvalidQuery::ShortPrefix(last.to_owned()));
    }
    Ok((Some(Term { text, is_prefix: is_prefix || goes_on }), rest))
}

impl Query {
    /// Returns the terms that a text must have, folded, and whether each ends with the beginning of a word.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (&str, bool)> {
        self.wanted.iter().map(|term| (term.text.as_str(), term.is_prefix))
    }

    /// Returns the terms that a text must not have.
    pub(super) fn unwanted(&self) -> impl Iterator<Item = (&str, bool)> {
        self.unwanted.iter().map(|term| (term.text.as_str(), term.is_prefix))
    }

    /// Returns each term that a text must have, in the language of FTS5.
    pub(super) fn wanted_expressions(&self) -> impl Iterator<Item = String> {
        self.wanted.iter().map(|term| {
            let mut out = String::new();
            join(std::slice::from_ref(term), "", &mut out);
            out
        })
    }

    /// Returns the query in the language of FTS5.
    pub(super) fn expression(&self) -> String {
        let mut out = String::new();
        join(&self.wanted, " AND ", &mut out);
        if !self.unwanted.is_empty() {
            out.push_str(" NOT ");
            join(&self.unwanted, " OR ", &mut out);
        }
        out
    }
}

fn join(terms: &[Term], between: &str, out: &mut String) {
    out.push('(');
    for (at, Term { text, is_prefix }) in terms.iter().enumerate() {
        let (before, star) =
            (if at > 0 { between } else { "" }, if *is_prefix { " *" } else { "" });
        write!(out, "{before}\"{}\"{star}", text.replace('"', "\"\"")).ok();
    }
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<Query>().unwrap().expression()
    }

    fn refused(text: &str) -> InvalidQuery {
        text.parse::<Query>().unwrap_err()
    }

    #[test]
    fn terms_are_words_phrases_prefixes_and_exclusions() {
        assert_eq!(parsed("disk full"), r#"("disk" AND "full")"#);
        assert_eq!(
            parsed(" \"disk full\"  err* -quota "),
            r#"("disk full" AND "err" *) NOT ("quota")"#
        );
        assert_eq!(parsed("a-b -\"c de\"* -e"), r#"("a-b") NOT ("c de" * OR "e")"#);
        assert_eq!(parsed("AND or NOT("), r#"("AND" AND "or" AND "NOT(")"#);
        assert_eq!(parsed("a\"b c\"d"), r#"("a" AND "b c" AND "d")"#);
        assert_eq!(parsed("a bb a -c -c \"bb\" bb*"), r#"("a" AND "bb" AND "bb" *) NOT ("c")"#);
        assert_eq!(parsed("a --b -5 -_ a-c -é"), r#"("a" AND "--b" AND "-5" AND "a-c") NOT ("e")"#);
        assert_eq!(parsed("a -- & \"\" -\"!\" * b -"), r#"("a" AND "b")"#);
        assert_eq!(parsed("\"a\"-b bb*-c"), r#"("a" AND "-b" AND "bb" * AND "-c")"#);
        assert_eq!(parsed("Café ＡＢ*"), r#"("Cafe" AND "ab" *)"#);
        assert_eq!(parsed("게임 -집"), "(\"게임\u{200b}\") NOT (\"집\" *)");
        assert_eq!(parsed("日本"), "(\"日\u{200b}本\u{200b}\")");
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        assert_eq!(refused(""), InvalidQuery::Empty);
        assert_eq!(refused(" \t"), InvalidQuery::Empty);
        assert_eq!(refused("\"disk full"), InvalidQuery::Unbalanced);
        assert_eq!(refused("disk \""), InvalidQuery::Unbalanced);
        assert_eq!(refused("\"\" & -> –"), InvalidQuery::OnlySigns);
        assert_eq!(refused("-\"!\" *"), InvalidQuery::OnlySigns);
        assert_eq!(refused("e*"), InvalidQuery::ShortPrefix("e".to_owned()));
        assert_eq!(refused("-disk"), InvalidQuery::OnlyExclusions);
        assert_eq!(refused(&"a ".repeat(TERMS_MAX + 1)), InvalidQuery::TooMany);
        assert_eq!(refused(&"a".repeat(QUERY_BYTES_MAX + 1)), InvalidQuery::TooLong);
        assert!("日*".parse::<Query>().is_ok());
    }
}
