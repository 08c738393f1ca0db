//! The tools of the board, a file for each noun.

pub(super) mod attention;
pub(super) mod changes;
pub(super) mod history;
pub(super) mod logs;
pub(super) mod messages;
pub(super) mod overview;
pub(super) mod prompt;
pub(super) mod questions;
pub(super) mod reading;
pub(super) mod requests;
pub(super) mod screenshots;
pub(super) mod search;
pub(super) mod state;
pub(super) mod transact;
