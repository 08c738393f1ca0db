//! Tests of the whole layer: commands, their commits, and the resulting boards.

mod admit;
mod admit_past;
mod adopt;
mod agent;
mod asked;
mod attention;
pub(crate) mod board;
mod bounds;
mod checkpoint;
mod claim;
mod condition;
mod decide;
mod expiry;
mod forgotten;
mod image;
mod item;
mod key;
mod model;
pub(crate) mod plan;
mod prepared;
mod replay;
mod restore;
mod retention;
mod select;
mod shared_plan;
mod state;
mod summary;
#[expect(clippy::wildcard_enum_match_arm, reason = "the model treats the other states alike")]
mod task_play;
mod transaction;
