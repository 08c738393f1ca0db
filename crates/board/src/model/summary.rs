//! Summaries of sessions, kept without their boards.
//!
//! Lists, the inbox, deadlines and names use them. A summary is derived from the board at one revision. No rule
//! depends on it.

use std::ops::Bound;
use std::sync::{Arc, LazyLock};

use super::board::Life;
use super::settings::{Labels, Settings};
use crate::{
    Board, Cost, Entry, Log, LogName, Revision, Seq, SessionId, SessionName, Timestamp, Version,
    size,
};

/// The maximum size of a session's open questions in its summary, in bytes.
pub const QUESTIONS_BYTES_MAX: usize = 16 << 10;

/// The bytes added for each question besides its text.
const QUESTION_ITSELF: u64 = 256;

/// A summary of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The session and the range of its history.
    pub extent: Extent,
    /// The session's name, even after its deletion.
    pub name: SessionName,
    /// The time of the last commit.
    pub updated_at: Timestamp,
    /// The session's facts, if it exists.
    pub life: Option<Life>,
    /// The numbers of entries in the four logs, in the order of [`LogName::BOARD`].
    pub counts: [usize; 4],
    /// The number of registered agents.
    pub agents: usize,
    /// The number of entries in all memories.
    pub memory_entries: u64,
    /// The bytes of the state's text, 0 if it is empty.
    pub state_bytes: u64,
    /// The bytes of text in items, state and agents' profiles.
    pub bytes: u64,
    /// The bytes of all images that the history names, and of all blobs.
    pub image_bytes: u64,
    /// The number of blobs.
    pub blobs: usize,
    /// The bytes of the retained commits, as stored.
    pub history_bytes: u64,
    /// The history's bytes at its last snapshot, or 0.
    pub snapshot_bytes: u64,
    /// The next deadline.
    pub next_due: Option<Timestamp>,
    /// The questions without an answer.
    pub questions: Questions,
    /// The number of claimable requests.
    pub claimable: usize,
    /// The sum of the memories' costs.
    pub cost: Cost,
}

/// The range of revisions in a session's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The session.
    pub session: SessionId,
    /// The oldest revision that the history can show.
    pub oldest: Revision,
    /// The last revision of its name before this history was adopted.
    pub floor: Revision,
    /// The latest revision.
    pub revision: Revision,
}

/// The questions of a session without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Questions {
    /// All of them, in the order of their seqs.
    All(Box<[OpenEntry]>),
    /// The questions are too large to be kept here.
    TooLarge,
}

/// An open entry: a question without an answer, or a claimable request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// The entry.
    pub entry: Arc<Entry>,
    /// The deadline of a question, if it has one.
    pub expires_at: Option<Timestamp>,
}

impl Summary {
    /// Creates the summary of a session with this board.
    #[must_use]
    pub fn of(board: &Board, name: &SessionName, history_bytes: u64, snapshot_bytes: u64) -> Self {
        let counts = board.logs().each_ref().map(Log::len);
        let of_board = counts.iter().sum::<usize>() as u64;
        Self {
            extent: board.extent(),
            name: name.clone(),
            updated_at: board.updated_at(),
            life: board.life().cloned().map(Life::lean),
            counts,
            agents: board.agents().len(),
            memory_entries: board.entries - board.message_entries - of_board,
            state_bytes: if board.state().is_empty() { 0 } else { board.state().bytes() },
            bytes: board.bytes(),
            image_bytes: board.image_bytes(),
            blobs: board.blobs().len(),
            history_bytes,
            snapshot_bytes,
            next_due: board.next_due(),
            questions: Questions::of(board),
            claimable: board.tasks().claimable_now(),
            cost: board.cost(),
        }
    }

    /// Returns the summary after the history up to `oldest` is deleted, with the bytes of commits that are left.
    #[must_use]
    pub fn beginning_at(&self, oldest: Revision, history_bytes: u64) -> Self {
        let dropped_bytes = self.history_bytes.saturating_sub(history_bytes);
        Self {
            extent: Extent { oldest, ..self.extent },
            history_bytes,
            snapshot_bytes: self.snapshot_bytes.saturating_sub(dropped_bytes),
            ..self.clone()
        }
    }

    /// Returns the board of a deleted session, without keys. Returns `None` if the session exists.
    #[must_use]
    pub fn deleted_board(&self, written_at: Timestamp) -> Option<Board> {
        let Extent { session, oldest, floor, revision } = self.extent;
        let updated_at = self.updated_at;
        let absent = || Board::absent(session, revision);
        self.life.is_none().then(|| Board { oldest, floor, updated_at, written_at, ..absent() })
    }

    /// Copies the questions out of their pages, so that the summary does not retain the board's texts.
    #[must_use]
    pub fn detached(mut self) -> Self {
        if let Questions::All(questions) = &mut self.questions {
            for question in questions.iter_mut().filter(|question| question.entry.item.is_in_page())
            {
                let item = question.entry.item.detached();
                question.entry = Arc::new(Entry { item, ..Entry::clone(&question.entry) });
            }
        }
        self
    }

    /// Returns true if the costs have passed the session's `cost_max`.
    #[must_use]
    pub fn is_over_budget(&self) -> bool {
        let max = self.life.as_ref().and_then(|life| life.settings.cost_max);
        max.is_some_and(|max| self.cost > max.cost())
    }

    /// Returns true if the four logs are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// Returns the version of the whole session.
    #[must_use]
    pub fn version(&self) -> Version {
        self.extent.version()
    }

    /// Estimates the memory of the summary in bytes, without data shared with other summaries.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let life = self.life.as_ref().map_or(0, Life::resident_bytes);
        size::shared(size_of::<Self>()) + life + self.questions.bytes()
    }
}

/// The memory of a label besides its text.
const LABEL_ITSELF: usize = 64;

/// The default settings, shared by most sessions.
static NO_SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(Arc::default);

/// The empty labels, shared by most sessions.
static NO_LABELS: LazyLock<Arc<Labels>> = LazyLock::new(Arc::default);

impl Life {
    /// Estimates the memory of the labels and the settings, unless they are shared with other sessions. The name is the
    /// session's own.
    pub(crate) fn resident_bytes(&self) -> usize {
        let labels = self.labels.iter();
        let labels: usize =
            labels.map(|(name, value)| name.len() + value.len() + LABEL_ITSELF).sum();
        let is_shared = Arc::ptr_eq(&self.settings, &*NO_SETTINGS);
        let settings = if is_shared { 0 } else { size::shared(size_of::<Settings>()) };
        labels + settings
    }

    /// Shares its default values with other sessions.
    pub(crate) fn lean(mut self) -> Self {
        if *self.settings == **NO_SETTINGS {
            self.settings = Arc::clone(&NO_SETTINGS);
        }
        if self.labels.is_empty() {
            self.labels = Arc::clone(&NO_LABELS);
        }
        self
    }
}

impl Extent {
    /// Returns the lowest cursor from which a reader can continue. All later commits are retained, and the cursor
    /// belongs to this history.
    #[must_use]
    pub fn oldest_cursor(&self) -> Revision {
        if self.floor == Revision::default() {
            self.oldest
        } else {
            self.oldest.max(self.floor.next())
        }
    }

    /// Returns the version of the whole session. Every commit changes this version.
    #[must_use]
    pub fn version(&self) -> Version {
        Version { session: self.session, changed: self.revision }
    }
}

impl Questions {
    fn of(board: &Board) -> Self {
        let mut questions = Vec::new();
        let mut bytes = 0;
        for question in board.open_questions(None) {
            bytes += question.entry.bytes() + QUESTION_ITSELF;
            if bytes > QUESTIONS_BYTES_MAX as u64 {
                return Self::TooLarge;
            }
            questions.push(question);
        }
        Self::All(questions.into())
    }

    /// Returns true if there are no questions.
    #[must_use]
    pub fn are_none(&self) -> bool {
        matches!(self, Self::All(questions) if questions.is_empty())
    }

    fn bytes(&self) -> usize {
        let Self::All(questions) = self else { return 0 };
        let of = |question: &OpenEntry| question.entry.bytes() + QUESTION_ITSELF;
        usize::try_from(questions.iter().map(of).sum::<u64>()).unwrap_or(usize::MAX)
    }
}

impl Board {
    /// Returns the questions without an answer after the given one, ordered by seq.
    pub fn open_questions(&self, after: Option<Seq>) -> impl Iterator<Item = OpenEntry> {
        let questions = self.log(&LogName::Questions);
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.asked().open().range((start, Bound::Unbounded));
        open.filter_map(move |seq| {
            let entry = Arc::clone(questions?.get(*seq)?);
            let expires_at = self.asked().awaited(*seq).map(|until| until.expires_at);
            Some(OpenEntry { entry, expires_at })
        })
    }

    /// Returns the first requests after the given one that can be claimed now, ordered by seq.
    #[must_use]
    pub fn claimable_requests(&self, after: Option<Seq>, limit: usize) -> Vec<OpenEntry> {
        let requests = self.log(&LogName::Requests);
        let open = |seq| {
            let entry = Arc::clone(requests?.get(seq)?);
            Some(OpenEntry { entry, expires_at: None })
        };
        let found = self.tasks().claimable_after(after.unwrap_or_default(), limit);
        found.into_iter().filter_map(open).collect()
    }

    /// Returns the range of the session's history.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent {
            session: self.id(),
            oldest: self.oldest(),
            floor: self.floor,
            revision: self.revision(),
        }
    }
}
