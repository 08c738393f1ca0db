//! JSON kept as its text: what a document must be to be taken in, and how to read and change it in place.
//!
//! Numbers, strings and member order stay as they were sent. Apart from [`syntax()`], everything here takes
//! text that has passed it; any other text may give nonsense, but never a panic or an endless loop.

pub(crate) mod check;
mod elements;
mod line;
pub(crate) mod members;
mod merge;
mod number;
mod patch;
mod pointer;
mod scan;
mod string;
pub(crate) mod syntax;
pub(crate) mod tokens;
mod tree;

pub use check::{DEPTH_MAX, INTEGER_DIGITS_MAX, Reason, Unsupported, check};
pub use line::one_line;
pub use merge::merge_patch;
pub use number::{Exact, sum, to_f64, whole};
pub use patch::{Fault, PatchError, json_patch};
pub use scan::{Kind, Member, elements, get, kind, members, select};
pub(crate) use string::short_escape;
pub use string::{decode, quote};
pub use syntax::{Malformed, MalformedReason, document, syntax};
pub(super) use tree::Tree;
pub use tree::equal;

#[cfg(test)]
mod tests;
