//! Commands on a session's history.

mod checkpoint;
mod diff;
mod fork;
mod restore;

use crate::remote::place::quoted;

pub(super) use checkpoint::Checkpoint;
pub(super) use diff::Diff;
pub(super) use fork::Fork;
pub(super) use restore::Restore;

/// Returns a point of the history as JSON: a revision is a number, and a checkpoint's name never is one.
fn point(text: &str) -> String {
    let revision = text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    revision.map_or_else(|| quoted(text), |revision| revision.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_revision_or_a_name() {
        assert_eq!(point("17"), "17");
        assert_eq!(point("007"), "7");
        assert_eq!(point("v1"), "\"v1\"");
        assert_eq!(point("+3"), "\"+3\"");
    }
}
