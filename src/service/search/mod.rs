//! Search over all sessions: an index that follows the commits, and the entries that a caller finds with it.
//!
//! A match is shown only if the entry is still on its board and matches the query there.

mod follower;
pub(super) mod indexer;
mod progress;
mod steps;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::deps::Deps;
use super::heads::{HeadChecks, parsed};
use super::limiter::WaitLimiter;
use super::sessions::Sessions;
use super::{Published, SearchPlace, Service, ServiceError};
use crate::board::{AgentName, Entry, LogName, Revision, Seq, SessionName, Timestamp};
use crate::error_chain::Chain;
use crate::fairness::{compute, with_files};
use crate::search::{
    Accept, EXAMINED_MAX, Query, RANKED_MAX, Ranked, SearchError, Words, snippets,
};
use crate::store::{Store, TextQuery};
use follower::Follower;
use indexer::Indexer;
pub(super) use progress::Progress;
use steps::{author, log_of, searchable};

/// The time between two looks for a session's texts.
const TEXTS_EVERY: Duration = Duration::from_millis(50);

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
    /// Returns the progress of an index that has a place.
    pub(super) fn progress_of(place: Option<&SearchPlace>) -> Option<Arc<Progress>> {
        place.map(|_| Arc::new(Progress::new()))
    }

    /// Starts the thread that follows the commits, if the index has a place.
    pub(super) fn start(
        deps: &Deps,
        sessions: &Sessions,
        heads: &Arc<HeadChecks>,
        place: Option<(SearchPlace, Arc<Progress>)>,
    ) -> std::io::Result<Self> {
        let turns = WaitLimiter::new(SEARCHES_AT_ONCE_MAX, SEARCHES_WAITING_MAX);
        let Some((place, progress)) = place else { return Ok(Self { progress: None, turns }) };
        let indexer = |path| Indexer::new(deps, sessions, path, Arc::clone(&progress));
        match place {
            SearchPlace::File(path) => indexer(path).start(deps)?,
            SearchPlace::Store => {
                let (indexer, heads) = (indexer(PathBuf::new()), Arc::clone(heads));
                let progress = Arc::clone(&progress);
                Follower { indexer, progress, heads }.start(deps)?;
            }
        }
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
        let query = sought.query.clone();
        let (turn, ranked) = if self.has_replicas() {
            let turn = self.inner.searches.turns.wait().await?;
            let store = Arc::clone(&self.inner.deps.store);
            let look = move || in_store(&*store, &sought);
            (turn, with_files(look).await.map_err(|_| ServiceError::Fault)??)
        } else {
            let index = progress.index().ok_or(ServiceError::SearchNotReady)?;
            let turn = self.inner.searches.turns.wait().await?;
            let begun = Arc::clone(&progress);
            let look = move || {
                let Sought { query, session, log, agent, since } = &sought;
                let (session, log) = (&**session, &**log);
                let accept = Accept { session, log, agent: agent.as_ref(), since: *since };
                index.search(query, &accept).map_err(|error| failed(&begun, &error))
            };
            (turn, with_files(look).await.map_err(|_| ServiceError::Fault)??)
        };
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
    /// At the deadline [`ServiceError::RevisionNotReached`], or [`ServiceError::SearchNotReady`] after a start;
    /// [`ServiceError::SearchOff`].
    pub async fn indexed(
        &self,
        session: &SessionName,
        wanted: Revision,
        deadline: Instant,
    ) -> Result<(), ServiceError> {
        let progress = self.progress()?;
        let is_shared = self.has_replicas();
        let mut ticks = progress.ticks();
        loop {
            let head =
                if is_shared { self.texts_at(session).await? } else { progress.revision(session) };
            // After a start, the index knows how far it is before it can be searched.
            let is_ready = is_shared || progress.index().is_some();
            if head >= wanted && is_ready {
                return Ok(());
            }
            let stopping = self.stopping().cancelled();
            let waited = tokio::select! {
                () = stopping => return Err(ServiceError::Stopping),
                waited = timeout_at(deadline, ticks.changed()), if !is_shared => waited.map(drop),
                // Another server may bring the texts up to date.
                waited = timeout_at(deadline, sleep(TEXTS_EVERY)), if is_shared => waited,
            };
            if waited.is_err() && !is_ready {
                return Err(ServiceError::SearchNotReady);
            }
            if waited.is_err() {
                return Err(ServiceError::RevisionNotReached { head, wanted });
            }
        }
    }

    /// Returns the revision of a session's texts in a store that other servers write to.
    async fn texts_at(&self, session: &SessionName) -> Result<Revision, ServiceError> {
        self.catch_up(session).await?;
        let Some(extent) = self.extent(session)? else { return Ok(Revision(0)) };
        let store = Arc::clone(&self.inner.deps.store);
        let look = move || {
            let shared = store.shared().ok_or(ServiceError::Fault)?;
            let at = shared.texts().texts_at(&[extent.session])?;
            Ok(at.get(&extent.session).copied().unwrap_or_default())
        };
        with_files(look).await.map_err(|_| ServiceError::Fault)?
    }

    fn progress(&self) -> Result<Arc<Progress>, ServiceError> {
        self.inner.searches.progress().ok_or(ServiceError::SearchOff)
    }

    /// Returns those matches that are on their boards and match there.
    async fn hits(&self, query: &Query, ranked: &[Ranked]) -> Result<Vec<Hit>, ServiceError> {
        let mut found = Vec::new();
        self.catch_up_all(ranked.iter().map(|ranked| &ranked.session)).await?;
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

/// Returns the matches that a caller may see in a store that other servers write to, best first.
fn in_store(store: &dyn Store, sought: &Sought) -> Result<Vec<Ranked>, ServiceError> {
    let shared = store.shared().ok_or(ServiceError::Fault)?;
    let words = Words::new().and_then(|words| words.query(&sought.query));
    let words = words.map_err(|error| {
        tracing::error!(error = %Chain(&error), "the words of a query could not be told");
        ServiceError::Fault
    })?;
    let found = shared.texts().find_texts(&TextQuery {
        wanted: words.wanted,
        unwanted: words.unwanted,
        agent: sought.agent.as_ref().map(ToString::to_string),
        since: sought.since,
        limit: EXAMINED_MAX,
    })?;
    let shown = found.into_iter().filter_map(|found| {
        let session = parsed(&found.name)?;
        let log = log_of(&found.log)?;
        let is_shown = (sought.session)(&session) && (sought.log)(&log);
        let (seq, score) = (Seq(found.seq), found.score);
        is_shown.then_some(Ranked { session, log, seq, score })
    });
    let mut ranked: Vec<Ranked> = shown.take(RANKED_MAX).collect();
    // The sort is stable: of equal scores, the last one comes first.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(ranked)
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
