//! JSON of requests and responses: parses bodies into commands and renders boards.
//!
//! All protocols share this layer, so it depends on none. A [`Refusal`] is a code with facts and pointers, to which
//! each protocol assigns a status.

pub(crate) mod fingerprint;
pub(crate) mod history;
pub(crate) mod inbox;
pub(crate) mod intake;
pub(crate) mod log_page;
pub(crate) mod offload;
pub(crate) mod ops;
pub(crate) mod params;
pub(crate) mod pieces;
pub(crate) mod prompt;
pub(crate) mod refusal;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod segments;
pub(crate) mod signed_url;
pub(crate) mod suggestion;
pub(crate) mod tag;
pub(crate) mod view;
pub(crate) mod yielding;

use std::fmt;

pub use refusal::{Fault, Refusal};

/// Writes to a string or a hash, which cannot fail.
pub(crate) fn push(out: &mut impl fmt::Write, text: fmt::Arguments<'_>) {
    if out.write_fmt(text).is_err() {
        tracing::error!("writing a text failed");
    }
}
