//! Sentences of documents that state a constant of the code.

use crate::bounds::{constant, quantity};
use crate::facts::read;
use crate::root;

/// Quantities in sentences: the document, the words before the quantity, and the constant that it is.
const STATED: [(&str, &str, &str, &str); 78] = [
    (
        "docs/reference/limits.md",
        "| name of a session or an agent | ",
        "crates/board/src/values/names.rs",
        "NAME_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| item, its stored image aside | ",
        "crates/board/src/values/item.rs",
        "ITEM_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| item, its stored image aside | 1 MiB, ",
        "crates/board/src/values/item.rs",
        "ITEM_DEPTH_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| integer | ",
        "crates/exact-json/src/check.rs",
        "INTEGER_DIGITS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| image | ",
        "crates/board/src/values/image/mod.rs",
        "IMAGE_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| media type of a blob, with its parameters | ",
        "crates/board/src/values/media_type.rs",
        "MEDIA_TYPE_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `max_px` | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROMPT_PX_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| body, decompressed | ",
        "crates/http/src/request/body.rs",
        "BODY_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … of a log-in | ",
        "crates/ui/src/session.rs",
        "BODY_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … a time in it after the server's | ",
        "crates/board/src/admit/imported.rs",
        "CLOCK_AHEAD_MS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … the work of reading it | ",
        "crates/service/src/archive/import.rs",
        "WORK_TIME_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| one write | ",
        "crates/board/src/commit/mod.rs",
        "COMMIT_ITEMS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| one write | 500,000 items, ",
        "crates/board/src/stored/frame.rs",
        "COMMIT_BYTES_MAX",
    ),
    ("docs/reference/limits.md", "| state | ", "crates/board/src/state/mod.rs", "STATE_BYTES_MAX"),
    (
        "docs/reference/limits.md",
        "| an agent's profile | ",
        "crates/board/src/model/agent.rs",
        "PROFILE_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| agents of a session | ",
        "crates/board/src/model/agent.rs",
        "AGENTS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| requests that one waits for | ",
        "crates/board/src/values/task.rs",
        "AFTER_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … that wait for one | ",
        "crates/board/src/values/task.rs",
        "DEPENDANTS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| attempts of a request | ",
        "crates/board/src/values/task.rs",
        "ATTEMPTS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| members in a claim's `match` | ",
        "crates/board/src/values/task.rs",
        "WANTED_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| claimable requests that a `claim_next` examines | ",
        "crates/board/src/decide/requests/tasks.rs",
        "EXAMINED_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| questions asked at once with `expires` | ",
        "crates/board/src/model/open_questions.rs",
        "AWAITED_AT_ONCE_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `default` of a question, which is part of the head | ",
        "crates/board/src/model/open_questions.rs",
        "DEFAULT_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| checkpoints of a session | ",
        "crates/board/src/model/checkpoint.rs",
        "CHECKPOINTS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| value in the answer to a keyed `add` or `append` | ",
        "crates/http/src/state.rs",
        "KEPT_VALUE_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| statuses of a session's own | ",
        "crates/board/src/model/agent.rs",
        "AGENT_STATES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| time to live | ",
        "crates/board/src/values/time.rs",
        "TTL_DAYS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `Idempotency-Key`s of a session | ",
        "crates/board/src/model/idempotency.rs",
        "KEYS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `Idempotency-Key`s of a session | 10,000, for ",
        "crates/board/src/model/idempotency.rs",
        "KEY_AGE_MS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| blobs of a session | ",
        "crates/board/src/model/blob.rs",
        "BLOBS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| labels of a session | ",
        "crates/board/src/model/settings.rs",
        "LABELS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `history_keys` | ",
        "crates/board/src/model/settings.rs",
        "HISTORY_KEYS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| prompt profiles of a session | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROFILES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … of a diff | ",
        "crates/http/src/history/diff.rs",
        "LIMIT_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| … a page of events | ",
        "crates/http/src/events/mod.rs",
        "EXAMINED_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| notices of `/v1/events` that a client has not taken | ",
        "crates/service/src/watch/waker.rs",
        "NOTICES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `steps`, `keys` of a query | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROMPT_KEYS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `latest`, `screenshots` of a prompt | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROMPT_LATEST_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| `max_tokens` of a prompt | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROMPT_TOKENS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| memories in a prompt | ",
        "crates/board/src/model/prompt_profile.rs",
        "PROMPT_MEMORIES_MAX",
    ),
    ("docs/reference/limits.md", "| `wait` | ", "crates/http/src/read/deadline.rs", "WAIT_MS_MAX"),
    (
        "docs/reference/limits.md",
        "| wait for `min_revision`, without `wait` | ",
        "crates/http/src/read/deadline.rs",
        "REVISION_WAIT_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| value that a 412 `condition-not-met` shows | ",
        "crates/http/src/read/until.rs",
        "CURRENT_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| an export keeps forgotten history from being deleted | ",
        "crates/store/src/sqlite/pins.rs",
        "PIN_TIME_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| rest of a connection between two requests | ",
        "crates/http/src/connection/mod.rs",
        "IDLE_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| body that an answer did not need | ",
        "crates/http/src/edge/unread_rest.rs",
        "REST_BYTES_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| silence within a body, and a body in all | ",
        "crates/http/src/edge/mod.rs",
        "BODY_SILENCE_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| a client that takes nothing of its answer, or less than 1 KiB/s | ",
        "crates/http/src/connection/mod.rs",
        "WRITE_STALL_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| tokens; patterns of sessions of one | ",
        "crates/auth/src/tokens.rs",
        "TOKENS_MAX",
    ),
    (
        "docs/reference/limits.md",
        "| room left on the disk | ",
        "crates/store/src/options.rs",
        "FREE_BYTES_MIN",
    ),
    (
        "docs/reference/limits.md",
        "| another program's lock on the database | ",
        "crates/store/src/sqlite/database.rs",
        "BUSY",
    ),
    ("docs/storage-format.md", "a format byte (", "crates/board/src/stored/frame.rs", "FORMAT"),
    (
        "docs/storage-format.md",
        "one JSON object with a version, ",
        "crates/board/src/stored/summary.rs",
        "VERSION",
    ),
    (
        "docs/storage-format.md",
        "with `blackboard_archive` ",
        "crates/board/src/stored/archive/line.rs",
        "VERSION",
    ),
    (
        "docs/operations.md",
        "restarts after a pause of ",
        "crates/service/src/threads/mod.rs",
        "PAUSE_MIN",
    ),
    (
        "docs/operations.md",
        "a pause of 100 ms to ",
        "crates/service/src/threads/mod.rs",
        "PAUSE_MAX",
    ),
    (
        "docs/operations.md",
        "differs from the monotonic one by more than ",
        "crates/clock/src/lib.rs",
        "JUMP_MS",
    ),
    (
        "docs/operations.md",
        "until the difference is gone or has lasted for ",
        "crates/clock/src/lib.rs",
        "HELD_MS",
    ),
    (
        "docs/operations.md",
        "locked the database, a write waits for ",
        "crates/store/src/sqlite/database.rs",
        "BUSY",
    ),
    (
        "docs/operations.md",
        "leaves its name and last revision for ",
        "crates/service/src/sessions/tombstones.rs",
        "TOMBSTONE_MS",
    ),
    (
        "docs/reference/access.md",
        "| a log-in ends | after ",
        "crates/auth/src/logins.rs",
        "LOGIN_IDLE_MS_MAX",
    ),
    (
        "docs/reference/access.md",
        "without use, and after ",
        "crates/auth/src/logins.rs",
        "LOGIN_MS_MAX",
    ),
    (
        "docs/reference/access.md",
        "and after 7 days | ",
        "crates/auth/src/logins.rs",
        "LOGIN_IDLE_MS_MAX",
    ),
    (
        "docs/guide/access.md",
        "any characters; it can be given up to ",
        "crates/auth/src/token.rs",
        "PATTERNS_MAX",
    ),
    (
        "docs/guide/agents.md",
        "(`type`, `platform`, `host` …), at most ",
        "crates/board/src/model/agent.rs",
        "PROFILE_BYTES_MAX",
    ),
    (
        "docs/reference/blobs.md",
        "**Size.** At most ",
        "crates/board/src/values/blob_ref.rs",
        "BLOB_BYTES_MAX",
    ),
    ("docs/reference/events.md", "(at most ", "crates/http/src/read/deadline.rs", "WAIT_MS_MAX"),
    (
        "docs/reference/events.md",
        "precedence over `after`. - After ",
        "crates/http/src/events/sse.rs",
        "KEEP_ALIVE",
    ),
    (
        "docs/guide/history.md",
        "`POST …/checkpoints`, at most ",
        "crates/board/src/model/checkpoint.rs",
        "CHECKPOINTS_MAX",
    ),
    (
        "docs/reference/mcp.md",
        "answer of a tool that reads has at most ",
        "crates/mcp/src/call/visit.rs",
        "TOKENS_DEFAULT",
    ),
    ("docs/reference/mcp.md", "both from 100 to ", "crates/mcp/src/call/visit.rs", "TOKENS_MAX"),
    ("docs/reference/search.md", "ranks the best ", "crates/search/src/index.rs", "RANKED_MAX"),
    ("docs/reference/search.md", "reads at most ", "crates/search/src/index.rs", "EXAMINED_MAX"),
    (
        "docs/reference/search.md",
        "connection closes, and after ",
        "crates/service/src/search/mod.rs",
        "SEARCH_TIME_MAX",
    ),
    (
        "docs/ufo.md",
        "| a screenshot over ",
        "crates/board/src/values/image/mod.rs",
        "IMAGE_BYTES_MAX",
    ),
    (
        "docs/guide/sessions.md",
        "those of the last ",
        "crates/service/src/sessions/tombstones.rs",
        "TOMBSTONES_MAX",
    ),
    (
        "docs/guide/sessions.md",
        "waits up to ",
        "crates/http/src/read/deadline.rs",
        "REVISION_WAIT_MAX",
    ),
    ("docs/guide/state.md", "| most | ", "crates/board/src/state/mod.rs", "STATE_BYTES_MAX"),
];

#[test]
fn quantities_in_sentences_are_those_of_the_code() {
    let mut wrong = Vec::new();
    for (document, before, file, name) in STATED {
        let text = read(&root().join(document));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stated = text.split_once(before).and_then(|(_, rest)| quantity(rest));
        let real = constant(name, &read(&root().join(file)));
        if stated.is_none() || stated != real {
            wrong.push(format!("{document}: {before}{stated:?}, but {name} is {real:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
