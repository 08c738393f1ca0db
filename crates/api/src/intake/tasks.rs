//! Requests as tasks: plans, failures, and the members that a worker looks for.

use std::sync::Arc;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

use super::fields::{ttl_within, value_of};
use super::query::{AnyNumber, AnyRevision, Flag, Of, Shaped, Texts, Whole, many, queries};
use crate::params::{Params, invalid};
use crate::refusal::{Refusal, child, invalid_field, object_required};
use crate::schema::pattern;
use crate::schema::shapes::{SEQ, WHEN};
use blackboard_board::json::Kind;
use blackboard_board::{
    AFTER_MAX, ATTEMPTS_MAX, Fence, ITEM_DEPTH_MAX, LogName, PRIORITY_MAX, PlanRequest, Priority,
    RETRY_IN_DAYS_MAX, Seq, Ttl, WANTED_MAX, Wanted, When, json,
};

queries! {
    /// The plan of requests.
    pub PlanQuery {
        /// The requests, by their seqs, that must be done before the new ones are pending and claimable. No effect on
        /// the other logs
        after: Texts = Vec::new() => many(pattern(SEQ)),
        /// The number of claims that may end by `failed` or expire before a new request fails; without a limit by
        /// default. No effect on the other logs
        attempts: Whole<1, { ATTEMPTS_MAX as u64 }>,
        /// The priority: requests with a higher one are claimed first, 0 by default. No effect on the other logs
        priority: Of<Priority> = Priority::DEFAULT,
        /// The time before which the new requests cannot be claimed: RFC 3339, or a duration from now such as `30s`. No
        /// effect on the other logs
        not_before: Of<When>,
        /// The time at which a new request fails with the reason `deadline`, unless it ended before: RFC 3339, or a duration
        /// from now; after `not_before`. No effect on the other logs
        deadline: Of<When>,
        /// True if another agent must accept the result of a new request before it is done. No effect on the other logs
        review: Flag = false,
    }

    /// The claim of a write.
    pub FenceQuery {
        /// The seq of the request under whose claim to write; needs `fence`
        claim: AnyNumber,
        /// The fence of the claim; 409 if the claim was lost or released. Needs `claim`
        fence: AnyRevision,
    }
}

/// Takes the parameters of a POST, which only requests have.
pub fn plan_params(log: &LogName, params: &mut Params) -> Result<PlanRequest, Refusal> {
    let query = PlanQuery::take(params)?;
    if *log != LogName::Requests {
        return Ok(PlanRequest::default());
    }
    let PlanQuery { after, attempts, priority, not_before, deadline, review } = query;
    let seq = |text: &String| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let seq = text.parse().ok().filter(|seq| digits && *seq > 0).map(Seq);
        seq.ok_or_else(|| invalid("after", "must be a list of requests' seqs, such as 3,4"))
    };
    let after = after.iter().map(seq).collect::<Result<_, _>>()?;
    let attempts = attempts.and_then(|count| u32::try_from(count).ok());
    let after = ascending(after);
    Ok(PlanRequest { after, attempts, priority, not_before, deadline, review })
}

impl Shaped for Priority {
    fn schema() -> RefOr<Schema> {
        priority_schema().into()
    }
}

impl Shaped for When {
    fn schema() -> RefOr<Schema> {
        pattern(WHEN).into()
    }
}

/// Returns the schema of a priority.
pub(crate) fn priority_schema() -> ObjectBuilder {
    let (min, max) = (-i64::from(PRIORITY_MAX), i64::from(PRIORITY_MAX));
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    number
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(min))
        .maximum(Some(max))
}

/// Takes the claim under which a request writes.
pub fn fence_params(params: &mut Params) -> Result<Option<Fence>, Refusal> {
    let FenceQuery { claim, fence } = FenceQuery::take(params)?;
    match (claim.map(Seq), fence) {
        (Some(request), Some(fence)) => Ok(Some(Fence { request, fence })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(invalid("claim", "needs 'fence'")),
        (None, Some(_)) => Err(invalid("fence", "needs 'claim'")),
    }
}

/// Reads the number of claims that may end without success.
pub(crate) fn attempts_member(at: &str, value: &str) -> Result<u32, Refusal> {
    let count = json::whole(value).and_then(|count| u32::try_from(count).ok());
    let why = || format!("expected a whole number from 1 to {ATTEMPTS_MAX}");
    let count = count.filter(|count| (1..=ATTEMPTS_MAX).contains(count));
    count.ok_or_else(|| invalid_field(at.to_owned(), why()))
}

/// Reads a priority.
pub(crate) fn priority_member(at: &str, value: &str) -> Result<Priority, Refusal> {
    let (sign, digits) = value.strip_prefix('-').map_or((1, value), |digits| (-1, digits));
    let priority = json::whole(digits).and_then(|priority| i64::try_from(priority).ok());
    let why = || format!("expected a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}");
    let priority = priority.and_then(|priority| Priority::new(sign * priority));
    priority.ok_or_else(|| invalid_field(at.to_owned(), why()))
}

/// Reads a time, or a duration that counts from now.
pub(crate) fn when_member(at: &str, value: &str) -> Result<When, Refusal> {
    let text = (json::kind(value) == Kind::String).then(|| json::decode(value));
    let when = text.as_deref().unwrap_or_default().parse::<When>();
    when.map_err(|why| invalid_field(at.to_owned(), why.to_string()))
}

/// Reads the time until the next attempt.
pub(crate) fn retry_member(at: &str, value: &str) -> Result<Ttl, Refusal> {
    ttl_within(RETRY_IN_DAYS_MAX, at, value)
}

/// Returns the requests that must be done first, each once and ascending.
pub fn ascending(mut after: Vec<Seq>) -> Arc<[Seq]> {
    after.sort_unstable();
    after.dedup();
    after.into()
}

/// Reads the requests that must be done before one.
pub(crate) fn seqs(at: &str, value: &str) -> Result<Vec<Seq>, Refusal> {
    if json::kind(value) != Kind::Array {
        return Err(invalid_field(at.to_owned(), "expected an array of requests' seqs"));
    }
    let mut seqs = Vec::new();
    for (index, element) in json::elements(value).enumerate() {
        let at = format!("{at}/{index}");
        if index == AFTER_MAX {
            return Err(invalid_field(at, format!("expected at most {AFTER_MAX} seqs")));
        }
        let seq = json::whole(element).filter(|seq| *seq > 0);
        let why = "expected the seq of a request, a whole number of at least 1";
        seqs.push(Seq(seq.ok_or_else(|| invalid_field(at, why))?));
    }
    Ok(seqs)
}

/// Reads the members that a request must have.
pub(crate) fn wanted_members(at: &str, value: &str) -> Result<Wanted, Refusal> {
    if json::kind(value) != Kind::Object {
        return Err(object_required(at.to_owned(), json::kind(value)));
    }
    let mut wanted = Vec::new();
    for (name, value) in json::members(value).map(|member| (member.name, member.value)) {
        let (at, name) = (child(at, name), json::decode(name).into_owned());
        if wanted.len() == WANTED_MAX {
            return Err(invalid_field(at, format!("expected at most {WANTED_MAX} members")));
        }
        // No item has a deeper member.
        wanted.push((name, value_of(value, ITEM_DEPTH_MAX - 1, &at)?));
    }
    Ok(Wanted(wanted.into()))
}
