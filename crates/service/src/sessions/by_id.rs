//! Sessions by id, with the revision of each stored summary.
//!
//! Former sessions of a name stay until the store has recorded their deletion.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

use super::session::Session;
use blackboard_board::stored::{Body, Unreadable};
use blackboard_board::{Frame, Revision, SessionId, Summary, size, stored};
use blackboard_store::SummaryRow;

/// The memory of a session's place among them.
pub(crate) const SESSION_BYTES: usize = size::hashed(size_of::<(SessionId, Known)>());

/// All sessions by id.
#[derive(Debug, Default)]
pub(crate) struct SessionsById {
    known: Mutex<HashMap<SessionId, Known>>,
    /// Damaged ids, by the session whose rows have them.
    strays: Mutex<HashMap<SessionId, Vec<SessionId>>>,
}

#[derive(Debug)]
struct Known {
    whose: Whose,
    /// The revision of the stored summary.
    stored: Revision,
}

#[derive(Debug)]
enum Whose {
    /// The present session of its name.
    Running(Arc<Session>),
    /// A former session of its name.
    Former(Arc<Summary>),
}

impl Whose {
    /// Summary of this session, unless it is damaged.
    fn summary(&self, id: SessionId) -> Option<Arc<Summary>> {
        let summary = match self {
            Self::Running(session) if session.is_damaged() => return None,
            Self::Running(session) => session.summary(),
            Self::Former(summary) => Arc::clone(summary),
        };
        (summary.extent.session == id).then_some(summary)
    }
}

impl SessionsById {
    /// Adds a session, with the revision of its stored summary.
    pub(crate) fn add(&self, id: SessionId, session: &Arc<Session>, stored: Revision) {
        let whose = Whose::Running(Arc::clone(session));
        self.known.lock().insert(id, Known { whose, stored });
    }

    /// Adds a former session of a name.
    pub(crate) fn add_former(&self, former: Arc<Summary>, stored: Revision) {
        let id = former.extent.session;
        self.known.lock().insert(id, Known { whose: Whose::Former(former), stored });
    }

    /// Notes a name's new session, and the summary of the former one.
    pub(crate) fn follow(&self, id: SessionId, session: &Arc<Session>, former: Arc<Summary>) {
        let mut known = self.known.lock();
        if let Some(before) = known.get_mut(&former.extent.session) {
            before.whose = Whose::Former(former);
        }
        let whose = Whose::Running(Arc::clone(session));
        known.insert(id, Known { whose, stored: Revision::default() });
    }

    /// Sets the damaged ids of each session.
    pub(crate) fn set_strays(&self, strays: HashMap<SessionId, Vec<SessionId>>) {
        *self.strays.lock() = strays;
    }

    /// Removes a session, and returns all ids of its rows, which the store deletes then.
    pub(crate) fn remove(&self, id: SessionId) -> Vec<SessionId> {
        self.known.lock().remove(&id);
        let mut all = self.strays.lock().remove(&id).unwrap_or_default();
        all.push(id);
        all
    }

    /// Notes that the stored summary of a session is outdated.
    pub(crate) fn outdate(&self, id: SessionId) {
        if let Some(known) = self.known.lock().get_mut(&id) {
            known.stored = Revision::default();
        }
    }

    /// Returns the summaries of these sessions as rows.
    pub(crate) fn rows(&self, sessions: &[SessionId]) -> Vec<SummaryRow> {
        let summary = |id: &SessionId| self.known.lock().get(id)?.whose.summary(*id);
        sessions.iter().filter_map(summary).filter_map(|summary| summary_row(&summary)).collect()
    }

    /// Notes that these rows are stored, and removes former sessions among them.
    pub(crate) fn note_stored(&self, rows: &[SummaryRow]) {
        let mut known = self.known.lock();
        for row in rows {
            let Some(found) = known.get_mut(&row.session) else { continue };
            match &found.whose {
                Whose::Running(_) => found.stored = found.stored.max(row.revision),
                Whose::Former(former) if former.extent.revision <= row.revision => {
                    known.remove(&row.session);
                }
                Whose::Former(_) => {}
            }
        }
    }

    /// Returns the sessions whose stored summaries are outdated.
    pub(crate) fn behind(&self) -> Vec<SessionId> {
        let known = self.known.lock();
        let is_behind = |whose: &Whose, stored: Revision| match whose {
            Whose::Running(session) => !session.is_damaged() && session.extent().revision != stored,
            Whose::Former(_) => true,
        };
        let behind = known.iter().filter(|(_, known)| is_behind(&known.whose, known.stored));
        behind.map(|(id, _)| *id).collect()
    }

    /// Returns the present session with this id.
    pub(crate) fn running(&self, id: SessionId) -> Option<Arc<Session>> {
        match &self.known.lock().get(&id)?.whose {
            Whose::Running(session) => Some(Arc::clone(session)),
            Whose::Former(_) => None,
        }
    }
}

/// Returns a summary's stored form.
pub(crate) fn summary_row(summary: &Summary) -> Option<SummaryRow> {
    let (session, revision) = (summary.extent.session, summary.extent.revision);
    let framed =
        stored::encode_summary(summary).map_err(|error| error.to_string()).and_then(|body| {
            Frame::encode(session, revision, &Body::plain(&body)).map_err(|error| error.to_string())
        });
    match framed {
        Ok(frame) => Some(SummaryRow { session, revision, frame }),
        Err(error) => {
            tracing::error!(%session, error, "a summary could not be written");
            None
        }
    }
}

/// The reason why a stored summary cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is of another version of the format: rebuilt in time.
    OtherVersion,
    /// It is damaged.
    Damaged,
}

/// Decodes a stored summary.
pub(crate) fn read_summary(row: &SummaryRow) -> Result<Summary, Unusable> {
    let SummaryRow { session, revision, ref frame } = *row;
    let damaged = |error: &dyn Display| {
        tracing::warn!(%session, %revision, %error, "a summary cannot be read; its history is used");
        Unusable::Damaged
    };
    let body = Frame::decode(session, revision, frame).map_err(|error| damaged(&error))?;
    match stored::decode_summary(session, &body) {
        Ok(summary) if summary.extent.revision == revision => Ok(summary),
        Ok(_) => Err(damaged(&"it is of another revision")),
        Err(Unreadable::Summary) => Err(Unusable::OtherVersion),
        Err(error) => Err(damaged(&error)),
    }
}

/// Decodes a stored summary, if it can be used.
pub(crate) fn summary_of(row: &SummaryRow) -> Option<Summary> {
    read_summary(row).ok()
}
