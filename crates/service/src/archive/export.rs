//! Export of an archive: all history kept at one moment.
//!
//! A blocking thread reads the store, hands over one piece at a time and waits for its reader. The history is pinned
//! before the first line, so a later base deletes nothing of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::cut::Ends;
use crate::history::blocking;
use crate::image_pins::ImagePin;
use crate::work_turns::WorkTurn;
use crate::{Published, Service, ServiceError, SessionHandle};
use blackboard_board::stored::archive::{
    Counts, Header, commit_line, cut_end_line, cut_header_line, end_line, header_line, image_line,
    part_line,
};
use blackboard_board::stored::decode_commit;
use blackboard_board::{Board, Change, Commit, Digest, Frame, Revision, SessionChange, SessionId};
use blackboard_store::{PageMax, Pinned, Store, StoreError};

/// The time after which the export for a stalled reader is aborted, since it holds a thread.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The time for the writer to publish a base that is in force already.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(2);

/// The bytes of one piece.
const PIECE_BYTES: usize = 64 << 10;

/// The page of commits read at once.
const PAGE: PageMax = PageMax { commits: 256, bytes: 1 << 20 };

/// The page for reading one commit.
const ONE: PageMax = PageMax { commits: 1, bytes: 1 };

/// An archive in pieces.
#[derive(Debug)]
pub struct Export {
    pieces: Receiver<Piece>,
    ended: bool,
}

#[derive(Debug)]
enum Piece {
    Lines(String),
    End,
    Broken(ServiceError),
}

impl Export {
    /// Returns the next piece, which may end within a line; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; no piece follows.
    pub async fn next(&mut self) -> Result<Option<String>, ServiceError> {
        if self.ended {
            return Ok(None);
        }
        match self.pieces.recv().await {
            Some(Piece::Lines(lines)) => Ok(Some(lines)),
            Some(Piece::End) => {
                self.ended = true;
                Ok(None)
            }
            Some(Piece::Broken(error)) => Err(error),
            // The thread panicked.
            None => Err(ServiceError::Fault),
        }
    }
}

impl SessionHandle {
    /// Exports the retained history of a session up to its published board, including what is deleted from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Overloaded`], or [`ServiceError::Compacted`] if less is retained meanwhile: try again with the
    /// newer board. Later errors come with the pieces.
    pub async fn export(&self, now: Arc<Board>) -> Result<Export, ServiceError> {
        let hold = self.service.inner.images.pins.session(now.id());
        // A pin may hold a connection, which must not wait.
        let turn = self.service.inner.archives.exports.wait().await?;
        let pin = self.service.pin(&now).await?;
        self.service.has_its_images(&now).await?;
        Ok(self.service.write_out(now, None, pin, (turn, hold)))
    }
}

impl Service {
    /// Starts a thread that writes the archive of this board; `ends` are those of a damaged session.
    pub(super) fn write_out(
        &self,
        now: Arc<Board>,
        ends: Option<Ends>,
        pin: Box<dyn Pinned>,
        held: (WorkTurn, ImagePin),
    ) -> Export {
        let (pieces, received) = mpsc::channel(1);
        let (store, runtime) = (Arc::clone(&self.inner.deps.store), Handle::current());
        tokio::task::spawn_blocking(move || {
            let mut out = Out { runtime, pieces, lines: String::new() };
            let (head, lost) = ends.map(|ends| (ends.head, ends.lost)).unzip();
            let lost = lost.unwrap_or_default();
            let source = Source { store: &*store, pin: &*pin, board: &now, head, lost };
            let last = match write(&source, &mut out) {
                Ok(()) => Piece::End,
                Err(Stop::Gone) => return,
                Err(Stop::Failed(error)) => Piece::Broken(error),
            };
            // All pins are released before the last piece, so that a deletion after it finds none.
            drop((pin, held));
            // The reader may have left.
            out.hand(last).ok();
        });
        Export { pieces: received, ended: false }
    }

    /// Pins the history of a board.
    pub(super) async fn pin(&self, now: &Board) -> Result<Box<dyn Pinned>, ServiceError> {
        let (store, session) = (Arc::clone(&self.inner.deps.store), now.id());
        let pin = blocking(move || Ok(store.pin(session)?)).await?;
        let base = pin.base().unwrap_or(now.oldest());
        if base == now.oldest() {
            return Ok(pin);
        }
        // A base is in force before its board is published.
        if let Some(life) = now.life() {
            let mut watch = self.watch(&life.name)?;
            let published =
                async { while watch.extent().oldest < base && watch.changed().await {} };
            tokio::time::timeout(PUBLISHED_WITHIN, published).await.ok();
        }
        Err(ServiceError::Compacted { oldest: base })
    }

    /// Refuses a board with images deleted since it was read. The pins keep all images from now on.
    async fn has_its_images(&self, now: &Board) -> Result<(), ServiceError> {
        let Some(life) = now.life() else { return Ok(()) };
        let Some(Published { board, .. }) = self.published(&life.name).await? else {
            return Ok(());
        };
        let has_all = || now.images().all(|(sha256, _)| board.has_image(sha256));
        if board.version() == now.version() || board.id() != now.id() || has_all() {
            return Ok(());
        }
        Err(ServiceError::Compacted { oldest: board.oldest() })
    }
}

/// Reasons why an archive is not written to its end.
enum Stop {
    /// The reader left or stalled.
    Gone,
    Failed(ServiceError),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(if let StoreError::Forgotten { base, .. } = error {
            ServiceError::Compacted { oldest: base }
        } else {
            error.into()
        })
    }
}

/// The receiver of the lines.
struct Out {
    runtime: Handle,
    pieces: Sender<Piece>,
    lines: String,
}

impl Out {
    /// Writes a line, which may be much longer than a piece, such as an image.
    fn line(&mut self, line: &str) -> Result<(), Stop> {
        let mut rest = line;
        loop {
            let room = PIECE_BYTES.saturating_sub(self.lines.len());
            let (now, later) = rest.split_at(rest.floor_char_boundary(room));
            self.lines.push_str(now);
            if later.is_empty() {
                return Ok(());
            }
            self.flush()?;
            rest = later;
        }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() { Ok(()) } else { self.hand(Piece::Lines(lines)) }
    }

    fn hand(&self, piece: Piece) -> Result<(), Stop> {
        let send = tokio::time::timeout(SILENCE_MAX, self.pieces.send(piece));
        match self.runtime.block_on(send) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stop::Gone),
        }
    }
}

/// The source of an archive.
struct Source<'a> {
    store: &'a dyn Store,
    pin: &'a dyn Pinned,
    board: &'a Board,
    /// The last revision of a damaged session.
    head: Option<Revision>,
    /// The images that are left out.
    lost: BTreeMap<Digest, u64>,
}

fn write(source: &Source<'_>, out: &mut Out) -> Result<(), Stop> {
    let (oldest, revision, head) = (source.board.oldest(), source.last_of_its_own()?, source.head);
    let header = Header { oldest, revision };
    out.line(&if head.is_some() { cut_header_line(header) } else { header_line(header) })?;
    let mut counts = Counts::default();
    let kept = source.board.images().filter(|(sha256, _)| !source.lost.contains_key(sha256));
    for (sha256, _) in kept {
        out.line(&image_line(*sha256, &source.store.blob(source.board.id(), *sha256)?))?;
        counts.images += 1;
    }
    counts.parts = source.write_base(out)?;
    counts.commits = source.write_commits(revision, out)?;
    out.line(&head.map_or_else(|| end_line(counts), |head| cut_end_line(counts, head)))?;
    out.flush()
}

impl Source<'_> {
    /// Returns the last revision before a commit that adopted the history; an import adds its own.
    fn last_of_its_own(&self) -> Result<Revision, Stop> {
        let (oldest, head) = (self.board.oldest(), self.board.revision());
        if head == oldest {
            return Ok(head);
        }
        let before = Revision(head.0.saturating_sub(1));
        let (_, frame) = self.one_after(before)?;
        let last = read_commit(self.board.id(), head, &frame)?;
        if !matches!(last.changes.as_slice(), [Change::Session(SessionChange::Adopted { .. })]) {
            return Ok(head);
        }
        // Revisions may have a gap before it, so the previous one is searched for.
        let (mut low, mut high) = (oldest.0, before.0);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.one_after(Revision(middle))? {
                (found, _) if found < head => low = found.0,
                _ => high = middle,
            }
        }
        Ok(Revision(low))
    }

    fn one_after(&self, after: Revision) -> Result<(Revision, Vec<u8>), Stop> {
        let found = self.pin.commits(after, ONE)?.into_iter().next();
        found.ok_or(Stop::Failed(ServiceError::Damaged))
    }

    /// Writes the parts of the base, if there is one, and returns their number.
    fn write_base(&self, out: &mut Out) -> Result<u64, Stop> {
        let (session, Some(base)) = (self.board.id(), self.pin.base()) else { return Ok(0) };
        let (mut parts, mut stopped) = (0, None);
        self.pin.read_base(&mut |frame| {
            let written = body(session, base, frame).map_err(Stop::from);
            match written.and_then(|part| out.line(&part_line(base, &part))) {
                Ok(()) => {
                    parts += 1;
                    ControlFlow::Continue(())
                }
                Err(stop) => {
                    stopped = Some(stop);
                    ControlFlow::Break(())
                }
            }
        })?;
        stopped.map_or(Ok(parts), Err)
    }

    /// Writes the commits up to `last`, and returns their number.
    fn write_commits(&self, last: Revision, out: &mut Out) -> Result<u64, Stop> {
        let (mut at, mut count) = (self.board.oldest(), 0);
        while at < last {
            let page = self.pin.commits(at, PAGE)?;
            let wanted = page.into_iter().take_while(|(revision, _)| *revision <= last);
            let before = at;
            for (revision, frame) in wanted {
                out.line(&commit_line(revision, &body(self.board.id(), revision, &frame)?))?;
                at = revision;
                count += 1;
            }
            if at == before {
                return Err(ServiceError::Damaged.into());
            }
        }
        Ok(count)
    }
}

/// Returns the text in a frame.
fn body(
    session: SessionId,
    revision: Revision,
    frame: &[u8],
) -> Result<Cow<'_, str>, ServiceError> {
    let body = Frame::decode(session, revision, frame).map_err(|error| error.to_string());
    let text = body.and_then(|body| match body {
        Cow::Borrowed(body) => str::from_utf8(body).map(Cow::Borrowed).map_err(|e| e.to_string()),
        Cow::Owned(body) => String::from_utf8(body).map(Cow::Owned).map_err(|e| e.to_string()),
    });
    text.map_err(|error| {
        tracing::error!(%session, %revision, error, "the stored history is damaged");
        ServiceError::Damaged
    })
}

fn read_commit(
    session: SessionId,
    revision: Revision,
    frame: &[u8],
) -> Result<Commit, ServiceError> {
    let body = body(session, revision, frame)?;
    decode_commit(body.as_bytes()).map_err(|error| {
        tracing::error!(%session, %revision, %error, "a stored commit cannot be read");
        ServiceError::Damaged
    })
}
