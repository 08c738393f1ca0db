//! The inbox: unanswered questions of all sessions.
//!
//! Only sessions with unanswered questions are visited: the writer notes them whenever it publishes.

use std::ops::Bound;
use std::sync::Arc;

use super::sessions::session::{Session, Shown};
use super::{Listing, Service, ServiceError};
use crate::board::{Board, Question, Questions, Seq, SessionName};

/// The number of sessions looked up at once.
const SESSIONS_AT_ONCE: usize = 256;

/// A question without an answer.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Its session.
    pub session: SessionName,
    /// The question.
    pub question: Question,
}

impl Service {
    /// Returns at most `limit` open questions after one of them, by session, then by seq.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Fault`].
    pub async fn inbox(
        &self,
        listing: &Arc<Listing>,
        after: Option<&(SessionName, Seq)>,
        limit: usize,
    ) -> Result<Vec<Asking>, ServiceError> {
        let (mut from, passed) = match after {
            // Further questions of the last session come first.
            Some((name, seq)) => (Bound::Included(name.clone()), Some((name, *seq))),
            None => (Bound::Unbounded, None),
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let sessions = self.asking(listing, from.clone(), SESSIONS_AT_ONCE).await?;
            let Some(last) = sessions.last() else { break };
            from = Bound::Excluded(last.name().clone());
            for session in &sessions {
                let passed = passed.filter(|(last, _)| *last == session.name()).map(|(_, seq)| seq);
                let left = limit - found.len();
                if left == 0 {
                    break;
                }
                let questions = self.open_questions(session, passed, left).await;
                let asking = |question| Asking { session: session.name().clone(), question };
                found.extend(questions.into_iter().map(asking));
            }
            tokio::task::yield_now().await;
        }
        Ok(found)
    }

    /// Returns at most `limit` open questions of a session after one of them. The board is needed only if they are
    /// too large for the summary.
    async fn open_questions(
        &self,
        session: &Arc<Session>,
        after: Option<Seq>,
        limit: usize,
    ) -> Vec<Question> {
        let of_board = |board: &Board| board.open_questions(after).take(limit).collect();
        match session.shown() {
            Shown::Hot(published) => of_board(&published.board),
            Shown::Cold(summary) => match &summary.questions {
                Questions::All(questions) => {
                    let comes =
                        |question: &&Question| after.is_none_or(|after| question.entry.seq > after);
                    questions.iter().filter(comes).take(limit).cloned().collect()
                }
                Questions::TooLarge => match self.inner.sessions.loader.published(session).await {
                    Ok(published) => of_board(&published.board),
                    Err(error) => {
                        tracing::warn!(session = %session.name(), %error, "a session's questions are missing from the inbox");
                        Vec::new()
                    }
                },
            },
        }
    }
}
