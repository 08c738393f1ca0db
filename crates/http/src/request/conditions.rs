//! Conditions on reads and writes, by entity tags.
//!
//! A condition on a write compares only the first half of a tag, which identifies the resource's state.

use axum::http::{HeaderMap, HeaderName, header};

use crate::response::problem::Problem;
use crate::response::tag_value;
use blackboard_api::tag::{Resource, Tag, version};
use blackboard_board::{Code, Condition, Epoch, Matches, SessionId};

/// The number of bytes of a tag's quotes.
const QUOTES: usize = 2;

/// The maximum number of tags in a condition.
const TAGS_MAX: usize = 64;

/// What a client does about a weak tag in `If-Match`.
const WEAK: &str = "If-Match has a weak tag, which never matches: a proxy that compresses made it weak. Send the text of \
    the header Blackboard-ETag, or switch off the proxy's compression of JSON";

/// Returns true if a read's `If-None-Match` names this tag, so that the answer is 304. The comparison is weak, as RFC
/// 9110 requires for reads. Before that (section 13.2.2) refuses a read whose `If-Match` does not name the tag, compared
/// strongly.
pub(crate) fn is_known(headers: &HeaderMap, tag: &Tag) -> Result<bool, Problem> {
    if let Some(Tags::These(tags)) = tags(headers, &header::IF_MATCH)?
        && !tags.iter().any(|known| !known.weak && known.text == tag.as_str())
    {
        let detail = "the resource does not have the tag of If-Match; read it without If-Match";
        let problem = Problem::new(Code::PreconditionFailed, detail);
        return Err(explained(problem, headers).header(header::ETAG, tag_value(tag)));
    }
    Ok(match tags(headers, &header::IF_NONE_MATCH)? {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::These(tags)) => tags.iter().any(|known| known.text == tag.as_str()),
    })
}

/// Adds to a failed condition that the client sent a weak tag.
pub(crate) fn explained(failed: Problem, headers: &HeaderMap) -> Problem {
    let sent = tags(headers, &header::IF_MATCH);
    match sent {
        Ok(Some(Tags::These(tags))) if tags.iter().any(|tag| tag.weak) => failed.remark(WEAK),
        _ => failed,
    }
}

/// Refuses a malformed condition on a read that may end without a tag.
pub(crate) fn check_known(headers: &HeaderMap) -> Result<(), Problem> {
    tags(headers, &header::IF_MATCH)?;
    tags(headers, &header::IF_NONE_MATCH).map(drop)
}

/// Reads the condition of a write on `resource`. `session` is the id of the session, if it exists.
pub(crate) fn condition(
    headers: &HeaderMap,
    epoch: Epoch,
    session: Option<SessionId>,
    resource: &Resource,
) -> Result<Condition, Problem> {
    let absent = match tags(headers, &header::IF_NONE_MATCH)? {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::These(_)) => {
            let detail = "If-None-Match on a write must be *";
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    };
    let matches = match tags(headers, &header::IF_MATCH)? {
        None => None,
        Some(Tags::Any) => Some(Matches::Any),
        Some(Tags::These(tags)) => {
            let named = |tag: &Named<'_>| version(tag.text, tag.weak, epoch, session?, resource);
            Some(Matches::Versions(tags.iter().filter_map(named).collect()))
        }
    };
    Ok(Condition { matches, absent })
}

struct Named<'a> {
    weak: bool,
    /// The tag with its quotes.
    text: &'a str,
}

enum Tags<'a> {
    Any,
    These(Vec<Named<'a>>),
}

/// Parses the tags of a condition (RFC 9110, section 13.1).
fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Tags<'a>>, Problem> {
    let malformed = || {
        let detail = format!("{name} must be * or a list of entity tags in double quotes");
        Problem::new(Code::InvalidParameter, detail)
    };
    let mut tags = Vec::new();
    for value in headers.get_all(name) {
        let mut rest = value.to_str().map_err(|_| malformed())?.trim();
        if rest == "*" {
            return Ok(Some(Tags::Any));
        }
        while !rest.is_empty() {
            let (tag, after) = one_tag(rest).ok_or_else(malformed)?;
            tags.push(tag);
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with(',') {
                return Err(malformed());
            }
            rest = after.trim_start_matches([' ', '\t', ',']);
        }
        if tags.len() > TAGS_MAX {
            let detail = format!("{name} must name at most {TAGS_MAX} entity tags");
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    }
    if tags.is_empty() && headers.contains_key(name) {
        return Err(malformed());
    }
    Ok((!tags.is_empty()).then_some(Tags::These(tags)))
}

fn one_tag(text: &str) -> Option<(Named<'_>, &str)> {
    let weak = text.strip_prefix("W/");
    let tag = weak.unwrap_or(text);
    let inner = tag.strip_prefix('"')?.find('"')?;
    let (text, after) = tag.split_at_checked(inner + QUOTES)?;
    Some((Named { weak: weak.is_some(), text }, after))
}

#[cfg(test)]
mod tests;
