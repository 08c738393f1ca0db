//! The tables: the journal, bases, snapshots, summaries and tokens, row by row.

pub(crate) mod bases;
mod insert;
pub(crate) mod journal;
pub(crate) mod parts;
pub(crate) mod positions;
mod put_parts;
pub(crate) mod read;
mod snapshots;
pub(crate) mod summaries;
pub(crate) mod tokens;
