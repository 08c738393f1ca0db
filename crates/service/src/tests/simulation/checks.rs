//! Promises that hold after each step, and at the end.

use super::*;
use crate::sessions::replay::replay_to_head;
use crate::sessions::session::Shown;
use blackboard_board::{Board, Log};

impl Simulation {
    /// A write is answered once it is durable and shown.
    pub(super) fn check_done(&self, running: &Running, op: usize, receipt: &Receipt) {
        if !receipt.committed || running.engine.is_poisoned() {
            return;
        }
        let (board, op) = (&receipt.board, &self.ops[op]);
        let disk = self.disk.lock();
        let is_durable = |(session, revision, frame): &(_, _, Vec<u8>)| {
            let has_word = op.word.as_ref().is_none_or(|word| has(frame, word));
            *session == board.id() && *revision == board.revision() && has_word
        };
        let is_so =
            disk.ever.iter().any(is_durable) || is_deleted(&disk, board.id(), board.revision());
        assert!(is_so, "answered before it was durable: {}", op.request);
        let session = running.service.inner.sessions.directory.get(op.request.session());
        let shown = session.map(|session| session.extent()).filter(|at| at.session == board.id());
        if let Some(shown) = shown {
            assert!(shown.revision >= board.revision(), "answered before it was shown");
        }
    }

    /// The source of a fork keeps its key too, unless it was deleted.
    pub(super) fn check_source(&self, op: usize, receipt: &Receipt, source: SessionId) {
        let Some(word) = &self.ops[op].word else { return };
        let disk = self.disk.lock();
        let elsewhere = disk.ever.iter().filter(|(session, ..)| *session != receipt.board.id());
        let is_kept = elsewhere.into_iter().any(|(.., frame)| has(frame, word));
        assert!(is_kept || disk.ended.contains_key(&source), "the source of a fork lacks its key");
    }

    /// A purged history begins where the answer says, also after a crash.
    pub(super) fn check_purged(
        &self,
        running: &Running,
        session: &SessionName,
        id: Option<SessionId>,
        oldest: Revision,
    ) {
        let found = running.service.inner.sessions.directory.get(session);
        let extent = found.map(|session| session.extent());
        // The session may have been replaced meanwhile.
        let Some(shown) = extent.filter(|shown| Some(shown.session) == id) else { return };
        assert!(shown.oldest >= oldest, "{session} is shown from {}, not {oldest}", shown.oldest);
        let durable = self.disk.lock().base(shown.session);
        assert!(durable >= Some(oldest), "{session} begins at {durable:?}, not {oldest}");
    }

    /// All that is shown is durable, and all that is durable is shown, unless the store has failed.
    pub(super) fn check_shown(&self, running: &Running) {
        let disk = self.disk.lock();
        for n in names() {
            let session = running.service.inner.sessions.directory.get(&n);
            let Some(session) = session else { continue };
            assert!(!session.is_damaged(), "{n} is damaged");
            let shown = session.extent();
            let durable = disk.head(shown.session).unwrap_or_default();
            assert!(shown.revision <= durable, "{n} shows {shown:?}, durable is {durable}");
            if running.engine.is_poisoned() {
                continue;
            }
            assert_eq!(shown.revision, durable, "{n}");
            if let Some(base) = disk.base(shown.session).filter(|_| session.exists()) {
                assert_eq!(shown.oldest, base, "{n} begins elsewhere");
            }
        }
    }

    /// Each board is that of its commits, and its images are there.
    pub(super) fn check_boards(&self, running: &Running) {
        self.check_shown(running);
        for n in names() {
            let session = running.service.inner.sessions.directory.get(&n);
            let Some(session) = session else { continue };
            let replayed = replay_to_head(&*running.engine, &session.summary()).unwrap();
            if replayed.life().is_some() {
                self.check_images(&n, &replayed);
            }
            if let Shown::Hot(published) = session.shown() {
                assert_eq!(*published.board, replayed, "{n}");
            }
        }
    }

    fn check_images(&self, session: &SessionName, board: &Board) {
        let disk = self.disk.lock();
        for (sha256, _) in board.images() {
            let is_there = disk.blobs.contains_key(&(board.id(), *sha256));
            assert!(is_there, "{session} has lost an image");
        }
    }

    /// Each write is there once, if it was done, and never if it was refused.
    pub(super) fn check_ops(&self) {
        let disk = self.disk.lock();
        for (number, op) in self.ops.iter().enumerate() {
            let Some(word) = &op.word else { continue };
            let found = disk.ever.iter().filter(|(.., frame)| has(frame, word));
            let found: Vec<_> = found.map(|(session, at, _)| (*session, *at)).collect();
            let is_so = match &op.fate {
                Fate::Done(None) => found.is_empty() || op.was_in_doubt,
                Fate::Done(Some((Some(session), revision))) => {
                    found.contains(&(*session, *revision)) || is_deleted(&disk, *session, *revision)
                }
                Fate::Done(Some((None, revision))) => {
                    found.iter().any(|(_, at)| at == revision)
                        || disk.ended.values().any(|before| before >= revision)
                }
                Fate::Refused(_) => found.is_empty() || op.was_in_doubt,
                Fate::InDoubt => true,
                Fate::UnderWay => false,
            };
            let is_so = is_so && is_once(op, &found);
            assert!(is_so, "write {number} is {:?}, and in {found:?}: {}", op.fate, op.request);
        }
    }
}

/// True if a request has no more than its commits.
fn is_once(op: &Op, found: &[(SessionId, Revision)]) -> bool {
    let sessions: HashSet<_> = found.iter().map(|(session, _)| *session).collect();
    // A session that was deleted has forgotten the key.
    let is_again = op.was_in_doubt && sessions.len() == found.len();
    match &op.request {
        Request::Write(write, _) => found.len() <= 1 || is_again || is_question(&write.command),
        // The source keeps the key too.
        Request::Fork(..) => found.len() <= 2 && sessions.len() == found.len() || is_again,
        Request::Purge(_) => true,
    }
}

/// A fork has the items and the state of its source.
pub(super) fn check_fork(forked: &Board, source: &Board) {
    for log in &LogName::BOARD {
        let texts = |board: &Board| {
            let log = board.log(log);
            let entries = log.into_iter().flat_map(Log::iter);
            entries.map(|entry| (entry.seq, entry.item.text().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(texts(forked), texts(source), "{log} of a fork");
    }
    for place in ["k0", "k1", "k2", "count"] {
        assert_eq!(value(forked, place), value(source, place), "{place} of a fork");
    }
}

/// True if a session was deleted after a revision. A deletion in the same batch leaves earlier commits out.
fn is_deleted(disk: &Disk, session: SessionId, revision: Revision) -> bool {
    disk.ended.get(&session).is_some_and(|before| *before >= revision)
}

/// True if a command appends questions: the commit that answers one has its text again.
fn is_question(command: &Command) -> bool {
    if let Command::Transact(transaction) = command {
        return transaction.then.iter().chain(&transaction.otherwise).any(is_question);
    }
    matches!(command, Command::Ask { .. } | Command::Log(LogName::Questions, _))
}

fn has(frame: &[u8], word: &str) -> bool {
    memchr::memmem::find(frame, word.as_bytes()).is_some()
}
