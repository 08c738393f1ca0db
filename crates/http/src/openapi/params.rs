//! Parameters of the document that no query declares: of paths and in headers, and what `wait` waits for.
//!
//! They describe what the path's extractors, the conditions and [`Wait`] accept. The fuzzing in `tests/run` compares the
//! two.

use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};

use crate::read::deadline::Wait;
use blackboard_api::intake::query::{Form as _, Of, parameter};
use blackboard_api::intake::tasks::FenceQuery;
use blackboard_api::schema::shapes::{ENCODED_NAME, one_of, tags, text};
use blackboard_api::schema::{checkpoint_name, name as any_name, pattern, unsigned};

macro_rules! params {
    ($($(#[$doc:meta])* $group:ident = $parameter:expr;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $group;

        impl IntoParams for $group {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![$parameter]
            }
        }
    )+};
}

params! {
    /// The time to wait for another tag or for the minimum revision.
    WaitQuery = wait("With `If-None-Match` or `min_revision`: the maximum time to wait until the tag has \
        changed, and the session has reached the revision. An integer with `ms`, `s`, `m`, `h` or `d`, at most \
        60 s; not with `at`");
    /// The time to wait for another list.
    ListWaitQuery = wait("With `If-None-Match`: the maximum time to wait until the tag has changed. An \
        integer with `ms`, `s`, `m`, `h` or `d`, at most 60 s");
    /// The time to wait for something that waits for an agent.
    AttentionWaitQuery = wait("With `after`, `If-None-Match` or `min_revision`: the maximum time to wait until \
        something waits for the agent, the tag has changed, and the session has reached the revision. An integer with \
        `ms`, `s`, `m`, `h` or `d`, at most 60 s");
    /// The time to wait for an entry.
    PageWaitQuery = wait("With `after`, `If-None-Match` or `min_revision`: the maximum time to wait until \
        the page has an entry, the tag has changed, and the session has reached the revision. An integer with \
        `ms`, `s`, `m`, `h` or `d`, at most 60 s; not with `at`");
    /// The time to wait for a condition.
    UntilWaitQuery = wait("With `until`, `If-None-Match` or `min_revision`: the maximum time to wait \
        until the condition is met, the tag has changed, and the session has reached the revision. An integer with \
        `ms`, `s`, `m`, `h` or `d`, at most 60 s; not with `at`");
    /// The time to wait for a request to claim.
    ClaimWaitQuery = wait("The maximum time to wait for a request to claim. An integer with `ms`, `s`, `m`, `h` or `d`, \
        at most 60 s");
    /// The time to wait for the index.
    IndexWaitQuery = wait("With `min_revision`: the maximum time to wait, at most 60 s");
    /// The time to wait for a commit.
    EventsWaitQuery = wait("With `Accept: application/json`: the maximum time to wait for the first commit, at most 60 s");
    /// The revision after which a reconnecting client goes on.
    LastEventId = header("Last-Event-ID", "The last revision read, as sent by a reconnecting client; overrides `after`",
        pattern("^[0-9]+$"));
}

/// Returns the parameters in a path.
pub(super) fn in_path(path: &str) -> impl Iterator<Item = Parameter> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.filter_map(part)
}

/// Returns the parameter of this name in a path.
fn part(name: &str) -> Option<Parameter> {
    const KEY: &str = r"(?!\.{1,2}(/|$))([^/~\u0000-\u001f\u007f-\u009f]|~[01])+";
    let (told, schema) = match name {
        "session" => (
            "The name of the session, percent-encoded: 1 to 256 bytes of UTF-8 \
                without control characters and `/`, not `.` or `..`",
            any_name(),
        ),
        "agent" => ("The name of the agent, by the same rules as a session's", any_name()),
        "seq" => ("The seq of the entry in its log", unsigned(1, usize::MAX)),
        "checkpoint" => (
            "The name of the checkpoint, by the same rules as a session's, with \
                at least one character that is not a digit",
            checkpoint_name(),
        ),
        "sha256" => {
            ("The SHA-256 of the blob's bytes, in hexadecimal digits", pattern("^[0-9a-fA-F]{64}$"))
        }
        "path" => (
            "The path in the state: keys from the root, separated by `/`, which may be \
                percent-encoded. In a key `~1` is `/` and `~0` is `~` (RFC 6901). No key is empty, `.` or `..`",
            pattern(&format!("^{KEY}(/{KEY})*$")),
        ),
        _ => return None,
    };
    Some(described(ParameterIn::Path, name, told, schema).required(Required::True).build())
}

/// Returns the conditions of a read with a tag.
pub(super) fn of_reads() -> Vec<Parameter> {
    let matches = "The tags of the client's copies. The answer is 412 if none of the tags is current. Decided \
        before `If-None-Match`";
    let matches_none =
        "The tags of the client's copies. The answer is 304 if one of the tags is current";
    vec![header("If-Match", matches, tags()), header("If-None-Match", matches_none, tags())]
}

/// Returns the range of a read, and its condition.
pub(super) fn of_ranges() -> Vec<Parameter> {
    let range = "A range of bytes, such as `bytes=0-1023`. The answer is 206 with only these bytes, or 416 \
        if there are none of them. Multiple and malformed ranges are ignored";
    let condition =
        "The tag of the client's partial copy; `Range` is ignored unless the tag is current";
    vec![header("Range", range, text()), header("If-Range", condition, text())]
}

/// Returns the conditions, author and claim of a write; a removal cannot ask that its target does not exist.
pub(super) fn of_writes(is_removal: bool) -> Vec<Parameter> {
    let matches = "Write only if the target has one of these tags; `*`: only if the target exists";
    let matches_none = "`*`: write only if the target does not exist";
    let absent = (!is_removal).then(|| header("If-None-Match", matches_none, one_of(["*"])));
    let author = ObjectBuilder::new().schema_type(Type::String).pattern(Some(ENCODED_NAME));
    let told = "The name of the writing agent, percent-encoded";
    let mut all = vec![header("If-Match", matches, tags())];
    all.extend(absent);
    all.extend([header("X-Agent-ID", told, author.build()), key()]);
    all.extend(FenceQuery::into_params(|| None));
    all
}

fn key() -> Parameter {
    let told = "A repeat of this request with the same key gets the first answer, with `Idempotency-Replayed: true`, \
                and writes nothing. Keys are retained for 24 h, or until the session has had 10,000 newer keys. \
                Rejections are not retained";
    let key = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]([ -~]*[!-~])?$"));
    header("Idempotency-Key", told, key.min_length(Some(1)).max_length(Some(255)).build())
}

fn wait(told: &str) -> Parameter {
    parameter("wait", &[told], false, Of::<Wait>::shape())
}

fn header(name: &str, told: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    described(ParameterIn::Header, name, told, schema).required(Required::False).build()
}

fn described(
    place: ParameterIn,
    name: &str,
    told: &str,
    schema: impl Into<RefOr<Schema>>,
) -> ParameterBuilder {
    let begun = ParameterBuilder::new().name(name).parameter_in(place);
    begun.description(Some(told)).schema(Some(schema))
}
