//! The indexer: a thread that follows the commits of all sessions into the index.
//!
//! It indexes the entries that commits touched as the published board has them, so that doing it twice is harmless. Commits that
//! only append are noted with their entries; others are read. A session whose commits are not retained is indexed anew from its board.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::steps::{Failed, Step, Steps, Target, waits_for_room};
use super::touched::Touched;
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::sessions::Sessions;
use crate::sessions::directory::Directory;
use crate::sessions::loader::Loader;
use crate::sessions::replay::{REPLAY_PAGE, framed};
use crate::threads::signal::Signal;
use blackboard_board::{
    Board, Commit, Extent, Indexed, Log, LogName, Revision, Seq, SeqRange, SessionName,
};
use blackboard_error_chain::Chain;
use blackboard_owner_files as owner_files;
use blackboard_search::{Index, Position, SearchError};
use blackboard_store::Store;

/// The time in which commits gather, so that many are indexed at once.
const GATHERS: Duration = Duration::from_millis(500);

/// The part of it after which a client who waits for the index ends it.
const GATHERS_AWAITED: Duration = Duration::from_millis(50);

/// The rest before words of removed entries are erased and segments merged, so that those of one burst go together.
const TIDIES_AFTER: Duration = Duration::from_secs(2);

/// The rest after that, as a multiple of its time.
const TIDIES_REST_TIMES: u32 = 5;

/// The pause after a failure, such as a full disk.
const FAILED_REST: Duration = Duration::from_secs(10);

/// The pause before a file that was found damaged is made anew, if that happened shortly before. It doubles each time up to
/// [`REMAKES_REST_MAX`].
const REMAKES_REST_MIN: Duration = Duration::from_secs(1);

/// The longest such pause. A file that was used for longer is made anew at once.
const REMAKES_REST_MAX: Duration = Duration::from_secs(600);

/// The indexer's thread.
pub(crate) struct Indexer {
    /// The file; empty for texts in the store.
    path: PathBuf,
    progress: Arc<Progress>,
    pub(super) store: Arc<dyn Store>,
    pub(super) directory: Arc<Directory>,
    loader: Loader,
}

impl Indexer {
    pub(crate) fn new(
        deps: &Deps,
        sessions: &Sessions,
        path: PathBuf,
        progress: Arc<Progress>,
    ) -> Self {
        let (store, directory) = (Arc::clone(&deps.store), Arc::clone(&sessions.directory));
        Self { path, progress, store, directory, loader: sessions.loader.clone() }
    }

    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        deps.threads.start("indexer", self.progress.signal(), move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let mut rest = Duration::ZERO;
        while !signal.is_stopped() {
            let begun = Instant::now();
            match self.follow_all(signal) {
                Ok(()) | Err(Failed::Stopping) => return,
                Err(Failed::Index(error)) if error.is_of_the_file() => {
                    // The file is used no more, whoever has met the damage: a write may be the only one to meet it.
                    self.progress.distrust();
                    if begun.elapsed() > REMAKES_REST_MAX {
                        rest = Duration::ZERO;
                    }
                    tracing::warn!(error = %Chain(&error), pause = ?rest, "the search index is damaged; it is made anew after a pause");
                    if !signal.pause(rest) {
                        return;
                    }
                    rest = (rest * 2).clamp(REMAKES_REST_MIN, REMAKES_REST_MAX);
                }
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "the search index cannot follow the commits");
                    if !signal.pause(FAILED_REST) {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the index and follows all sessions until it is told to end.
    fn follow_all(&self, signal: &Signal) -> Result<(), Failed> {
        if !waits_for_room(&self.path, signal) {
            return Ok(());
        }
        let index = self.open()?;
        let all = self.progress.sessions();
        self.progress.give_back(all);
        self.directory.visit(|session| self.progress.give_back([session.name().clone()]));
        let target = Target::File(&index, &self.path);
        let mut steps = Steps::new(target, &self.progress, signal);
        let mut tidy_after = Instant::now();
        loop {
            if self.progress.is_distrusted() {
                return Err(SearchError::Damaged.into());
            }
            let mut changed: Vec<_> = self.progress.take().into_iter().collect();
            if changed.is_empty() {
                self.progress.set_ready();
                index.rest()?;
                let rest = if index.is_untidy()? {
                    tidy_after.saturating_duration_since(Instant::now()).max(TIDIES_AFTER)
                } else {
                    Duration::MAX
                };
                if !(signal.rest(rest) && self.gather(signal)) {
                    return Ok(());
                }
                changed.extend(self.progress.take());
                if changed.is_empty() && Instant::now() >= tidy_after && index.is_untidy()? {
                    if !waits_for_room(&self.path, signal) {
                        return Ok(());
                    }
                    let begun = Instant::now();
                    self.tidy(&index, signal)?;
                    tidy_after = Instant::now() + begun.elapsed() * TIDIES_REST_TIMES;
                }
            }
            while let Some((session, touched)) = changed.pop() {
                if signal.is_stopped() {
                    return Ok(());
                }
                if let Err(error) = self.follow(&session, touched, &mut steps) {
                    let left = changed.into_iter().map(|(session, _)| session);
                    self.progress.give_back(left.chain([session]));
                    return Err(error);
                }
            }
            steps.carry_out()?;
            // Under load there is no moment at which nothing has changed.
            self.progress.set_ready();
            // Else each batch would have what came while the one before was written.
            if self.progress.has_changed() && !self.gather(signal) {
                return Ok(());
            }
        }
    }

    /// Lets commits gather, not longer than a client waits. Returns false if the thread is to end.
    fn gather(&self, signal: &Signal) -> bool {
        let begun = Instant::now();
        let mut goes_on = signal.pause(GATHERS_AWAITED);
        while goes_on && begun.elapsed() < GATHERS && !self.progress.is_awaited() {
            goes_on = signal.pause(GATHERS_AWAITED);
        }
        goes_on
    }

    /// Erases words of removed entries and merges segments, until there are commits to follow. It rests as long as it works,
    /// since searches need a processor too.
    fn tidy(&self, index: &Index, signal: &Signal) -> Result<(), SearchError> {
        let mut begun = Instant::now();
        while index.tidy()? && signal.rest(begun.elapsed()) && !self.progress.has_changed() {
            begun = Instant::now();
        }
        Ok(())
    }

    fn open(&self) -> Result<Arc<Index>, SearchError> {
        if let Some(directory) = self.path.parent() {
            owner_files::make_dir(directory)?;
        }
        if let Some(before) = self.progress.take_index() {
            before.close()?;
        }
        let epoch = self.store.epoch();
        let index = if self.progress.is_distrusted() {
            Index::make(&self.path, epoch)?
        } else {
            Index::open(&self.path, epoch)?
        };
        let positions = index.positions()?;
        let index = Arc::new(index);
        self.progress.opened(Arc::clone(&index), positions);
        Ok(index)
    }

    /// Adds the steps from where the index is in a session to where the session is published.
    pub(super) fn follow(
        &self,
        name: &SessionName,
        touched: Option<Touched>,
        steps: &mut Steps<'_>,
    ) -> Result<(), Failed> {
        let known = self.progress.position(name);
        let session = self.directory.get(name).filter(|session| session.exists());
        // A session without news is not loaded.
        let head = session.as_ref().map(|session| session.extent());
        let head = head.map(|Extent { session, revision, .. }| Position { session, revision });
        if head.is_some() && known == head {
            return Ok(());
        }
        let board = match session.map(|session| self.loader.published_here(&session)) {
            Some(Ok(published)) if published.board.life().is_some() => published.board,
            Some(Err(error)) if !matches!(error, ServiceError::Damaged) => {
                return Err(error.into());
            }
            Some(Ok(_) | Err(_)) | None => {
                if known.is_some() {
                    steps.add(Step::Forget(name.clone()))?;
                }
                return Ok(());
            }
        };
        let head = Position { session: board.id(), revision: board.revision() };
        if known == Some(head) {
            return Ok(());
        }
        let known = known.filter(|known| {
            known.session == head.session
                && known.revision >= board.oldest()
                && known.revision < head.revision
        });
        let touched = touched.zip(known).filter(|(touched, known)| {
            // What was published since is noted after that.
            touched.session == known.session
                && (touched.after..touched.last).contains(&known.revision)
                && touched.last <= head.revision
        });
        if let Some((Touched { session, last: revision, ranges, .. }, _)) = touched {
            for (log, SeqRange { first, last }) in &ranges {
                for seq in first.0..=last.0 {
                    self.touch(name, &board, log, Seq(seq), steps)?;
                }
            }
            return steps.add(Step::Reached(name.clone(), Position { session, revision }));
        }
        let followed = match known {
            Some(known) => self.commits(name, &board, known.revision, steps)?,
            None => false,
        };
        if !followed {
            self.whole(name, &board, steps)?;
        }
        steps.add(Step::Reached(name.clone(), head))
    }

    /// Adds the steps of the commits after a revision. Returns false if they do not tell all.
    fn commits(
        &self,
        name: &SessionName,
        board: &Board,
        mut after: Revision,
        steps: &mut Steps<'_>,
    ) -> Result<bool, Failed> {
        while after < board.revision() {
            let page = match framed(&*self.store, board.id(), after, REPLAY_PAGE) {
                Ok(page) if !page.is_empty() => page,
                Ok(_) | Err(ServiceError::Compacted { .. } | ServiceError::Damaged) => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            };
            for (commit, _) in page {
                if commit.revision > board.revision() {
                    return Ok(true);
                }
                if !self.commit(name, board, &commit, steps)? {
                    return Ok(false);
                }
                after = commit.revision;
            }
        }
        Ok(true)
    }

    fn commit(
        &self,
        name: &SessionName,
        board: &Board,
        commit: &Commit,
        steps: &mut Steps<'_>,
    ) -> Result<bool, Failed> {
        for change in &commit.changes {
            match change.facts().indexed {
                Indexed::Nothing => {}
                Indexed::Whole => return Ok(false),
                Indexed::Entries(log, first, count) => {
                    for seq in (first.0..).take(count) {
                        self.touch(name, board, log, Seq(seq), steps)?;
                    }
                }
                Indexed::Removed(log, ranges) => {
                    for SeqRange { first, last } in ranges {
                        steps.add(Step::Remove(name.clone(), log.clone(), *first, *last))?;
                    }
                }
                Indexed::Cleared(log) => {
                    steps.add(Step::ClearLog(name.clone(), log.clone()))?;
                }
                Indexed::ClearedOf(agent) => {
                    for log in LogName::owned_by(agent) {
                        steps.add(Step::ClearLog(name.clone(), log))?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Adds the step that brings an entry to what the board has in its place.
    fn touch(
        &self,
        name: &SessionName,
        board: &Board,
        log: &LogName,
        seq: Seq,
        steps: &mut Steps<'_>,
    ) -> Result<(), Failed> {
        let step = match board.log(log).and_then(|log| log.get(seq)) {
            Some(entry) => Step::Put(name.clone(), log.clone(), Arc::clone(entry)),
            None => Step::Remove(name.clone(), log.clone(), seq, seq),
        };
        steps.add(step)
    }

    /// Adds the steps that index a session anew.
    fn whole(
        &self,
        name: &SessionName,
        board: &Board,
        steps: &mut Steps<'_>,
    ) -> Result<(), Failed> {
        steps.add(Step::Clear(name.clone()))?;
        let owned = board.owned_logs().map(|(log, _)| log);
        for log in LogName::BOARD.into_iter().chain(owned) {
            for entry in board.log(&log).into_iter().flat_map(Log::iter) {
                let step = Step::Put(name.clone(), log.clone(), Arc::clone(entry));
                steps.add(step)?;
            }
        }
        Ok(())
    }
}
