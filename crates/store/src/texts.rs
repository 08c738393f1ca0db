//! Texts of entries in a store that other servers write to: found by words, written by the leader.

use std::collections::HashMap;
use std::time::Duration;

use super::StoreError;
use blackboard_board::{Revision, SessionId, Timestamp};

/// A change of the texts of a session.
#[derive(Clone, Debug)]
pub enum TextChange {
    /// All texts of the session are gone.
    Forget,
    /// All texts of a log are gone.
    ClearLog(String),
    /// The texts from one entry of a log to another are gone.
    Remove {
        /// The log.
        log: String,
        /// The first entry.
        first: u64,
        /// The last entry.
        last: u64,
    },
    /// An entry has this text, in place of an earlier one.
    Put {
        /// The log.
        log: String,
        /// The entry.
        seq: u64,
        /// The time of the append.
        at: Timestamp,
        /// The author, if named.
        agent: Option<String>,
        /// The words of the text with their places, from 1.
        words: Vec<(String, u32)>,
    },
    /// The texts are those of this revision.
    Reached {
        /// The revision.
        revision: Revision,
        /// The version of their words.
        version: i64,
    },
}

/// A log with texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLog {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Vec<u8>,
    /// The log.
    pub log: String,
}

/// A query for entries by their words. Nothing outside its logs is read for it.
#[derive(Clone, Debug, Default)]
pub struct TextQuery {
    /// Words that each has, and true for the beginning of a word.
    pub wanted: Vec<(String, bool)>,
    /// Words that none has, and true for the beginning of a word.
    pub unwanted: Vec<(String, bool)>,
    /// The logs, and of each the author of its entries, if selected.
    pub logs: Vec<(SessionId, String, Option<String>)>,
    /// The time of the oldest, if selected.
    pub since: Option<Timestamp>,
    /// The maximum number of entries: the best ones.
    pub limit: usize,
    /// The longest time that the query may take.
    pub time_max: Duration,
}

/// An entry that a query found.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFound {
    /// The place of its log in the query.
    pub log: usize,
    /// The entry.
    pub seq: u64,
    /// The rank by its text alone; higher is better.
    pub score: f64,
}

/// The texts of a store that other servers write to.
pub trait TextStore {
    /// Returns the sessions of at most `max` names whose texts are not those of their heads in words of this version.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn texts_behind(&self, version: i64, max: usize) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the revisions of the texts of those sessions that have any; 0 if their words are of another version.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn texts_at(
        &self,
        version: i64,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, Revision>, StoreError>;

    /// Makes these changes, all or none.
    ///
    /// # Errors
    /// If they cannot be stored.
    fn change_texts(&self, changes: &[(SessionId, TextChange)]) -> Result<(), StoreError>;

    /// Returns the logs with texts of existing sessions, by ranges of names and of logs: each from the first to one that is
    /// behind the last.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn text_logs(
        &self,
        names: &[(Vec<u8>, Vec<u8>)],
        logs: &[(String, String)],
    ) -> Result<Vec<TextLog>, StoreError>;

    /// Returns the entries that a query finds, the best ones first; of equal ones the newest. `None` if it took too long.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn find_texts(&self, query: &TextQuery) -> Result<Option<Vec<TextFound>>, StoreError>;
}
