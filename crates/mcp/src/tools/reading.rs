//! Readings within a number of tokens. A line with path and size stands for what does not fit.

use std::borrow::Cow;

use crate::call::Call;
use crate::call::answer::{Facts, Failure};
use crate::call::visit::{TOKENS_MAX, TOKENS_MIN};
use blackboard_api::log_page::one_by_one::{EntryText, OneByOne};
use blackboard_api::pieces::Pieces;
use blackboard_api::view::state::text_of;
use blackboard_board::{LogName, Seq, StatePath, StateValue, Tokenizer, json};
use blackboard_prompt::{Cost, Estimator};
use blackboard_service::ServiceError;

/// The smallest number of bytes to which an element is cut.
const CUT_BYTES: usize = 400;

/// The bytes of what does not fit that its line begins with.
const BEGINS_BYTES: usize = 120;

/// Takes the number of tokens that a reading may have.
pub(crate) fn max_tokens(call: &mut Call) -> Result<u64, Failure> {
    Ok(asked_tokens(call)?.unwrap_or(call.visit.max_tokens))
}

/// Takes the number of tokens that a call names.
pub(crate) fn asked_tokens(call: &mut Call) -> Result<Option<u64>, Failure> {
    Ok(call.arguments.whole("max_tokens", TOKENS_MIN, TOKENS_MAX)?)
}

/// The tokens of readings: the family of the host's model is not known.
pub(crate) const ESTIMATOR: Estimator = Estimator::of(Tokenizer::Other);

/// Writes all pieces of an answer as one text.
pub(crate) async fn whole(mut pieces: impl Pieces) -> Result<String, ServiceError> {
    let mut text = String::new();
    while pieces.write(&mut text).await? {}
    Ok(text)
}

/// The end from which elements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    First,
    Last,
}

/// Elements that fit into a number of tokens.
struct Fitting {
    max_tokens: u64,
    cost: Cost,
    /// The cost between two elements.
    comma: Cost,
    is_full: bool,
    /// The elements as JSON, and lines for those that are too large.
    elements: Vec<String>,
    /// True if a line stands for an element.
    has_lines: bool,
    /// The size of the only element, if it was cut.
    cut_bytes: Option<usize>,
}

impl Fitting {
    fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            cost: Cost::default(),
            comma: ESTIMATOR.text(","),
            is_full: false,
            elements: Vec::new(),
            has_lines: false,
            cut_bytes: None,
        }
    }

    /// Takes an element, or a line for one that is too large; the only element is cut instead. The first is always taken.
    /// Returns false if the element is left out.
    fn take(
        &mut self,
        element: Cow<'_, str>,
        cost: Cost,
        is_only: bool,
        path: impl FnOnce() -> String,
    ) -> bool {
        let max = Cost::of_tokens(self.max_tokens);
        let (is_large, bytes) = (cost > max, element.len());
        let (shown, cost) = match is_large {
            true if is_only => (within(&element, self.max_tokens), cost),
            true => {
                let line = line("path", &path(), &element);
                let cost = ESTIMATOR.text(&line);
                (line, cost)
            }
            false => (element.into_owned(), cost),
        };
        let next = self.cost + cost + self.comma;
        if self.is_full || next > max && !self.elements.is_empty() {
            self.is_full = true;
            return false;
        }
        (self.cost, self.is_full) = (next, next > max);
        self.has_lines |= is_large && !is_only;
        self.cut_bytes = (is_large && is_only).then_some(bytes);
        self.elements.push(shown);
        true
    }
}

/// Elements of an array that fit into a number of tokens.
pub(crate) struct Fitted<'a> {
    /// The elements as JSON, in the order of the array, and lines for those that are too large.
    pub(crate) elements: Vec<String>,
    /// The first and the last element as they are.
    pub(crate) ends: Option<(&'a str, &'a str)>,
    /// True if a line stands for an element.
    pub(crate) has_lines: bool,
    /// The number of elements left out.
    pub(crate) left_out: usize,
}

/// Keeps as many elements of an array as fit, at least one.
pub(crate) fn fit<'a>(
    array: &'a str,
    max_tokens: u64,
    keep: Keep,
    path: impl Fn(&str) -> String,
) -> Fitted<'a> {
    let mut all: Vec<&str> = json::elements(array).collect();
    if keep == Keep::Last {
        all.reverse();
    }
    let (mut fitting, mut ends) = (Fitting::new(max_tokens), None);
    for element in &all {
        let cost = ESTIMATOR.text(element);
        if !fitting.take(Cow::Borrowed(element), cost, false, || path(element)) {
            break;
        }
        let (first, _) = ends.unwrap_or((*element, *element));
        ends = Some((first, *element));
    }
    let Fitting { mut elements, has_lines, .. } = fitting;
    let left_out = all.len() - elements.len();
    if keep == Keep::Last {
        elements.reverse();
        ends = ends.map(|(last, first)| (first, last));
    }
    Fitted { elements, ends, has_lines, left_out }
}

/// Entries of a log that fit into a number of tokens.
pub(crate) struct FittedEntries {
    /// The entries as JSON, the oldest first, and lines for those that are too large.
    pub(crate) elements: Vec<String>,
    /// The first and the last of them; `None` if no entry matches.
    pub(crate) ends: Option<(Seq, Seq)>,
    /// True if a line stands for an entry.
    pub(crate) has_lines: bool,
    /// True if the next entry did not fit.
    pub(crate) is_full: bool,
    /// The size of the only entry, if it was cut.
    pub(crate) cut_bytes: Option<usize>,
}

/// Keeps as many entries of a page as fit, at least one. An only entry that is too large is cut.
pub(crate) async fn fit_entries(
    page: &mut OneByOne,
    log: &LogName,
    max_tokens: u64,
    keep: Keep,
) -> Result<FittedEntries, ServiceError> {
    let (mut fitting, mut ends, mut is_full) = (Fitting::new(max_tokens), None, false);
    while let Some(EntryText { seq, json, cost }) = page.next().await? {
        let is_only = ends.is_none() && !page.has_more();
        if !fitting.take(json.into(), cost, is_only, || entry_path(log, seq)) {
            is_full = true;
            break;
        }
        let (begin, _) = ends.unwrap_or((seq, seq));
        ends = Some((begin, seq));
    }
    let Fitting { mut elements, has_lines, cut_bytes, .. } = fitting;
    if keep == Keep::Last {
        elements.reverse();
        ends = ends.map(|(last, first)| (first, last));
    }
    Ok(FittedEntries { elements, ends, has_lines, is_full, cut_bytes })
}

/// Returns how to read the rest of an only element that was cut, at an address of the board's server; a sentence after
/// another one.
pub(crate) fn rest_of_cut(bytes: usize, max_tokens: u64, address: &str) -> String {
    format!(" It has {bytes} bytes and is cut: {}", how_to_read_all(max_tokens, address))
}

/// Returns how to read what a reading of this size left out: a larger one, if there is one, or HTTP.
pub(crate) fn how_to_read_all(max_tokens: u64, address: &str) -> String {
    let raise = match max_tokens < TOKENS_MAX {
        true => format!("raise max_tokens, at most to {TOKENS_MAX}, or "),
        false => String::new(),
    };
    format!("{raise}GET {address} of the board's server.")
}

fn entry_path(log: &LogName, seq: Seq) -> String {
    format!("{log}/{seq}")
}

/// Shows the members of an object, each whole or as a line; at least one. Returns the number of those left out too. A member
/// takes at most half of what is left, so that others have room.
pub(crate) fn fit_members(
    path: &StatePath,
    value: &StateValue,
    max_tokens: u64,
) -> (Vec<String>, usize) {
    let (mut shown, mut left, mut left_out): (Vec<String>, _, _) = (Vec::new(), max_tokens, 0);
    let mut members = value.members();
    for (name, member) in members.by_ref() {
        let escaped = StatePath::escape(name);
        let place = if path.is_root() { escaped.into_owned() } else { format!("{path}/{escaped}") };
        let text = text_of(&member);
        // Some names, such as "..", cannot be part of a path. The element shows the name then.
        let is_path = place.parse::<StatePath>().is_ok();
        let (key, called) = if is_path { ("path", &*place) } else { ("name", name) };
        let whole = Facts::new().put(key, called).put_json("value", &text);
        let tokens = |text: &str| ESTIMATOR.text(text).tokens() + 1;
        let mut element = whole.as_str().to_owned();
        if 2 * tokens(&element) > left {
            element = line(key, called, &text);
        }
        if tokens(&element) > left && !shown.is_empty() {
            left_out = 1;
            break;
        }
        left = left.saturating_sub(tokens(&element));
        shown.push(element);
    }
    (shown, left_out + members.count())
}

/// Returns what stands for a JSON text that does not fit: its path, its size, the tokens that it takes if a reading may have so
/// many, how it begins. How to read it is said outside of the data, which anyone may have written.
fn line(key: &str, place: &str, text: &str) -> String {
    let begins = text.floor_char_boundary(BEGINS_BYTES);
    let tokens = ESTIMATOR.text(text).tokens() + 1;
    let facts = Facts::new().put(key, place).put("bytes", &text.len());
    let facts = match tokens <= TOKENS_MAX {
        true => facts.put("max_tokens", &tokens.max(TOKENS_MIN)),
        false => facts,
    };
    facts.put("begins", text.get(..begins).unwrap_or_default()).as_str().to_owned()
}

/// Returns true if a text has at most so many tokens.
pub(crate) fn fits(text: &str, max_tokens: u64) -> bool {
    ESTIMATOR.fits(text, Cost::of_tokens(max_tokens))
}

/// Returns a JSON text within a number of tokens, cut as [`cut`] does.
pub(crate) fn within(json_text: &str, max_tokens: u64) -> String {
    cut(json_text, ESTIMATOR.beginning(json_text, Cost::of_tokens(max_tokens)).max(CUT_BYTES))
}

/// Returns a JSON text, or the beginning of one that is too large, as a string with a remark.
pub(crate) fn cut(json_text: &str, max_bytes: usize) -> String {
    if json_text.len() <= max_bytes {
        return json_text.to_owned();
    }
    let shown = json_text.floor_char_boundary(max_bytes);
    let mut text = String::from("{\"cut\":");
    json::quote(json_text.get(..shown).unwrap_or_default(), &mut text);
    text.push_str(&format!(",\"bytes\":{}}}", json_text.len()));
    text
}

/// Returns a member of a JSON object as text.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let named = |member: &json::Member<'_>| json::decode(member.name) == name;
    json::members(object).find(named).map(|member| member.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let element = |digit: &str| digit.repeat(200);
        let array = format!("[{},{},{}]", element("1"), element("2"), element("3"));
        let max = 2 * ESTIMATOR.text(&element("1")).tokens() + 10;
        let first = fit(&array, max, Keep::First, str::to_owned);
        assert_eq!((first.elements.len(), first.left_out), (2, 1));
        assert!(first.elements[0].starts_with('1'));
        let last = fit(&array, max, Keep::Last, str::to_owned);
        assert!(last.elements[0].starts_with('2'));
        assert_eq!(fit("[]", 100, Keep::First, str::to_owned).left_out, 0);
    }

    #[test]
    fn an_only_element_is_shown_up_to_what_fits() {
        let large = format!("\"{}\"", "é".repeat(3000));
        let mut fitting = Fitting::new(100);
        let cost = ESTIMATOR.text(&large);
        assert!(fitting.take(large.as_str().into(), cost, true, String::new));
        assert_eq!((fitting.has_lines, fitting.cut_bytes), (false, Some(large.len())));
        let shown = &fitting.elements[0];
        assert!(shown.starts_with("{\"cut\":") && shown.len() < 1000, "{shown}");
        assert!(json::document(shown.as_bytes()).is_ok());
        assert!(!fitting.take("1".into(), ESTIMATOR.text("1"), false, String::new));
    }

    #[test]
    fn a_line_stands_for_a_large_element_among_others() {
        let array = format!("[1,\"{}\",3]", "word ".repeat(1000));
        let fitted = fit(&array, 100, Keep::Last, |_| "log/2".to_owned());
        assert_eq!((fitted.elements.len(), fitted.left_out, fitted.has_lines), (3, 0, true));
        let line = &fitted.elements[1];
        assert_eq!(member(line, "path"), Some("\"log/2\""));
        assert_eq!(member(line, "bytes"), Some("5002"));
        let tokens = member(line, "max_tokens").and_then(json::whole).unwrap();
        let alone = format!("[{}]", json::elements(&array).nth(1).unwrap());
        assert!(!fit(&alone, tokens, Keep::Last, str::to_owned).has_lines);
        assert!(member(line, "begins").unwrap().starts_with("\"\\\"word word"));
    }
}
