//! Requests and answers as JSON: in to commands, out of boards.
//!
//! Every door shares this layer, so nothing here knows a protocol: a [`Refusal`] is a code with facts and pointers,
//! and the door gives it a status.

pub(crate) mod address;
pub(crate) mod history;
pub(crate) mod intake;
pub(crate) mod offload;
pub(crate) mod params;
pub(crate) mod pieces;
pub(crate) mod prompt;
pub(crate) mod refusal;
pub(crate) mod schema;
pub(crate) mod segments;
pub(crate) mod signed_url;
pub(crate) mod view;
pub(crate) mod yielding;

pub use refusal::{Fault, Refusal};
