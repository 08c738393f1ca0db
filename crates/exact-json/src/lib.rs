//! JSON kept as its text: checked, read and changed in place.
//!
//! Numbers, strings and member order stay as they were sent. [`syntax()`] takes any bytes; everything else takes text
//! that has passed it. Other text may give a wrong answer, but never a panic or an endless loop.

mod check;
mod document;
mod elements;
mod line;
mod members;
mod merge;
mod number;
mod patch;
mod pointer;
pub mod python;
mod scan;
mod string;
mod syntax;
pub mod tokens;
mod tree;

pub use check::{DEPTH_MAX, INTEGER_DIGITS_MAX, Reason, Unsupported};
pub use document::{Document, check, document, raw, syntax};
pub use elements::Elements;
pub use line::one_line;
pub use members::Members;
pub use merge::merge_patch;
pub use number::{Exact, sum, to_f64, whole};
pub use patch::{Fault, PatchError, json_patch};
pub use scan::{Kind, Member, elements, get, kind, members, select};
pub use string::{decode, escape, quote, short_escape};
pub use syntax::{Malformed, MalformedReason};
pub use tree::{TooDeep, Tree, canonical, equal};

#[cfg(test)]
mod tests;
