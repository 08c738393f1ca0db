//! JSON of requests and responses: parses bodies into commands and renders boards.
//!
//! All protocols share this layer, so it depends on none. A [`Refusal`] is a code with facts and pointers, to which
//! each protocol assigns a status.

pub mod attention;
pub mod fingerprint;
pub mod history;
pub mod inbox;
pub mod intake;
pub mod log_page;
pub mod offload;
pub mod ops;
pub mod params;
pub mod pieces;
pub mod prompt;
pub mod refusal;
pub mod schema;
pub mod search;
pub mod segments;
pub mod signed_url;
pub mod tag;
pub mod view;
pub mod yielding;

use std::fmt;

pub use refusal::{Fault, Refusal};

/// The server's name in every protocol.
pub const NAME: &str = "blackboard";

/// The server's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The purpose of the server, in one sentence.
pub const PURPOSE: &str = "A durable blackboard server that agents on many devices share over HTTP";

/// Writes to a string or a hash, which cannot fail.
pub fn push(out: &mut impl fmt::Write, text: fmt::Arguments<'_>) {
    if out.write_fmt(text).is_err() {
        tracing::error!("writing a text failed");
    }
}
