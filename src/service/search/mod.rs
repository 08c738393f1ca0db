//! Search over all sessions: an index that follows the commits, and the entries that a caller finds with it.
//!
//! A match is shown only if the entry is still on its board and matches the query there.

pub(super) mod indexer;
mod pace;
mod progress;
mod steps;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::deps::Deps;
use super::limiter::WaitLimiter;
use super::sessions::Sessions;
use super::{Published, Service, ServiceError};
use crate::board::{AgentName, Entry, LogName, Revision, SessionName, Timestamp};
use crate::error_chain::Chain;
use crate::fairness::{compute, with_files};
use crate::search::{Accept, Query, Ranked, SearchError, snippets};
use indexer::Indexer;
pub(super) use progress::Progress;
use steps::{author, searchable};

/// The number of queries that run at once.
pub const SEARCHES_AT_ONCE_MAX: u64 = 2;

/// The number of queries that wait for their turn.
pub const SEARCHES_WAITING_MAX: usize = 64;

/// The search of a service. Without it, searches are refused.
pub(super) struct Searches {
    progress: Option<Arc<Progress>>,
    turns: WaitLimiter,
}

impl Searches {
    /// Starts the thread that follows the commits, if the index has a place.
    pub(super) fn start(
        deps: &Deps,
        sessions: &Sessions,
        path: Option<PathBuf>,
    ) -> std::io::Result<Self> {
        let turns = WaitLimiter::new(SEARCHES_AT_ONCE_MAX, SEARCHES_WAITING_MAX);
        let Some(path) = path else { return Ok(Self { progress: None, turns }) };
        let progress = Arc::new(Progress::new());
        Indexer::new(deps, sessions, path, Arc::clone(&progress)).start(deps)?;
        Ok(Self { progress: Some(progress), turns })
    }

    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

/// A predicate on names, for a caller's rights and filters.
pub type Admits<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// The entries that a search looks for.
#[derive(Clone)]
pub struct Sought {
    /// The words.
    pub query: Query,
    /// Returns true for a session that is searched.
    pub session: Admits<SessionName>,
    /// Returns true for a log that is searched.
    pub log: Admits<LogName>,
    /// The owner of the memories, and author of the other entries, if selected.
    pub agent: Option<AgentName>,
    /// The time of the oldest entry, if selected.
    pub since: Option<Timestamp>,
}

impl std::fmt::Debug for Sought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sought").field("query", &self.query).finish_non_exhaustive()
    }
}

/// An entry that a search found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The session.
    pub session: SessionName,
    /// The log.
    pub log: LogName,
    /// The entry.
    pub entry: Arc<Entry>,
    /// The owner of a memory, else the author of the entry, if named.
    pub agent: Option<AgentName>,
    /// The rank by BM25; higher is better.
    pub score: f64,
    /// HTML whose only tags are `<mark>` and `</mark>`.
    pub snippet: String,
}

/// A page of hits.
#[derive(Clone, Debug)]
pub struct Hits {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// The number of matches before the next page; `None` if there is none.
    pub next: Option<usize>,
}

impl Service {
    /// Returns at most `limit` hits after the first `passed` matches.
    ///
    /// # Errors
    ///
    /// [`ServiceError::SearchOff`], [`ServiceError::SearchNotReady`], [`ServiceError::Overloaded`], or a fault.
    pub async fn search(
        &self,
        sought: Sought,
        passed: usize,
        limit: usize,
    ) -> Result<Hits, ServiceError> {
        let progress = self.progress()?;
        let index = progress.index().ok_or(ServiceError::SearchNotReady)?;
        let turn = self.inner.searches.turns.wait().await?;
        let (query, begun) = (sought.query.clone(), Arc::clone(&progress));
        let look = move || {
            let Sought { query, session, log, agent, since } = &sought;
            let (session, log) = (&**session, &**log);
            let accept = Accept { session, log, agent: agent.as_ref(), since: *since };
            index.search(query, &accept).map_err(|error| failed(&begun, &error))
        };
        let ranked = with_files(look).await.map_err(|_| ServiceError::Fault)??;
        let mut at = passed.min(ranked.len());
        let mut hits = Vec::new();
        while hits.len() < limit && at < ranked.len() {
            let end = ranked.len().min(at + limit - hits.len());
            let page = ranked.get(at..end).unwrap_or_default();
            hits.append(&mut self.hits(&query, page).await?);
            at = end;
        }
        drop(turn);
        Ok(Hits { hits, next: (at < ranked.len()).then_some(at) })
    }

    /// Waits until the index has a session's entries as of a revision.
    ///
    /// # Errors
    ///
    /// [`ServiceError::RevisionNotReached`] at the deadline, [`ServiceError::SearchOff`].
    pub async fn indexed(
        &self,
        session: &SessionName,
        wanted: Revision,
        deadline: Instant,
    ) -> Result<(), ServiceError> {
        let progress = self.progress()?;
        let mut ticks = progress.ticks();
        loop {
            let head = progress.revision(session);
            if head >= wanted {
                return Ok(());
            }
            let stopping = self.stopping().cancelled();
            let waited = tokio::select! {
                () = stopping => return Err(ServiceError::Stopping),
                waited = timeout_at(deadline, ticks.changed()) => waited,
            };
            if waited.is_err() {
                return Err(ServiceError::RevisionNotReached { head, wanted });
            }
        }
    }

    fn progress(&self) -> Result<Arc<Progress>, ServiceError> {
        self.inner.searches.progress().ok_or(ServiceError::SearchOff)
    }

    /// Returns those matches that are on their boards and match there.
    async fn hits(&self, query: &Query, ranked: &[Ranked]) -> Result<Vec<Hit>, ServiceError> {
        let mut found = Vec::new();
        for ranked in ranked {
            let board = match self.published(&ranked.session).await {
                Ok(Some(Published { board, .. })) => board,
                Ok(None) | Err(ServiceError::Damaged) => continue,
                Err(error) => return Err(error),
            };
            let entry = board.log(&ranked.log).and_then(|log| log.get(ranked.seq));
            if let Some(entry) = entry {
                found.push((ranked.clone(), Arc::clone(entry)));
            }
        }
        let query = query.clone();
        let show = move || {
            let texts: Vec<_> = found.iter().map(|(_, entry)| searchable(entry)).collect();
            let snippets = snippets(&query, &texts)?;
            let hits = found.into_iter().zip(snippets).filter_map(|((ranked, entry), snippet)| {
                let Ranked { session, log, score, .. } = ranked;
                let agent = author(&log, &entry).cloned();
                Some(Hit { session, log, entry, agent, score, snippet: snippet? })
            });
            Ok(hits.collect())
        };
        let shown = compute(show).await.map_err(|_| ServiceError::Fault)?;
        shown.map_err(|error: SearchError| {
            tracing::error!(error = %Chain(&error), "the snippets of a search could not be made");
            ServiceError::Fault
        })
    }
}

/// A damaged index is made anew.
fn failed(progress: &Progress, error: &SearchError) -> ServiceError {
    tracing::error!(error = %Chain(error), "a search failed");
    if matches!(error, SearchError::Damaged) {
        progress.distrust();
        return ServiceError::SearchNotReady;
    }
    ServiceError::Fault
}
