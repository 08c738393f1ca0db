//! What a blackboard is: its values and its rules.
//!
//! Nothing here knows a clock, a file, a network, an async runtime or HTTP. A write is decided
//! (`decide`), what happened is a commit, and a board is what its commits make of it (`apply`).

mod admit;
mod admit_restored;
mod agent;
mod apply;
mod asked;
#[expect(clippy::module_inception, reason = "the board itself is one of the nouns of this layer")]
mod board;
mod bounds;
mod checkpoint;
mod claim;
mod code;
mod command;
mod commit;
mod decide;
mod foreign;
mod frame;
mod idempotency;
mod ids;
mod image;
mod item;
pub mod json;
mod log;
mod names;
mod profile;
mod rejected;
mod restore;
mod restored;
mod select;
mod settings;
mod size;
mod state;
pub mod stored;
mod summary;
mod time;
mod value;
mod weight;

pub use admit::{Misfit, REVISION_MAX, admit};
pub use agent::{
    AGENT_STATES_MAX, AGENTS_MAX, Agent, AgentStates, Moves, PROFILE_BYTES_MAX, Profile, Status,
    is_known,
};
pub use apply::apply;
pub use asked::{AWAITED_AT_ONCE_MAX, Asked, Awaited, DEFAULT_BYTES_MAX, is_open};
pub use board::{Board, Life, Version};
pub use checkpoint::{CHECKPOINTS_MAX, Checkpoint};
pub use claim::{Claim, Done, Fence, Work};
pub use code::Code;
pub use command::{
    Answer, Command, Condition, Edit, Matches, Moment, Policy, Terms, Test, Transaction, Which,
    Write,
};
pub use commit::{COMMIT_ITEMS_MAX, Change, Commit, Due, IMAGES_FORGOTTEN_MAX};
pub use decide::{
    Decision, Prepared, decide, decide_prepared, decide_unread, expire, patchable, permits,
};
pub use foreign::{CLOCK_AHEAD_MS_MAX, FOREIGN_REVISION_MAX, Foreign};
pub use frame::{COMMIT_BYTES_MAX, Frame, FrameError};
pub use idempotency::{Forgotten, KEY_CHARS_MAX, Kept, Key, Keys, Remembered};
pub use ids::{Digest, Epoch, Hashing, Nonce, Revision, Seq, SessionId};
pub use image::{IMAGE_BYTES_MAX, IMAGE_MEMBER, IMAGE_TYPES, Image, Screenshot, recognise};
pub use item::{ITEM_BYTES_MAX, ITEM_DEPTH_MAX, InvalidItem, Item};
pub use log::{
    CHUNK_BYTES, CHUNK_ENTRIES, Entry, Keys as TextKeys, Log, LogName, Mark, Probe, Run, RunText,
    RunWeights, Scale, SeqRange, Stamp, TextForm, TextKind, Updated,
};
pub use names::{
    AgentName, CheckpointName, InvalidName, NAME_BYTES_MAX, ProfileName, SessionName, TokenName,
};
pub use profile::{
    HEADING_BYTES_MAX, Headings, ImagesShown, InvalidPart, PROFILES_BYTES_MAX, PROFILES_MAX,
    PROMPT_KEYS_MAX, PROMPT_LATEST_MAX, PROMPT_MEMORIES_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX,
    PROMPT_SCREENSHOTS_MAX, PROMPT_STEPS_MAX, PROMPT_TOKENS_MAX, PromptFormat, PromptPart,
    PromptProfile, PromptProfiles, are_parts, is_heading, is_step, profiles_bytes,
};
pub use rejected::{Branch, Current, Rejected};
pub use restored::{Restored, RestoredLog};
pub use select::{Contains, Filter, Order, Selection, Walk};
pub use settings::{
    HISTORY_KEYS_MAX, History, LABEL_BYTES_MAX, LABELS_MAX, Labels, LabelsPatch, MaxItems,
    MaxItemsEach, Set, Settings, SettingsPatch, patch_labels,
};
pub use size::{ByteSize, InvalidSize};
pub use state::{InvalidPath, NotAnObject, STATE_BYTES_MAX, State, StatePath, StateValue};
pub use summary::{Extent, QUESTIONS_BYTES_MAX, Question, Questions, Summary};
pub use time::{InvalidTimestamp, InvalidTtl, TTL_DAYS_MAX, Timestamp, Ttl};
pub use value::Json;

#[cfg(test)]
mod admit_past_tests;
#[cfg(test)]
mod admit_tests;
#[cfg(test)]
mod adopt_tests;
#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod asked_tests;
#[cfg(test)]
mod board_tests;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod condition_tests;
#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod forgotten_tests;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod item_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod prepared_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod retention_tests;
#[cfg(test)]
mod select_tests;
#[cfg(test)]
mod shared_plan_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod summary_tests;
#[cfg(test)]
mod transaction_tests;
