//! Import of an archive: lines stored as a staged history, then named by the writer.
//!
//! A blocking thread reads the pushed bytes line by line; one archive is imported at a time. A failed import leaves
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::history::staged_history::StagedHistory;
use crate::history::truncate::put_base;
use crate::job::WriteJob;
use crate::work_turns::WorkTurn;
use crate::{Keep, Reply, Service, ServiceError, SessionHandle, new_session_id};
use blackboard_board::stored::Body;
use blackboard_board::stored::archive::{ArchiveReader, Fault, LINE_BYTES_MAX, Taken};
use blackboard_board::{
    Board, COMMIT_BYTES_MAX, Command, Digest, Frame, Rejected, Revision, SessionCommand, SessionId,
    SessionName, Terms, Write,
};
use blackboard_store::{Run, Store, StoreError};

/// The bytes of commits stored at once, unless one alone has more.
const RUN_BYTES: usize = 4 << 20;

/// The number of commits stored at once.
const RUN_COMMITS: usize = 1024;

/// The time for reading an archive's lines, without waits for them. A line of the greatest length takes seconds.
const WORK_TIME_MAX: Duration = Duration::from_secs(5 * 60);

/// The number of pieces that wait to be read.
const WAITING_MAX: usize = 4;

/// An import in progress. Dropped before its end, it leaves nothing.
#[derive(Debug)]
pub struct Import {
    pieces: Sender<Vec<u8>>,
    reading: JoinHandle<Result<Imported, ServiceError>>,
}

/// A complete imported history without a name. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct Imported {
    staged: StagedHistory,
    board: Board,
    bytes: u64,
    turn: WorkTurn,
}

impl Import {
    /// Pushes the next bytes, with line ends anywhere. Returns false if no more are taken; then
    /// [`finish`](Self::finish) returns the reason.
    pub async fn push(&mut self, bytes: Vec<u8>) -> bool {
        self.pieces.send(bytes).await.is_ok()
    }

    /// Ends the import and returns its history.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Archive`] if the archive is invalid, or the reason why it could not be stored.
    pub async fn finish(self) -> Result<Imported, ServiceError> {
        drop(self.pieces);
        self.reading.await.map_err(|_| ServiceError::Fault)?
    }
}

impl SessionHandle {
    /// Begins an import as the session, which does not exist or is damaged, after other imports.
    ///
    /// # Errors
    ///
    /// [`Rejected::SessionExists`], [`ServiceError::Overloaded`], or [`ServiceError::Stopping`].
    pub async fn import(&self) -> Result<Import, ServiceError> {
        self.service.import_lacking(&self.name, BTreeMap::new()).await
    }

    /// Gives an imported history the session's name.
    ///
    /// # Errors
    ///
    /// [`Rejected`] as for any write, also if the name has a session by now or the history is too large for a
    /// session; or the reason why it could not be stored.
    pub async fn adopt_import(
        &self,
        terms: Terms,
        imported: Imported,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        self.service.adopt_import(&self.name, terms, imported, keep).await
    }
}

impl Service {
    /// Begins the import of an archive that lacks these images.
    pub(crate) async fn import_lacking(
        &self,
        name: &SessionName,
        lost: BTreeMap<Digest, u64>,
    ) -> Result<Import, ServiceError> {
        self.has_none(name)?;
        let turn = tokio::select! {
            turn = self.inner.archives.imports.wait() => turn?,
            () = self.inner.deps.stopping.cancelled() => return Err(ServiceError::Stopping),
        };
        // The session may have been created during the wait.
        self.has_none(name)?;
        let (store, orphans) =
            (Arc::clone(&self.inner.deps.store), Arc::clone(&self.inner.images.orphans));
        let now = self.inner.deps.clock.now();
        let (pieces, received) = mpsc::channel(WAITING_MAX);
        let stopping = self.inner.deps.stopping.clone();
        let reader = move || {
            let staged = StagedHistory::begin(store, orphans, new_session_id()).map_err(told)?;
            let reader = ArchiveReader::new(staged.id(), now).lacking(lost);
            read(staged, reader, received, &stopping, turn)
        };
        let reading = tokio::task::spawn_blocking(reader);
        Ok(Import { pieces, reading })
    }

    /// Gives an imported history its name.
    pub(crate) async fn adopt_import(
        &self,
        name: &SessionName,
        terms: Terms,
        imported: Imported,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        if let Some(answer) = self.recall(name, terms.key.as_ref()).await? {
            return Ok(Reply::Before(answer));
        }
        let Imported { staged, board, bytes, turn } = imported;
        let (service, session) = (self.clone(), name.clone());
        let command =
            Command::Session(SessionCommand::Adopt { board: Arc::new(board), fork_of: None });
        // The task ends even without a caller, so that a refused history is deleted.
        let adopting = tokio::spawn(async move {
            let _turn = turn;
            // From here on the writer owns the history.
            let id = staged.hand_over();
            let write = Write { session, terms, command };
            let job = WriteJob { keep, staged_bytes: bytes, ..WriteJob::of(write) };
            service.adopt(id, job).await
        });
        adopting.await.map_err(|_| ServiceError::Fault)?
    }

    fn has_none(&self, name: &SessionName) -> Result<(), ServiceError> {
        let extent = match self.extent(name) {
            // The import replaces a damaged session.
            Err(ServiceError::Damaged) | Ok(None) => return Ok(()),
            Ok(Some(extent)) => extent,
            Err(error) => return Err(error),
        };
        let rejected = Rejected::SessionExists { session: name.clone() };
        Err(ServiceError::Rejected { rejected, revision: Some(extent.revision) })
    }
}

/// Maps store errors; a store that takes no writes is no internal error.
fn told(error: StoreError) -> ServiceError {
    if matches!(error, StoreError::Poisoned) {
        ServiceError::Poisoned { outcome_unknown: false }
    } else if matches!(error, StoreError::Closed) {
        ServiceError::Stopping
    } else {
        error.into()
    }
}

/// Reads all pushed pieces; a failed import is deleted before its error is returned.
fn read(
    staged: StagedHistory,
    reader: ArchiveReader,
    mut pieces: Receiver<Vec<u8>>,
    stopping: &CancellationToken,
    turn: WorkTurn,
) -> Result<Imported, ServiceError> {
    let mut lines = Lines { reader, stopping, line: Vec::new(), count: 0, worked: Duration::ZERO };
    let mut runs = Runs::of(Arc::clone(staged.store()), staged.id());
    let read = lines.take_all(&mut pieces, &mut runs).and_then(|()| runs.flush());
    // The sender sees the end at once.
    drop(pieces);
    let line = lines.count + 1;
    let board = read.and_then(|()| {
        lines.reader.finish().map_err(|fault| ServiceError::Archive { line, fault: fault.into() })
    });
    match board {
        Ok(board) => Ok(Imported { staged, board, bytes: runs.bytes, turn }),
        Err(error) => {
            staged.forget();
            Err(error)
        }
    }
}

/// Reader of the lines.
struct Lines<'a> {
    reader: ArchiveReader,
    stopping: &'a CancellationToken,
    /// The incomplete line.
    line: Vec<u8>,
    /// The number of complete lines.
    count: usize,
    /// The time spent on reading them.
    worked: Duration,
}

impl Lines<'_> {
    fn take_all(
        &mut self,
        pieces: &mut Receiver<Vec<u8>>,
        runs: &mut Runs,
    ) -> Result<(), ServiceError> {
        while let Some(piece) = pieces.blocking_recv() {
            let mut rest = &*piece;
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (line, after) = rest.split_at(end);
                self.add(line)?;
                self.end_line(runs)?;
                rest = after.get(1..).unwrap_or_default();
            }
            self.add(rest)?;
        }
        // The last line need not end with a line feed.
        if self.line.is_empty() { Ok(()) } else { self.end_line(runs) }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ServiceError> {
        if self.line.len() + bytes.len() > LINE_BYTES_MAX {
            let fault = Fault::TooLong { max: LINE_BYTES_MAX };
            return Err(ServiceError::Archive { line: self.count + 1, fault: fault.into() });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, runs: &mut Runs) -> Result<(), ServiceError> {
        if self.stopping.is_cancelled() {
            return Err(ServiceError::Stopping);
        }
        self.count += 1;
        let (line, begun) = (self.count, Instant::now());
        let taken = self.reader.take(&self.line);
        self.worked += begun.elapsed();
        if self.worked > WORK_TIME_MAX {
            return Err(ServiceError::Archive { line, fault: Fault::TooSlow.into() });
        }
        match taken.map_err(|fault| ServiceError::Archive { line, fault: fault.into() })? {
            Taken::Nothing => {}
            Taken::Image(sha256, bytes) => {
                runs.store.put_blob(runs.session, sha256, &bytes).map_err(told)?;
            }
            Taken::Base(board) => runs.begin(&board)?,
            Taken::Commit(revision, body) => runs.add(revision, body)?,
        }
        self.line.clear();
        Ok(())
    }
}

/// Batches of commits for the store.
struct Runs {
    store: Arc<dyn Store>,
    session: SessionId,
    /// The revision before the first frame.
    expected: Revision,
    frames: Vec<Vec<u8>>,
    frame_bytes: usize,
    /// The bytes of all frames.
    bytes: u64,
}

impl Runs {
    fn of(store: Arc<dyn Store>, session: SessionId) -> Self {
        let expected = Revision::default();
        Self { store, session, expected, frames: Vec::new(), frame_bytes: 0, bytes: 0 }
    }

    /// Stores the base, encoded anew from the decoded board.
    fn begin(&self, board: &Board) -> Result<(), ServiceError> {
        let put = put_base(&*self.store, board, 0);
        put.map_err(
            |error| if let ServiceError::Store(error) = error { told(error) } else { error },
        )
    }

    fn add(&mut self, revision: Revision, body: &[u8]) -> Result<(), ServiceError> {
        let before = Revision(revision.0.saturating_sub(1));
        let follows = self.expected.0.saturating_add(self.frames.len() as u64) == before.0;
        let is_full = self.frames.len() >= RUN_COMMITS || self.frame_bytes >= RUN_BYTES;
        if !follows || is_full {
            self.flush()?;
        }
        if self.frames.is_empty() {
            self.expected = before;
        }
        let too_large =
            |_| ServiceError::CommitTooLarge { bytes: body.len(), max: COMMIT_BYTES_MAX };
        let frame =
            Frame::encode(self.session, revision, &Body::of(body.into())).map_err(too_large)?;
        self.frame_bytes += frame.len();
        self.bytes += Frame::bytes(&frame) as u64;
        self.frames.push(frame);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ServiceError> {
        self.frame_bytes = 0;
        let frames = std::mem::take(&mut self.frames);
        if frames.is_empty() {
            return Ok(());
        }
        let Self { session, expected, .. } = *self;
        let run = Run {
            session,
            expected,
            ends: None,
            frames,
            claim: None,
            grows: true,
            adopts: false,
            group: None,
            row: None,
        };
        // The history has no name yet, so an unknown outcome matters to nobody.
        let outcome = self.store.append(&[run]).pop().ok_or(ServiceError::Fault)?;
        ServiceError::stored(outcome, false)
    }
}
