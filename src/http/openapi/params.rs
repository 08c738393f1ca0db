//! Parameters of the document.
//!
//! They describe what [`Params`](crate::api::params::Params), the path's extractors and the conditions accept. The
//! fuzzing in `tests/run` compares the two.

use blackboard_thumbnail::MAX_PX_MAX;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};

use crate::api::params::LIST_MAX;
use crate::api::schema::shapes::{
    ENCODED_NAME, NUMBER, PART, SEQ, TRACE, TTL, UNTIL_WAIT, WAIT, boolean, json_text, last_k,
    member, moment, one_of, schema_ref, tags, text,
};
use crate::api::schema::{PROMPT_PART, checkpoint_name, name, pattern, unsigned};
use crate::board::PROMPT_PARTS_MAX;

macro_rules! params {
    ($($(#[$doc:meta])* $group:ident = [$($parameter:expr),* $(,)?];)+) => {$(
        $(#[$doc])*
        pub(in crate::http) struct $group;

        impl IntoParams for $group {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![$($parameter),*]
            }
        }
    )+};
}

params! {
    InSession = [path("session", "The name of the session, percent-encoded: 1 to 256 bytes of UTF-8 \
        without control characters and `/`, not `.` or `..`", name())];
    InLog = [path("log", "A log of the board", text())];
    InMemory = [agent()];
    InAgent = [agent()];
    /// The path of a value in the state.
    AtPath = [path("path", "The path in the state: keys from the root, separated by `/`, which may be \
        percent-encoded. In a key `~1` is `/` and `~0` is `~` (RFC 6901). No key is empty, `.` or `..`", state_path())];
    AtSeq = [path("seq", "The seq of the entry in its log", unsigned(1, usize::MAX))];
    OfDigest = [path("sha256", "The SHA-256 of the blob's bytes, in hexadecimal digits", pattern("^[0-9a-fA-F]{64}$"))];
    IfNoneMatch = [
        header("If-Match", "The tags of the client's copies. The answer is 412 if none of the tags is current. Decided \
            before `If-None-Match`", tags()),
        header("If-None-Match", "The tags of the client's copies. The answer is 304 if one of the tags is current",
            tags()),
    ];
    RangeOf = [
        header("Range", "A range of bytes, such as `bytes=0-1023`. The answer is 206 with only these bytes, or 416 \
            if there are none of them. Multiple and malformed ranges are ignored", text()),
        header("If-Range", "The tag of the client's partial copy; `Range` is ignored unless the tag is current",
            text()),
    ];
    ImageQuery = [
        query("max_px", "The maximum length of the longest side, in pixels; a larger image is scaled down",
            unsigned(1, MAX_PX_MAX as usize)),
        query("sha256", "The digest of the image; 404 if the entry now has another image. Without `at`, the image \
            never changes and may be cached forever", pattern("^[0-9a-f]{64}$")),
    ];
    /// The conditions, author and claim of a write.
    Writes = [
        if_match(),
        header("If-None-Match", "`*`: write only if the target does not exist", one_of(["*"])),
        author(),
        key(),
        claim(),
        fence(),
    ];
    /// The conditions, author and claim of a deletion.
    Removes = [if_match(), author(), key(), claim(), fence()];
    /// The minimum revision to show.
    MinRevision = [query("min_revision", "Wait until the session has reached this revision, for 2 s or the \
        time of `wait`; then 503", unsigned(0, usize::MAX))];
    /// The time to wait for another tag or for the minimum revision.
    WaitQuery = [wait("With `If-None-Match` or `min_revision`: the maximum time to wait until the tag has \
        changed, and the session has reached the revision. An integer with `ms`, `s`, `m`, `h` or `d`, at most \
        60 s; not with `at`")];
    /// The time to wait for another list.
    ListWaitQuery = [wait("With `If-None-Match`: the maximum time to wait until the tag has changed. An \
        integer with `ms`, `s`, `m`, `h` or `d`, at most 60 s")];
    /// The time to wait for an entry.
    PageWaitQuery = [wait("With `after`, `If-None-Match` or `min_revision`: the maximum time to wait until \
        the page has an entry, the tag has changed, and the session has reached the revision. An integer with \
        `ms`, `s`, `m`, `h` or `d`, at most 60 s; not with `at`")];
    /// The condition on a value to wait for, and the time to wait.
    UntilQuery = [
        query("until", "`exists`; `absent`, answered with 204; or `equals:` with a JSON value, where numbers compare \
            by value and members in any order. 412 if the condition is not met; not with `at`",
            pattern("^(exists|absent|equals:.+)$")),
        wait(UNTIL_WAIT),
    ];
    /// The condition on a session to wait for, and the time to wait.
    SessionUntilQuery = [
        query("until", "`exists`; or `absent`, answered with 204. 412 if the condition is not met",
            one_of(["exists", "absent"])),
        wait(UNTIL_WAIT),
    ];
    /// The condition on an entry to wait for, and the time to wait.
    EntryUntilQuery = [
        query("until", "On a question `answered`, also if it was skipped or has expired; on a request `claimed`, also if \
            the claim has ended, `done`, or `failed`. 412 if the condition is not met; not with `at`",
            one_of(["answered", "claimed", "done", "failed"])),
        wait(UNTIL_WAIT),
    ];
    /// The time to wait for a request to claim.
    ClaimWaitQuery = [wait("The maximum time to wait for a request to claim. An integer with `ms`, `s`, `m`, `h` or `d`, \
        at most 60 s")];
    /// The condition on an agent to wait for, and the time to wait.
    AgentUntilQuery = [
        query("until", "`status:` with a status. 412 if the agent does not get this status; not with `at`",
            pattern("^status:.+$")),
        wait(UNTIL_WAIT),
    ];
    /// The revision to show.
    PastQuery = [query("at", "The past revision to show, or the name of a checkpoint", name())];
    /// The time to live of a value.
    LifetimeQuery = [query("ttl", "The time to live: the value expires after this time unless it is put again",
        ttl())];
    SeenQuery = [query("seen", "Show the time of an agent's last write, which changes no tag", boolean())];
    DictionaryQuery = [
        list("include", "Also show the state", one_of(["state"]), None),
        images("The form of a screenshot's stored image in `image_str`: `inline`, the default, as it was sent; \
            `url`, its address; `none`, without `image_str`"),
    ];
    ClearingQuery = [list("include", "Also clear the state", one_of(["state"]), None)];
    /// The signature of an image address.
    SignedQuery = [
        query("expires", "The expiry of a signed address, in seconds since 1970; needs `signature`",
            unsigned(0, usize::MAX)),
        query("signature", "The signature of an address; 403 if it is expired or not for this image. Needs \
            `expires`; not with `at`, `min_revision` or `wait`", pattern("^[A-Za-z0-9_-]{43}$")),
    ];
    PromptQuery = [
        query("format", "The format: `parts`, the original's and that of OpenAI's Chat Completions; `responses` for \
            OpenAI's Responses; `anthropic` for Anthropic's Messages; `gemini`; or `markdown`, which \
            `Accept: text/markdown` also selects", one_of(["parts", "responses", "anthropic", "gemini", "markdown"])),
        list("include", "Only these parts, at most 100 of them memories. Their order in the prompt is fixed",
            pattern(PROMPT_PART), Some(PROMPT_PARTS_MAX)),
        list("keys", "Only these members of the items of trajectories and memories. Defaults to the session's \
            `history_keys`, or to all members", member(), Some(LIST_MAX)),
        query("latest", "Only the last N items of each text log", unsigned(1, 1_000_000)),
        query("agent", "Only this agent's steps and screenshots: entries that the agent appended, and entries \
            without an author whose item has this `agent`", name()),
        query("status", "Only steps with this `status`, or with this `status` in one of their `results`", text()),
        list("steps", "Only steps whose `step` is one of these JSON numbers, by value", pattern(NUMBER),
            Some(LIST_MAX)),
        query("screenshots", "Show the images of only the last K screenshots; each older screenshot is one line with \
            its metadata and address", unsigned(0, 1_000_000)),
        images("The form of a stored image: `inline`, the default except for `markdown`; `url`, its address, \
            absolute and signed if the server has a `--public-url`; or `none`, without the image"),
        query("max_px", "The maximum length of an image's longest side, in pixels; larger images are scaled down \
            to PNG or JPEG", unsigned(1, 16_384)),
        query("max_tokens", "The token budget. To fit, the prompt first omits the images of the oldest screenshots, \
            then the oldest trajectories, memory items, requests and answered questions, then screenshots. A \
            last line and `Blackboard-Truncated` give the number omitted; `Blackboard-Tokens` is the estimate. \
            Text is estimated by classes of characters, rather high than low, an image as its provider \
            states", unsigned(1, 100_000_000)),
        query("tokenizer", "The family of tokenizers by which `max_tokens` counts: by default the format's own, and \
            for `markdown` `other`, which counts as the family that needs most",
            one_of(["openai", "anthropic", "gemini", "other"])),
        query("ascii", "True to escape characters beyond ASCII in items, as Python does: the default of `parts`, as in \
            the original. False to write them, the default of the others: escapes take many times the tokens. No \
            effect on `markdown`", boolean()),
        query("cache_marks", "With `anthropic`: mark the end of the prefix that stays the same while steps are \
            added, so that the provider caches it. No effect on other formats", boolean()),
        query("profile", "One of the session's `profiles`: the defaults of the query's parameters", text()),
    ];
    PageQuery = [
        query("after", "Only entries after this seq", unsigned(0, usize::MAX)),
        query("before", "Only entries before this seq", unsigned(0, usize::MAX)),
        query("limit", "The maximum number of entries; 100 by default, or all as lines", unsigned(1, 1000)),
        query("order", "`asc`, the default, starts with the oldest, `desc` with the newest", schema_ref("OrderName")),
        query("latest", "The last N matching entries, ascending; not with `after`, `before`, `limit` or \
            `order`. If the page reaches its limit of examined entries before it has N, `more` is true: \
            continue with `order=desc` and `before` = `next`", unsigned(1, 1000)),
        list("steps", "Only items whose `step` is one of these JSON numbers, by value (2 equals 2.0)",
            pattern(NUMBER), Some(LIST_MAX)),
        query("status", "Only items with this `status`, or with this `status` in one of their `results`", text()),
        query("agent", "Only entries that this agent appended, and entries without an author whose item has \
            this `agent`", name()),
        query("trajectory_key", "Only items with this `key`", text()),
        query("contains", "Only items with this text in a string value at any depth, ignoring case and normal forms", text()),
        query("pending", "Only questions with a string `question` or `text` and without `answer`, and requests \
            that are neither claimed, done, failed nor blocked. No effect on the other logs", boolean()),
    ];
    SearchQuery = [
        parameter(ParameterIn::Query, "q", "Words, `\"phrases\"`, `prefix*` and `-exclusions`, all of which must \
            hold; at most 32 of them, and 1 KiB. A minus excludes if a space is before it, or nothing, and a letter or a \
            quotation mark behind it; `\"-xzf\"` finds a flag. Signs are passed over", ObjectBuilder::from(text()).min_length(Some(1)))
            .required(Required::True)
            .build(),
        query("session", "Only entries of this session", name()),
        query("prefix", "Only entries of sessions whose names begin with this text", text()),
        query("log", "Only entries of this log; `memory` is all memories that the token may read",
            one_of(["questions", "requests", "trajectories", "screenshots", "memory"])),
        query("agent", "Only this agent's memory, and entries by this agent", name()),
        query("since", "Only entries appended at or after this time, RFC 3339", moment()),
        query("limit", "The maximum number of hits; 20 by default", unsigned(1, 100)),
        query("after", "The `next` of another page", unsigned(0, 10_000)),
        query("min_revision", "With `session`: wait until the index has this revision of it, for 2 s or the time \
            in `wait`", unsigned(0, usize::MAX)),
        wait("With `min_revision`: the maximum time to wait, at most 60 s"),
    ];
    InCheckpoint = [path("checkpoint", "The name of the checkpoint, by the same rules as a session's, with \
        at least one character that is not a digit", checkpoint_name())];
    /// The expiry of questions.
    WaitingQuery = [
        query("expires", "The time that questions wait for an answer. Then `default` becomes the answer, marked \
            as `expired`. No effect on the other logs", ttl()),
        query("default", "With `expires`: the answer of an expired question; null by default",
            pattern("\\S")),
    ];
    /// The plan of requests.
    PlanQuery = [
        list("after", "The requests, by their seqs, that must be done before the new ones are pending and claimable. \
            No effect on the other logs", pattern(SEQ), Some(LIST_MAX)),
        query("attempts", "The number of claims that may end by `failed` or lapse before a new request fails; \
            without a limit by default. No effect on the other logs", unsigned(1, 1000)),
    ];
    EventsQuery = [
        query("after", "The last revision read; the current revision by default", unsigned(0, usize::MAX)),
        header("Last-Event-ID", "The last revision read, as sent by a reconnecting client; overrides `after`",
            unsigned(0, usize::MAX)),
        list("on", "Only changes to these parts: a log of the board, `agents`, `agents/{agent}`, \
            `agents/{agent}/memory`, `state`, `state/{path}`. Changes to the whole \
            session are always included", pattern(PART), Some(100)),
        query("agent", "Only commits by this agent", name()),
        query("trace", "Only commits of requests with this trace id in their `traceparent`", pattern(TRACE)),
        query("wait", "With `Accept: application/json`: the maximum time to wait for the first commit, at most 60 s",
            pattern("^[0-9]+(ms|s|m|h|d)$")),
    ];
    /// The form of entries.
    ShownQuery = [
        list("keys", "Only these members of each item", member(), Some(LIST_MAX)),
        images("The form of a screenshot's stored image: `url`, the default, describes the image in the \
            envelope; `inline` has it in the item, as it was sent; `none` omits it"),
    ];
    /// Options for reading a body.
    ReadingQuery = [
        query("lenient", "Skip lines that are not items, and list the skipped lines in the answer", boolean()),
        query("last_k", "Append only the last N lines; -1 appends all", last_k()),
        query("trajectory_key", "In trajectories and memories, an object without `key` is stored with this \
            key, any other value as `{\"key\":…,\"value\":…}`", text()),
        query("metadata", "With the bytes of an image: its metadata, as JSON", json_text()),
        query("image_path", "With the bytes of an image: a label, which the server never opens", text()),
    ];
    RemovalQuery = [
        list("steps", "Delete only items whose `step` is one of these JSON numbers, by value (2 equals \
            2.0); not with `keep`", pattern(NUMBER), Some(LIST_MAX)),
        query("keep", "Delete all but the newest N", unsigned(0, usize::MAX)),
    ];
}

/// Returns the parameter `agent`, which memories have in place of `log`.
pub(in crate::http) fn agent() -> Parameter {
    path("agent", "The name of the agent, by the same rules as a session's", name())
}

fn if_match() -> Parameter {
    header(
        "If-Match",
        "Write only if the target has one of these tags; `*`: only if the target exists",
        tags(),
    )
}

fn key() -> Parameter {
    let told = "A repeat of this request with the same key gets the first answer, with \
        `Idempotency-Replayed: true`, and writes nothing. Keys are retained for 24 h, or until the session \
        has had 10,000 newer keys. Refusals are not retained";
    let key = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]([ -~]*[!-~])?$"));
    header("Idempotency-Key", told, key.min_length(Some(1)).max_length(Some(255)).build())
}

fn claim() -> Parameter {
    let told = "The seq of the request under whose claim to write; needs `fence`";
    query("claim", told, unsigned(0, usize::MAX))
}

fn fence() -> Parameter {
    let told = "The fence of the claim; 409 if the claim was lost or released. Needs `claim`";
    query("fence", told, unsigned(0, usize::MAX))
}

fn wait(told: &str) -> Parameter {
    query("wait", told, pattern(WAIT))
}

fn ttl() -> Object {
    pattern(TTL)
}

fn state_path() -> Object {
    const KEY: &str = r"(?!\.{1,2}(/|$))([^/~\u0000-\u001f\u007f-\u009f]|~[01])+";
    pattern(&format!("^{KEY}(/{KEY})*$"))
}

fn author() -> Parameter {
    let encoded = ObjectBuilder::new().schema_type(Type::String).pattern(Some(ENCODED_NAME));
    header("X-Agent-ID", "The name of the writing agent, percent-encoded", encoded.build())
}

fn path(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Path, name, description, schema).required(Required::True).build()
}

fn query(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Query, name, description, schema).build()
}

fn header(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    parameter(ParameterIn::Header, name, description, schema).build()
}

fn images(description: &str) -> Parameter {
    query("images", description, schema_ref("ImagesName"))
}

/// Describes a list that is split at commas. Repeated parameters, the other style of clients, are read as well.
fn list(name: &str, description: &str, item: Object, items_max: Option<usize>) -> Parameter {
    let items = ArrayBuilder::new().items(item).min_items(Some(1)).max_items(items_max).build();
    parameter(ParameterIn::Query, name, description, Schema::Array(items))
        .style(Some(ParameterStyle::Form))
        .explode(Some(false))
        .build()
}

fn parameter(
    place: ParameterIn,
    name: &str,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .description(Some(description))
        .required(Required::False)
        .schema(Some(schema))
}
