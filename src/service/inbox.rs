//! The inbox: the questions of all sessions that have no answer yet.
//!
//! Only sessions that have such questions are looked at: the writer notes them whenever it publishes.

use std::ops::Bound;
use std::sync::Arc;

use super::Service;
use crate::board::{Board, Entry, LogName, Seq, SessionName};

/// How many sessions are looked up at once.
const NAMES_AT_ONCE: usize = 256;

/// A question without an answer, and the board that it was found on.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Its session.
    pub session: SessionName,
    /// The session's board.
    pub board: Arc<Board>,
    /// The question.
    pub entry: Arc<Entry>,
}

impl Service {
    /// At most `limit` questions without an answer after one of them, by session, then by seq: of the
    /// sessions whose name begins with `prefix` and that `matches` lets through.
    #[must_use]
    pub fn inbox(
        &self,
        after: Option<&(SessionName, Seq)>,
        prefix: &str,
        limit: usize,
        matches: impl Fn(&Board) -> bool,
    ) -> Vec<Asking> {
        let (mut from, passed) = match after {
            // Further questions of the last session come first.
            Some((name, seq)) => (Bound::Included(name.clone()), Some((name, *seq))),
            None => (Bound::Unbounded, None),
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let start = from.as_ref().map(SessionName::as_str);
            let names = self.inner.directory.asking(start, prefix, NAMES_AT_ONCE);
            let Some(last) = names.last() else { break };
            from = Bound::Excluded(last.clone());
            for name in names {
                let passed = passed.filter(|(last, _)| **last == name).map(|(_, seq)| seq);
                let left = limit - found.len();
                if left == 0 {
                    break;
                }
                if let Ok(Some(published)) = self.published(&name)
                    && matches(&published.board)
                {
                    found.extend(open(&name, &published.board, passed, left));
                }
            }
        }
        found
    }
}

/// At most `limit` questions of a session without an answer, after one of them.
fn open(
    session: &SessionName,
    board: &Arc<Board>,
    after: Option<Seq>,
    limit: usize,
) -> Vec<Asking> {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let Some(questions) = board.log(&LogName::Questions) else { return Vec::new() };
    let entries = board.asked().open().range((start, Bound::Unbounded));
    let entries = entries.filter_map(|seq| questions.get(*seq)).take(limit);
    let asking = |entry: &Arc<Entry>| Asking {
        session: session.clone(),
        board: Arc::clone(board),
        entry: Arc::clone(entry),
    };
    entries.map(asking).collect()
}
