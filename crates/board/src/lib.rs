//! The blackboard's values and rules.
//!
//! This layer knows no clock, file, network, async runtime or HTTP. `decide` turns a write into a commit, and `apply`
//! turns commits into a board.

mod admit;
mod command;
mod commit;
mod decide;
mod log;
mod model;
pub mod packed;
pub mod size;
mod state;
pub mod stored;
mod values;

/// JSON kept as its exact text.
pub use exact_json as json;

pub use admit::imported::{CLOCK_AHEAD_MS_MAX, FOREIGN_REVISION_MAX, Foreign};
pub use admit::{Misfit, REVISION_MAX, admit};
pub use command::rejected::{BlobPlace, Branch, Current, Rejected, Why};
pub use command::{
    AgentCommand, Answer, BoardCommand, CheckpointCommand, Command, Condition, Edit, LogCommand,
    Matches, Moment, Policy, QuestionCommand, RequestCommand, SessionCommand, Terms, Test,
    Transaction, Which, Write,
};
pub use commit::apply::apply;
pub use commit::restored::{Restored, RestoredLog};
pub use commit::{
    AgentChange, COMMIT_ITEMS_MAX, COMMIT_KINDS, Change, CheckpointChange, Commit, Contents, Facts,
    IMAGES_FORGOTTEN_MAX, Indexed, LogChange, Note, Part, RequestChange, SessionChange,
    StateChange,
};
pub use decide::{
    Decision, Prepared, decide, decide_prepared, decide_unread, expire, patchable, permits,
};
pub use log::filter::{Contains, Field, Filter, is_open};
pub use log::{
    CHUNK_BYTES, CHUNK_ENTRIES, Entry, Keys as TextKeys, Log, LogName, Mark, Probe, Run, RunText,
    RunWeights, SeqRange, Stamp, TextForm, TextKind, Tokenizer, Updated,
};
pub use model::agent::{
    AGENT_STATES_MAX, AGENTS_MAX, Agent, AgentStates, Moves, PROFILE_BYTES_MAX, Profile, Status,
    is_known,
};
pub use model::attention::unacked::{UNACKED_MAX, Unacked};
pub use model::attention::{ATTENTION_ENTRIES_MAX, Attention, Awaiting, Waking};
pub use model::blob::{BLOBS_MAX, Blob};
pub use model::board::{Board, Life, Version};
pub use model::checkpoint::{CHECKPOINTS_MAX, Checkpoint};
pub use model::due::Due;
pub use model::idempotency::{Forgotten, KEY_CHARS_MAX, Kept, Key, KeyReused, Keys, Remembered};
pub use model::open_questions::{AWAITED_AT_ONCE_MAX, Asked, Awaited, DEFAULT_BYTES_MAX};
pub use model::prompt_format::PromptFormat;
pub use model::prompt_profile::{
    HEADING_BYTES_MAX, Headings, ImagesShown, InvalidPart, PROFILES_BYTES_MAX, PROFILES_MAX,
    PROMPT_KEYS_MAX, PROMPT_LATEST_MAX, PROMPT_MEMORIES_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX,
    PROMPT_SCREENSHOTS_MAX, PROMPT_STEPS_MAX, PROMPT_TOKENS_MAX, PromptPart, PromptProfile,
    PromptProfiles, are_parts, is_heading, is_step, profiles_bytes,
};
pub use model::selection::{Order, Selection, Walk};
pub use model::settings::{
    HISTORY_KEYS_MAX, History, LABEL_BYTES_MAX, LABELS_MAX, Labels, LabelsPatch, MaxItems,
    MaxItemsEach, Set, Settings, SettingsPatch, patch_labels,
};
pub use model::summary::{Extent, OpenEntry, QUESTIONS_BYTES_MAX, Questions, Summary};
pub use model::tasks::caps::{CAP_MAX, CAPS_MAX, Cap, Groups};
pub use model::tasks::matching::Matching;
pub use model::tasks::{Next, Slots, Tasks};
pub use state::{InvalidPath, NotAnObject, STATE_BYTES_MAX, State, StatePath, StateValue};
pub use stored::frame::{COMMIT_BYTES_MAX, Frame, FrameError, Seal};
pub use values::attempt::{
    CANCEL_GRACE_MS, Cancel, Outcome, PAST_ATTEMPTS_MAX, PAST_REASON_BYTES_MAX, PastAttempt,
    RETRY_IN_DAYS_MAX,
};
pub use values::blob_ref::{BLOB_BYTES_MAX, BLOB_MEMBER, BlobRef};
pub use values::byte_size::{ByteSize, InvalidSize};
pub use values::claim::{Claim, Done, Failed, Fence, Review, Verdict, Work};
pub use values::code::Code;
pub use values::cost::{Budget, Cost};
pub use values::ids::{Digest, Epoch, Hashing, Nonce, Revision, Seq, SessionId};
pub use values::image::{
    ANTHROPIC, COMMON_IMAGE_TYPES, DataUrl, GOOGLE, IMAGE_BYTES_MAX, IMAGE_MEMBER, Image,
    ImageLimits, ImageWarning, OPENAI, Screenshot, forgiving_base64,
};
pub use values::item::{ITEM_BYTES_MAX, ITEM_DEPTH_MAX, InvalidItem, Item};
pub use values::json::Json;
pub use values::media_type::{InvalidMediaType, MEDIA_TYPE_BYTES_MAX, MediaType};
pub use values::names::{
    AgentName, CheckpointName, InvalidName, NAME_BYTES_MAX, ProfileName, SessionName, TokenName,
};
pub use values::task::{
    AFTER_MAX, ATTEMPTS_MAX, DEPENDANTS_MAX, InvalidPriority, PRIORITY_MAX, Plan, PlanRequest,
    Priority, Rank, Task, WANTED_MAX, Wanted,
};
pub use values::time::{
    InvalidTimestamp, InvalidTtl, InvalidWhen, TTL_DAYS_MAX, Timestamp, Ttl, When,
};
pub use values::trace_id::{InvalidTraceId, TraceId};

#[cfg(test)]
mod tests;
