//! The inbox: the questions of all sessions that have no answer yet.
//!
//! Only sessions that have such questions are looked at: the writer notes them whenever it publishes.

use std::ops::Bound;
use std::sync::Arc;

use super::Service;
use super::session::{Session, Shown};
use crate::board::{Board, Life, Question, Questions, Seq, SessionName};

/// How many sessions are looked up at once.
const NAMES_AT_ONCE: usize = 256;

/// A question without an answer.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Its session.
    pub session: SessionName,
    /// The question.
    pub question: Question,
}

impl Service {
    /// At most `limit` questions without an answer after one of them, by session, then by seq: of the
    /// sessions whose name begins with `prefix` and that `matches` lets through.
    pub async fn inbox(
        &self,
        after: Option<&(SessionName, Seq)>,
        prefix: &str,
        limit: usize,
        matches: impl Fn(&SessionName, &Life) -> bool + Sync,
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
                if let Some(session) = self.inner.directory.get(&name)
                    && !session.is_damaged()
                {
                    let of_it = |life: &Life| matches(&name, life);
                    let questions = self.open_questions(&session, passed, left, &of_it).await;
                    let asking = |question| Asking { session: name.clone(), question };
                    found.extend(questions.into_iter().map(asking));
                }
            }
        }
        found
    }

    /// At most `limit` questions of a session without an answer, after one of them. Only where they are too
    /// large for its summary, its board is needed.
    async fn open_questions(
        &self,
        session: &Arc<Session>,
        after: Option<Seq>,
        limit: usize,
        matches: &(impl Fn(&Life) -> bool + Sync),
    ) -> Vec<Question> {
        let of_board = |board: &Board| match board.life() {
            Some(life) if matches(life) => board.open_questions(after).take(limit).collect(),
            Some(_) | None => Vec::new(),
        };
        match session.shown() {
            Shown::Hot(published) => of_board(&published.board),
            Shown::Cold(summary) => match (&summary.life, &summary.questions) {
                (Some(life), _) if !matches(life) => Vec::new(),
                (None, _) => Vec::new(),
                (Some(_), Questions::All(questions)) => {
                    let comes =
                        |question: &&Question| after.is_none_or(|after| question.entry.seq > after);
                    questions.iter().filter(comes).take(limit).cloned().collect()
                }
                (Some(_), Questions::TooLarge) => match self.inner.loads.published(session).await {
                    Ok(published) => of_board(&published.board),
                    Err(error) => {
                        tracing::warn!(session = %session.name(), %error, "questions are left out");
                        Vec::new()
                    }
                },
            },
        }
    }
}
