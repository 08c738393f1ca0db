//! The parameters of the document. What they say is what [`Params`](crate::api::params::Params), the
//! path's extractors and the conditions take; the fuzzing in `tests/run` holds the two together.

use blackboard_thumbnail::MAX_PX_MAX;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};

use super::schemas::{
    ENCODED_NAME, INBOX_PLACE, LIST_MAX, NUMBER, PART, TTL, UNTIL_WAIT, WAIT, boolean,
    checkpoint_name, json_text, last_k, member, moment, one_of, revision_or_checkpoint, schema_ref,
    tags, text,
};
use crate::api::schema::{PROMPT_PART, name, pattern, unsigned};
use crate::api::view::change::KINDS;
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
    /// The session of a path.
    InSession = [path("session", "The session's name: 1 to 256 bytes of UTF-8, without control \
        characters and `/`, not `.` or `..`; percent-encoded", name())];
    /// One of the board's logs.
    InLog = [path("log", "Which of the board's logs", schema_ref("BoardLog"))];
    /// The agent of a path.
    InMemory = [agent()];
    /// The agent of a path.
    InAgent = [agent()];
    /// The place in the state of a path.
    AtPath = [path("path", "Where in the state: keys from the root, separated by `/` and percent-encoded \
        each, so that `%2F` is part of a key; none is empty, `.` or `..`", state_path())];
    /// The entry of a path.
    AtSeq = [path("seq", "The entry's place in its log", unsigned(1, usize::MAX))];
    /// The tag that a reader has already.
    IfNoneMatch = [header("If-None-Match", "The tags of the copies that the client has: the answer is \
        304 where one of them is the present one", tags())];
    /// Which part of a body is sent.
    RangeOf = [
        header("Range", "One range of bytes, as `bytes=0-1023`: the answer is 206 with these alone, or 416 where \
            there are none of them. Several ranges, and what is no range, are passed over", text()),
        header("If-Range", "The tag of the copy that the client has a part of: the range holds only where that is \
            the present one", text()),
    ];
    /// Which image is sent, and how large.
    ImageQuery = [
        query("max_px", "Scale the image down, so that no side is longer than this", unsigned(1, MAX_PX_MAX as usize)),
        query("sha256", "Only this image: 404 where the entry has another one now. Without `at` the answer is never \
            another one, and may be kept for ever", pattern("^[0-9a-f]{64}$")),
    ];
    /// What a write is made on condition of, and who makes it.
    Writes = [
        if_match(),
        header("If-None-Match", "Only if what is written does not exist yet", one_of(["*"])),
        author(),
        key(),
        claim(),
        fence(),
    ];
    /// The same for a removal.
    Removes = [if_match(), author(), key(), claim(), fence()];
    /// The revision that is to be shown at least.
    MinRevision = [query("min_revision", "Wait until the session has reached this revision, for 2 s or as \
        long as `wait` says, then 503", unsigned(0, usize::MAX))];
    /// How long to wait for another tag, or for that revision.
    WaitQuery = [wait("With `If-None-Match` or `min_revision`: wait at most so long, 60 s at most, until there \
        is another tag, or until the session has reached the revision. An integer with `ms`, `s`, `m`, `h` or \
        `d`; not with `at`")];
    /// How long to wait for another list.
    ListWaitQuery = [wait("With `If-None-Match`: wait at most so long, 60 s at most, until there is another \
        tag. An integer with `ms`, `s`, `m`, `h` or `d`")];
    /// How long to wait for an entry.
    PageWaitQuery = [wait("With `after`, `If-None-Match` or `min_revision`: wait at most so long, 60 s at most, \
        until the page has an entry, there is another tag, and the session has reached the revision. An \
        integer with `ms`, `s`, `m`, `h` or `d`; not with `at`")];
    /// How long to wait until something holds, and what.
    UntilQuery = [
        query("until", "`exists`; `absent`, which is answered with 204; or `equals:` with a JSON value, numbers \
            by value and members in any order. What does not hold is 412; not with `at`",
            pattern("^(exists|absent|equals:.+)$")),
        wait(UNTIL_WAIT),
    ];
    /// How long to wait until a session is there or gone.
    SessionUntilQuery = [
        query("until", "`exists`; or `absent`, which is answered with 204. What does not hold is 412",
            one_of(["exists", "absent"])),
        wait(UNTIL_WAIT),
    ];
    /// The point in the past that is to be shown.
    PastQuery = [query("at", "Show it as it was at this revision, or at the checkpoint of this name", name())];
    /// How long a value lives.
    LifetimeQuery = [query("ttl", "The value goes away by itself after so long, unless it is put again",
        ttl())];
    /// Which agents a list has.
    AgentsQuery = [
        query("limit", "How many at most; 100 unless said otherwise", unsigned(1, 1000)),
        query("after", "Only names after this one, in the order of their bytes", name()),
        query("status", "Only agents in this status", text()),
    ];
    /// What is shown of an agent.
    SeenQuery = [query("seen", "Show when an agent wrote last; that changes no tag", boolean())];
    /// Which sessions a list has.
    ListQuery = [
        query("limit", "How many at most; 100 unless said otherwise", unsigned(1, 1000)),
        query("after", "Only names after this one, in the order of their bytes", name()),
        query("prefix", "Only names that begin so", text()),
        list("label", "Only sessions that have all these labels, each as `name:value`",
            pattern("^[^:]*:"), None),
    ];
    /// What a dictionary shows.
    DictionaryQuery = [
        list("include", "Show the state too", one_of(["state"]), None),
        images("`inline`: as it was sent, which is the default; `url`: `image_str` is the image's \
            address; `none`: without it"),
    ];
    /// What is cleared with the board.
    ClearingQuery = [list("include", "Clear the state too", one_of(["state"]), None)];
    /// The signature of an address.
    SignedQuery = [
        query("expires", "Until when an address with a `signature` is valid, in seconds since 1970",
            unsigned(0, usize::MAX)),
        query("signature", "What makes an address with `expires` valid: 403 where it is not this image's; not \
            with `at`, `min_revision` and `wait`", pattern("^[A-Za-z0-9_-]{43}$")),
    ];
    /// What a prompt shows.
    PromptQuery = [
        query("format", "For which models: `parts`, which is the original's and OpenAI's Chat Completions; `responses`, \
            OpenAI's Responses; `anthropic`, its Messages; `gemini`; or `markdown`, which `Accept: text/markdown` \
            asks for too", one_of(["parts", "responses", "anthropic", "gemini", "markdown"])),
        list("include", "Only these parts; their order in the prompt is fixed, and at most 100 are memories",
            pattern(PROMPT_PART), Some(PROMPT_PARTS_MAX)),
        list("keys", "Show only these members of trajectories and memories; else those of the session's \
            `history_keys`, else all", member(), Some(LIST_MAX)),
        query("latest", "Only the last N items of each text log", unsigned(1, 1_000_000)),
        query("agent", "Only the steps and screenshots of this agent: those that it appended, and where nobody \
            was named, those whose item has this `agent`", name()),
        query("status", "Only steps with this `status`, or with one of `results` that has it", text()),
        list("steps", "Only steps whose `step` is one of these JSON numbers, by value", pattern(NUMBER),
            Some(LIST_MAX)),
        query("screenshots", "Only the last K screenshots with their images; of the others a line each, with \
            metadata and address", unsigned(0, 1_000_000)),
        images("How a stored image is shown: `inline`, which is the default but for `markdown`; `url` by its \
            address, for which the server is told its `--public-url`; with `none` there is no image"),
        query("max_px", "Images of at most so many pixels on the longest side; larger ones are made smaller, as \
            PNG or JPEG", unsigned(1, 16_384)),
        query("max_tokens", "Leave out what is beyond so many tokens: first the images of the oldest screenshots, then \
            the oldest trajectories, memory items, requests and answered questions, then screenshots. A last \
            line says how many, as `Blackboard-Truncated` does; `Blackboard-Tokens` is the estimate. A text takes a \
            token for every four bytes, an image what its provider says", unsigned(1, 100_000_000)),
        query("cache_marks", "With `anthropic`: mark the last part that stays the same while steps are added, for \
            the provider to cache. No effect on the other formats", boolean()),
        query("profile", "One of the session's saved `profiles`: what holds where the query says nothing", text()),
    ];
    /// Which entries a page has.
    PageQuery = [
        query("after", "Only entries after this seq", unsigned(0, usize::MAX)),
        query("before", "Only entries before this seq", unsigned(0, usize::MAX)),
        query("limit", "How many at most; 100 unless said otherwise, and all of them as lines", unsigned(1, 1000)),
        query("order", "From the oldest, which is the default, or from the newest", schema_ref("OrderName")),
        query("latest", "The last N after filtering, ascending; not with `after`, `before`, `limit`, \
            `order`. Where a page may examine no more before it has N, `more` is true: go on with \
            `order=desc` and `before` = `next`", unsigned(1, 1000)),
        list("steps", "Items whose `step` is one of these JSON numbers, by value (2 is 2.0)",
            pattern(NUMBER), Some(LIST_MAX)),
        query("status", "Items with this `status`, or with one of `results` that has it", text()),
        query("agent", "Entries that this agent appended; where nobody was named, items with this \
            `agent`", name()),
        query("trajectory_key", "Items with this `key`", text()),
        query("contains", "Items with this text in one of their string values, however deep, letter \
            case aside", text()),
        query("pending", "Questions with a string `question` or `text` and no `answer`; requests that are \
            neither claimed nor done; no effect on the other logs", boolean()),
    ];
    /// Which questions the inbox has.
    InboxParams = [
        query("limit", "How many at most; 100 unless said otherwise", unsigned(1, 1000)),
        query("after", "Only questions after this place: the `next` of another page",
            pattern(INBOX_PLACE)),
        query("prefix", "Only of sessions whose names begin so", text()),
        list("label", "Only of sessions that have all these labels, each as `name:value`",
            pattern("^[^:]*:"), None),
    ];
    /// Which checkpoints a list has.
    CheckpointsQuery = [
        query("limit", "How many at most; 100 unless said otherwise", unsigned(1, 1000)),
        query("after", "Only names after this one, in the order of their bytes", checkpoint_name()),
    ];
    /// The checkpoint of a path.
    InCheckpoint = [path("checkpoint", "The checkpoint's name, by the same rule as the session's, with at \
        least one character that is no digit", checkpoint_name())];
    /// How long questions wait.
    WaitingQuery = [
        query("expires", "Questions wait so long for their answers; then the default is the answer, marked \
            as `expired`. No effect on the other logs", ttl()),
        query("default", "With `expires`: what the answer is then; null unless it is said",
            pattern("\\S")),
    ];
    /// Which commits a reader of events sees.
    EventsQuery = [
        query("after", "The revision read so far; the present one unless said otherwise", unsigned(0, usize::MAX)),
        header("Last-Event-ID", "The same, as a client sends it that was cut off; it wins over `after`",
            unsigned(0, usize::MAX)),
        list("on", "Only changes of these: a log of the board, `agents`, `agents/{agent}`, \
            `agents/{agent}/memory`, `state`, `state/{path}`, each segment percent-encoded; and what changes \
            all of the session", pattern(PART), Some(100)),
        query("agent", "Only commits of this author", name()),
        query("wait", "With `Accept: application/json`: how long to wait for the first commit, at most 60s",
            pattern("^[0-9]+(ms|s|m|h|d)$")),
    ];
    /// Which commits an audit has.
    AuditQuery = [
        query("after", "Only commits after this revision", unsigned(0, usize::MAX)),
        query("before", "Only commits before this revision", unsigned(0, usize::MAX)),
        query("limit", "How many at most; 100 unless said otherwise, and all of them as lines", unsigned(1, 1000)),
        query("order", "From the oldest, which is the default, or from the newest", schema_ref("OrderName")),
        query("agent", "Only commits of this author", name()),
        query("kind", "Only commits of this kind, or with a change of it", one_of(KINDS)),
        query("since", "Only commits made then or later, RFC 3339", moment()),
        query("till", "Only commits made then or earlier, RFC 3339", moment()),
    ];
    /// Which differences a page has.
    DiffQuery = [
        parameter(ParameterIn::Query, "from", "The revision before, or a checkpoint", revision_or_checkpoint())
            .required(Required::True)
            .build(),
        query("to", "The revision after, or a checkpoint; the present revision unless said otherwise",
            revision_or_checkpoint()),
        query("limit", "How many differences at most; 1000 unless said otherwise", unsigned(1, 10_000)),
        query("after", "How many differences to pass over", unsigned(0, usize::MAX)),
    ];
    /// How entries are shown.
    ShownQuery = [
        list("keys", "Show only these members of each item", member(), Some(LIST_MAX)),
        images("What stands for a screenshot's stored image: `url`, the default, describes it in the \
            envelope; `inline` gives it in the item, as it was sent; `none` leaves it out"),
    ];
    /// How a body is read.
    ReadingQuery = [
        query("lenient", "Pass over lines that are no items, and list them in the answer", boolean()),
        query("last_k", "Take only the last N lines; -1 is all of them", last_k()),
        query("trajectory_key", "In trajectories and memories, an object without `key` is stored with this \
            one, any other value as `{\"key\":…,\"value\":…}`", text()),
        query("metadata", "With the bytes of an image: what belongs to it, as a JSON text", json_text()),
        query("image_path", "With the bytes of an image: a label; the server never opens it", text()),
    ];
    /// Which entries are removed.
    RemovalQuery = [
        list("steps", "Only items whose `step` is one of these JSON numbers, by value (2 is 2.0); not \
            with `keep`", pattern(NUMBER), Some(LIST_MAX)),
        query("keep", "All but the newest N", unsigned(0, usize::MAX)),
    ];
}

/// The agent of a path, which the memories have in place of a log.
pub(in crate::http) fn agent() -> Parameter {
    path("agent", "The agent's name, by the same rule as the session's", name())
}

fn if_match() -> Parameter {
    header(
        "If-Match",
        "Only if what is written has one of these tags now; `*`: only if it exists",
        tags(),
    )
}

fn key() -> Parameter {
    let told = "A repeat of this request under the same key gets the first answer, with \
        `Idempotency-Replayed: true`, and writes nothing: for 24 h, or until the session has had 10,000 \
        newer keys. Refusals are not kept";
    let key = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]([ -~]*[!-~])?$"));
    header("Idempotency-Key", told, key.min_length(Some(1)).max_length(Some(255)).build())
}

fn claim() -> Parameter {
    let told = "The request whose claim this write is made under; with `fence`";
    query("claim", told, unsigned(0, usize::MAX))
}

fn fence() -> Parameter {
    let told = "The claim's fence: 409 where it was lost or given back; with `claim`";
    query("fence", told, unsigned(0, usize::MAX))
}

fn wait(told: &str) -> Parameter {
    query("wait", told, pattern(WAIT))
}

fn ttl() -> Object {
    pattern(TTL)
}

fn state_path() -> Object {
    let segments = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1));
    segments.pattern(Some(r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]+$")).build()
}

fn author() -> Parameter {
    let encoded = ObjectBuilder::new().schema_type(Type::String).pattern(Some(ENCODED_NAME));
    header("X-Agent-ID", "The agent that writes: its name, percent-encoded", encoded.build())
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

/// Split at commas before it is percent-decoded, which is what this style says.
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
