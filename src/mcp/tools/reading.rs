//! Readings within a number of tokens. A line with path and size stands for what does not fit.

use crate::api::pieces::Pieces;
use crate::api::view::state::text_of;
use crate::board::{LogName, StatePath, StateValue, Tokenizer, json};
use crate::mcp::call::Call;
use crate::mcp::call::answer::{Facts, Failure};
use crate::mcp::call::visit::{TOKENS_MAX, TOKENS_MIN};
use crate::prompt::{Cost, Estimator};
use crate::service::ServiceError;

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
    /// The elements as JSON, in the order of the array, and lines for those that are too large.
    pub(crate) elements: Vec<String>,
    /// The first and the last element as they are.
    pub(crate) ends: Option<(&'a str, &'a str)>,
    /// True if a line stands for an element.
    pub(crate) has_lines: bool,
    /// The number of elements left out.
    pub(crate) left_out: usize,
}

/// Keeps as many elements of an array as fit, at least one. A single element that is too large is cut.
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
    let (max, comma) = (Cost::of_tokens(max_tokens), ESTIMATOR.text(","));
    let (count, mut cost, mut has_lines) = (all.len(), Cost::default(), false);
    let mut kept: Vec<(&str, String)> = Vec::new();
    for element in all {
        let own = ESTIMATOR.text(element);
        let is_line = own > max && count > 1;
        let shown = match own > max {
            true if is_line => line(&path(element), element),
            true => within(element, max_tokens),
            false => element.to_owned(),
        };
        let next = cost + comma + if is_line { ESTIMATOR.text(&shown) } else { own };
        if next > max && !kept.is_empty() {
            break;
        }
        cost = next;
        has_lines |= is_line;
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
    let elements = kept.into_iter().map(|(_, text)| text).collect();
    Fitted { elements, ends, has_lines, left_out }
}

/// Returns the path of an entry of a log.
pub(crate) fn entry_path(log: &LogName, entry: &str) -> String {
    format!("{log}/{}", member(entry, "seq").unwrap_or("0"))
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
        let name = StatePath::escape(name);
        let place = if path.is_root() { name.into_owned() } else { format!("{path}/{name}") };
        let text = text_of(&member);
        let whole = Facts::new().put("path", &place).put_json("value", &text);
        let tokens = |text: &str| ESTIMATOR.text(text).tokens() + 1;
        let mut element = whole.as_str().to_owned();
        if 2 * tokens(&element) > left {
            element = line(&place, &text);
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

/// Returns what stands for a JSON text that does not fit: its path, its size, the tokens that it takes, how it begins. How to
/// read it is said outside of the data, which anyone may have written.
fn line(path: &str, text: &str) -> String {
    let begins = text.floor_char_boundary(BEGINS_BYTES);
    let tokens = ESTIMATOR.text(text).tokens() + 1;
    Facts::new()
        .put("path", path)
        .put("bytes", &text.len())
        .put("max_tokens", &tokens.clamp(TOKENS_MIN, TOKENS_MAX))
        .put("begins", text.get(..begins).unwrap_or_default())
        .as_str()
        .to_owned()
}

/// Returns true if a text has at most so many tokens.
pub(crate) fn fits(text: &str, max_tokens: u64) -> bool {
    ESTIMATOR.text(text) <= Cost::of_tokens(max_tokens)
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
    fn one_element_is_always_shown_if_only_its_beginning() {
        let large = format!("[\"{}\"]", "é".repeat(3000));
        let fitted = fit(&large, 100, Keep::Last, str::to_owned);
        assert_eq!(fitted.left_out, 0);
        let shown = &fitted.elements[0];
        assert!(shown.starts_with("{\"cut\":") && shown.len() < 1000, "{shown}");
        assert!(json::document(shown.as_bytes()).is_ok());
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
        assert!(!fit(&alone, tokens, Keep::Last, str::to_owned).elements[0].contains("cut"));
        assert!(member(line, "begins").unwrap().starts_with("\"\\\"word word"));
    }
}
