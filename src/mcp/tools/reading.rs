//! Readings within a number of tokens.

use crate::api::pieces::Pieces;
use crate::board::{Tokenizer, json};
use crate::mcp::call::answer::Failure;
use crate::mcp::call::arguments::Arguments;
use crate::prompt::{Cost, Estimator};
use crate::service::ServiceError;

/// The size of a reading unless more is asked for.
const TOKENS_DEFAULT: u64 = 8_000;

/// The largest size of a reading.
const TOKENS_MAX: u64 = 100_000;

/// The smallest size of a reading that can be asked for.
const TOKENS_MIN: u64 = 100;

/// The number of bytes of an element that is too large to be shown whole.
const CUT_BYTES: usize = 400;

/// Takes the number of tokens that a reading may have.
pub(crate) fn max_tokens(arguments: &mut Arguments) -> Result<u64, Failure> {
    Ok(arguments.whole("max_tokens", TOKENS_MIN, TOKENS_MAX)?.unwrap_or(TOKENS_DEFAULT))
}

/// The tokens of readings: the family of the host's model is not known.
const ESTIMATOR: Estimator = Estimator::of(Tokenizer::Other);

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

/// Elements of an array that fit into a number of tokens.
pub(crate) struct Fitted<'a> {
    /// The elements as JSON, in the order of the array. One that is too large is cut.
    pub(crate) elements: Vec<String>,
    /// The first and the last element as they are.
    pub(crate) ends: Option<(&'a str, &'a str)>,
    /// The number of elements left out.
    pub(crate) left_out: usize,
}

/// Keeps as many elements of an array as fit, at least one.
pub(crate) fn fit(array: &str, max_tokens: u64, keep: Keep) -> Fitted<'_> {
    let mut all: Vec<&str> = json::elements(array).collect();
    if keep == Keep::Last {
        all.reverse();
    }
    let (max, comma) = (Cost::of_tokens(max_tokens), ESTIMATOR.text(","));
    let mut cost = Cost::default();
    let count = all.len();
    let mut kept: Vec<(&str, String)> = Vec::new();
    for element in all {
        let own = ESTIMATOR.text(element);
        let next = cost + own + comma;
        if next > max && !kept.is_empty() {
            break;
        }
        cost = next;
        let shown = if own > max { within(element, max_tokens) } else { element.to_owned() };
        kept.push((element, shown));
        if next > max {
            break;
        }
    }
    if keep == Keep::Last {
        kept.reverse();
    }
    let ends = kept.first().zip(kept.last()).map(|(first, last)| (first.0, last.0));
    let left_out = count - kept.len();
    Fitted { elements: kept.into_iter().map(|(_, text)| text).collect(), ends, left_out }
}

/// Returns a JSON text within a number of tokens, cut as [`cut`] does.
pub(crate) fn within(json_text: &str, max_tokens: u64) -> String {
    cut(json_text, ESTIMATOR.beginning(json_text, Cost::of_tokens(max_tokens)))
}

/// Returns a JSON text, or the beginning of one that is too large, as a string with a remark.
pub(crate) fn cut(json_text: &str, max_bytes: usize) -> String {
    if json_text.len() <= max_bytes {
        return json_text.to_owned();
    }
    let shown = json_text.floor_char_boundary(max_bytes.max(CUT_BYTES));
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
        let first = fit(&array, max, Keep::First);
        assert_eq!((first.elements.len(), first.left_out), (2, 1));
        assert!(first.elements[0].starts_with('1'));
        let last = fit(&array, max, Keep::Last);
        assert!(last.elements[0].starts_with('2'));
        assert_eq!(fit("[]", 100, Keep::First).left_out, 0);
    }

    #[test]
    fn one_element_is_always_shown_if_only_its_beginning() {
        let large = format!("[\"{}\"]", "é".repeat(3000));
        let fitted = fit(&large, 100, Keep::Last);
        assert_eq!(fitted.left_out, 0);
        let shown = &fitted.elements[0];
        assert!(shown.starts_with("{\"cut\":") && shown.len() < 1000, "{shown}");
        assert!(json::document(shown.as_bytes()).is_ok());
    }
}
