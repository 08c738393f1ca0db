//! Validated values: ids, names, times, sizes, JSON, items and images.

pub(crate) mod attempt;
pub(crate) mod blob_ref;
pub(crate) mod byte_size;
pub(crate) mod claim;
pub(crate) mod code;
pub(crate) mod cost;
pub(crate) mod ids;
pub(crate) mod image;
pub(crate) mod item;
pub(crate) mod json;
pub(crate) mod media_type;
pub(crate) mod names;
pub(crate) mod task;
pub(crate) mod time;
pub(crate) mod trace_id;
