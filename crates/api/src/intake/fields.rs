//! Parsing of a body's members, with pointers in refusals.

use crate::refusal::{Fault, Place, Refusal, child, invalid_field, invalid_item, object_required};
use blackboard_board::json;
use blackboard_board::json::{DEPTH_MAX, Document, Kind, Malformed, Member};
use blackboard_board::{
    Code, ITEM_BYTES_MAX, InvalidItem, Json, LABEL_BYTES_MAX, Revision, TTL_DAYS_MAX, Ttl,
};

/// Reads a body as the text of one JSON document.
pub fn json_text(bytes: &[u8]) -> Result<&str, Refusal> {
    json_document(bytes).map(|document| document.text())
}

/// Reads a body as one JSON document.
pub fn json_document(bytes: &[u8]) -> Result<Document<'_>, Refusal> {
    Document::parse(bytes).map_err(|malformed| malformed_json(&malformed))
}

fn malformed_json(malformed: &Malformed) -> Refusal {
    let Malformed { line, column, reason } = malformed;
    let detail = format!("line {line}, column {column}: {reason}");
    let fault = Fault { pointer: None, line: Some(*line), detail: reason.to_string() };
    Refusal::new(Code::InvalidJson, detail).fault(fault)
}

/// Returns the members of the object at this pointer of a body, each with its own pointer.
pub(crate) fn members<'a>(pointer: &str, text: &'a str) -> Result<Vec<(String, &'a str)>, Refusal> {
    if json::kind(text) != Kind::Object {
        return Err(object_required(pointer.to_owned(), json::kind(text)));
    }
    let pointed = |member: Member<'a>| (child(pointer, member.name), member.value);
    Ok(json::members(text).map(pointed).collect())
}

/// Reads a member that is `true` or `false`.
pub(crate) fn flag(at: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid_field(at.to_owned(), "expected true or false")),
    }
}

/// Reads a string.
pub(crate) fn string(at: &str, value: &str) -> Result<String, Refusal> {
    if json::kind(value) != Kind::String {
        return Err(invalid_field(at.to_owned(), "expected a string"));
    }
    value_of(value, DEPTH_MAX, at)?;
    Ok(json::decode(value).into_owned())
}

/// Reads a string of bounded length without lone surrogates.
pub fn text_of(literal: &str, pointer: &str) -> Result<String, Refusal> {
    json::check(literal, 1)
        .map_err(|unsupported| invalid_field(pointer.to_owned(), unsupported.reason.to_string()))?;
    let text = json::decode(literal).into_owned();
    if text.len() > LABEL_BYTES_MAX {
        let why =
            format!("expected at most {LABEL_BYTES_MAX} bytes of UTF-8, found {}", text.len());
        return Err(invalid_field(pointer.to_owned(), why));
    }
    Ok(text)
}

/// Reads an array of names.
pub(crate) fn names(at: &str, value: &str, max: usize) -> Result<Vec<String>, Refusal> {
    if json::kind(value) != Kind::Array {
        return Err(invalid_field(at.to_owned(), "expected an array of names"));
    }
    let mut names = Vec::new();
    for (index, element) in json::elements(value).enumerate() {
        let at = format!("{at}/{index}");
        if json::kind(element) != Kind::String {
            return Err(invalid_field(at, "expected a string"));
        }
        if index == max {
            return Err(invalid_field(at, format!("expected at most {max} names")));
        }
        names.push(text_of(element, &at)?);
    }
    Ok(names)
}

/// Reads a number to add.
pub(crate) fn number(pointer: &str, value: &str) -> Result<Json, Refusal> {
    if json::kind(value) != Kind::Number {
        return Err(invalid_field(pointer.to_owned(), "expected a number"));
    }
    value_of(value, DEPTH_MAX, pointer)
}

/// Reads a value.
pub fn value_of(text: &str, levels_max: usize, pointer: &str) -> Result<Json, Refusal> {
    Json::from_json(text, levels_max).map_err(|unsupported| {
        let invalid = InvalidItem::Unsupported(unsupported.below(pointer));
        invalid_item(&invalid, Place::default())
    })
}

/// Reads a time to live.
pub(crate) fn ttl_member(pointer: &str, value: &str) -> Result<Ttl, Refusal> {
    ttl_within(TTL_DAYS_MAX, pointer, value)
}

/// Reads a time to live of at most so many days.
pub(crate) fn ttl_within(days_max: i64, pointer: &str, value: &str) -> Result<Ttl, Refusal> {
    let text = (json::kind(value) == Kind::String).then(|| json::decode(value));
    let ttl = Ttl::within(days_max, text.as_deref().unwrap_or_default());
    ttl.map_err(|why| invalid_field(pointer.to_owned(), why.to_string()))
}

/// Reads a fence.
pub(crate) fn fence_member(pointer: &str, value: &str) -> Result<Revision, Refusal> {
    let fence = json::whole(value).filter(|fence| *fence > 0);
    let why = "expected the fence of a claim, a whole number of at least 1";
    fence.map(Revision).ok_or_else(|| invalid_field(pointer.to_owned(), why))
}

/// Reads the result of a request.
pub(crate) fn result_member(pointer: &str, value: &str) -> Result<Json, Refusal> {
    if value.len() > ITEM_BYTES_MAX {
        let invalid = InvalidItem::TooLarge { bytes: value.len() };
        return Err(invalid_item(&invalid, Place::default()));
    }
    Json::from_json(value, DEPTH_MAX).map_err(|unsupported| {
        let invalid = InvalidItem::Unsupported(unsupported.below(pointer));
        invalid_item(&invalid, Place::default())
    })
}

/// Reads an answer, which must not be blank.
pub(crate) fn answer_member(at: &str, value: &str) -> Result<String, Refusal> {
    let answer = string(at, value)?;
    if is_blank(&answer) {
        return Err(invalid_field(at.to_owned(), "an answer must not be blank"));
    }
    Ok(answer)
}

/// Returns true if an answer has nothing but white space.
pub fn is_blank(answer: &str) -> bool {
    answer.trim().is_empty()
}
