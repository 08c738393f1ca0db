//! What a blackboard is: its values and its rules.
//!
//! Nothing here knows a clock, a file, a network, an async runtime or HTTP. A write is decided
//! (`decide`), what happened is a commit, and a board is what its commits make of it (`apply`).

mod admit;
mod apply;
#[expect(clippy::module_inception, reason = "the board itself is one of the nouns of this layer")]
mod board;
mod bounds;
mod code;
mod command;
mod commit;
mod decide;
mod frame;
mod ids;
mod image;
mod item;
pub mod json;
mod log;
mod names;
mod select;
mod settings;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "deciding and applying are about to be built on it")
)]
mod state;
pub mod stored;
mod time;

pub use admit::{Misfit, admit};
pub use apply::apply;
pub use board::{Board, Life, Version};
pub use code::Code;
pub use command::{Answer, Command, Condition, Matches, Moment, Policy, Rejected, Which, Write};
pub use commit::{COMMIT_ITEMS_MAX, Change, Commit};
pub use decide::{Decision, decide, patchable};
pub use frame::{COMMIT_BYTES_MAX, Frame, FrameError};
pub use ids::{Digest, Epoch, Nonce, Revision, Seq, SessionId};
pub use image::{IMAGE_BYTES_MAX, IMAGE_MEMBER, IMAGE_TYPES, Image, Screenshot, recognise};
pub use item::{ITEM_BYTES_MAX, ITEM_DEPTH_MAX, InvalidItem, Item};
pub use log::{Entry, Log, LogName, SeqRange, Stamp, Updated};
pub use names::{AgentName, InvalidName, NAME_BYTES_MAX, SessionName};
pub use select::{Contains, Filter, Order, Selection, Walk};
pub use settings::{
    HISTORY_KEYS_MAX, LABEL_BYTES_MAX, LABELS_MAX, Labels, LabelsPatch, Set, Settings,
    SettingsPatch, patch_labels,
};
pub use state::{InvalidPath, NotAnObject, State, StatePath, StateValue};
pub use time::Timestamp;

#[cfg(test)]
mod admit_tests;
#[cfg(test)]
mod board_tests;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod condition_tests;
#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod item_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod select_tests;
