//! Inboxes: the unanswered questions, and the claimable requests, of all sessions.
//!
//! Only sessions with such entries are visited: the writer notes them whenever it publishes.

use std::ops::Bound;
use std::sync::Arc;

use super::list::SelectedSession;
use super::sessions::session::{Session, Shown};
use super::{Listing, Service, ServiceError};
use blackboard_board::{Board, OpenEntry, Questions, Seq, SessionName, Summary};
use blackboard_store::Among;

/// The number of sessions looked up at once.
const SESSIONS_AT_ONCE: usize = 256;

/// The kind of entries in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbox {
    /// Questions without an answer.
    Questions,
    /// Claimable requests.
    Requests,
}

/// An open entry of an inbox.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Its session.
    pub session: SessionName,
    /// The entry.
    pub open: OpenEntry,
}

impl Service {
    /// Returns at most `limit` open entries after one of them, by session, then by seq.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Fault`].
    pub async fn inbox(
        &self,
        inbox: Inbox,
        listing: &Arc<Listing>,
        after: Option<&(SessionName, Seq)>,
        limit: usize,
    ) -> Result<Vec<Delivered>, ServiceError> {
        let (mut from, passed) = match after {
            // Further entries of the last session come first.
            Some((name, seq)) => (Bound::Included(name.clone()), Some((name, *seq))),
            None => (Bound::Unbounded, None),
        };
        let among = match inbox {
            Inbox::Questions => Among::Asking,
            Inbox::Requests => Among::Requesting,
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let sessions = self.list_among(listing, from.clone(), SESSIONS_AT_ONCE, among).await?;
            let Some(last) = sessions.last() else { break };
            from = Bound::Excluded(last.name().clone());
            for session in &sessions {
                let passed = passed.filter(|(last, _)| *last == session.name()).map(|(_, seq)| seq);
                let left = limit - found.len();
                if left == 0 {
                    break;
                }
                let open = match session {
                    SelectedSession::Running(session) => {
                        self.open_entries(inbox, session, passed, left).await
                    }
                    SelectedSession::Row(summary) => {
                        self.entries_of_row(inbox, summary, passed, left).await?
                    }
                };
                let delivered = |open| Delivered { session: session.name().clone(), open };
                found.extend(open.into_iter().map(delivered));
            }
            tokio::task::yield_now().await;
        }
        Ok(found)
    }

    /// Returns open entries of a session in a store that other servers write to.
    async fn entries_of_row(
        &self,
        inbox: Inbox,
        summary: &Summary,
        after: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<OpenEntry>, ServiceError> {
        if let Some(open) = of_summary(inbox, summary, after, limit) {
            return Ok(open);
        }
        self.catch_up(&summary.name).await?;
        let Some(session) = self.inner.sessions.directory.get(&summary.name) else {
            return Ok(Vec::new());
        };
        Ok(self.open_entries(inbox, &session, after, limit).await)
    }

    /// Returns at most `limit` open entries of a session after one of them. A session that is not in memory is loaded,
    /// unless its summary has all of its open questions.
    async fn open_entries(
        &self,
        inbox: Inbox,
        session: &Arc<Session>,
        after: Option<Seq>,
        limit: usize,
    ) -> Vec<OpenEntry> {
        let of_board = |board: &Board| match inbox {
            Inbox::Questions => board.open_questions(after).take(limit).collect(),
            Inbox::Requests => board.claimable_requests(after, limit),
        };
        if let Shown::Cold(summary) = session.shown()
            && let Some(open) = of_summary(inbox, &summary, after, limit)
        {
            return open;
        }
        match self.inner.sessions.loader.published(session).await {
            Ok(published) => of_board(&published.board),
            Err(error) => {
                tracing::warn!(session = %session.name(), %error, "a session's entries are missing from the inbox");
                Vec::new()
            }
        }
    }
}

/// Returns open entries from a summary alone; `None` if it does not have them.
fn of_summary(
    inbox: Inbox,
    summary: &Summary,
    after: Option<Seq>,
    limit: usize,
) -> Option<Vec<OpenEntry>> {
    let Questions::All(questions) = &summary.questions else { return None };
    let comes = |open: &&OpenEntry| after.is_none_or(|after| open.entry.seq > after);
    let open = questions.iter().filter(comes).take(limit).cloned().collect();
    (inbox == Inbox::Questions).then_some(open)
}
