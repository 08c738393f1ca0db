//! Search over all sessions: an index that follows the commits, and the entries that a caller finds with it.
//!
//! A match is shown only if the entry is still on its board and matches the query there.

pub(super) mod indexer;
mod progress;
mod shared_follower;
mod steps;
mod touched;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::deps::Deps;
use super::heads::HeadChecks;
use super::sessions::Sessions;
use super::work_turns::{WorkTurn, WorkTurns};
use super::{Published, SearchPlace, Service, ServiceError, SessionHandle};
use blackboard_board::{AgentName, Entry, LogName, Revision, Seq, SessionName};
use blackboard_error_chain::Chain;
use blackboard_fairness::{compute, with_files};
use blackboard_search::{
    Index, Matches, Phrase, Query, RANKED_MAX, Ranked, Reach, SearchError, Snippets, WORDS_VERSION,
    Words, log_key, log_of,
};
use blackboard_store::{Store, TextFound, TextLog, TextQuery};
use indexer::Indexer;
pub(super) use progress::Progress;
use shared_follower::Follower;
use steps::{author, searchable};
pub(super) use touched::Touched;

/// The time between two looks for a session's texts.
const TEXTS_EVERY: Duration = Duration::from_millis(50);

/// The number of queries that run at once, of one client one.
pub const SEARCHES_AT_ONCE_MAX: u64 = 2;

/// The longest time that a query may take.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);

/// The number of queries that wait for their turn.
pub const SEARCHES_WAITING_MAX: usize = 64;

/// The search of a service. Without it, searches are refused.
pub(super) struct Searches {
    progress: Option<Arc<Progress>>,
    turns: WorkTurns,
    snippets: Arc<Snippets>,
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
        let turns = WorkTurns::one_each(SEARCHES_AT_ONCE_MAX, SEARCHES_WAITING_MAX);
        let snippets = Arc::default();
        let Some((place, progress)) = place else {
            return Ok(Self { progress: None, turns, snippets });
        };
        let indexer = |path| Indexer::new(deps, sessions, path, Arc::clone(&progress));
        match place {
            SearchPlace::File(path) => indexer(path).start(deps)?,
            SearchPlace::Store => {
                let (indexer, heads) = (indexer(PathBuf::new()), Arc::clone(heads));
                let progress = Arc::clone(&progress);
                Follower { indexer, progress, heads }.start(deps)?;
            }
        }
        Ok(Self { progress: Some(progress), turns, snippets })
    }

    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }

    /// Returns true while the index is made anew because of damage.
    pub(super) fn are_rebuilding(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.is_rebuilding())
    }
}

/// The entries that a search looks for.
#[derive(Clone, Debug)]
pub struct Sought {
    /// The words.
    pub query: Query,
    /// The sessions and logs that the caller may read and asks for.
    pub reach: Reach,
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
    /// The rank by the entry's text alone; higher is better.
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
    /// True if there may be more matches than were ranked.
    pub is_cut: bool,
}

/// The end of a search that nobody waits for or that takes too long. Its thread asks for it.
struct End {
    departed: CancellationToken,
    deadline: std::time::Instant,
}

impl End {
    fn has_come(&self) -> bool {
        self.departed.is_cancelled() || std::time::Instant::now() >= self.deadline
    }
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
        let index = match self.has_replicas() {
            true => None,
            false => Some(progress.index().ok_or(ServiceError::SearchNotReady)?),
        };
        let turn = self.inner.searches.turns.wait().await?;
        // The work ends with the request, and keeps its place until then.
        let departed = CancellationToken::new();
        let _departs = departed.clone().drop_guard();
        let deadline = std::time::Instant::now() + SEARCH_TIME_MAX;
        let end = Arc::new(End { departed, deadline });
        let (store, ends) = (Arc::clone(&self.inner.deps.store), Arc::clone(&end));
        let look = move || {
            let found = match index {
                Some(index) => index
                    .search(&sought.query, &sought.reach, &|| !ends.has_come())
                    .map_err(|error| failed(&progress, &index, &error)),
                None => in_store(&*store, &sought),
            };
            found.map(|found| (turn, found))
        };
        let (turn, Matches { ranked, is_cut }) =
            with_files(look).await.map_err(|_| ServiceError::Fault)??;
        let turn = Arc::new(turn);
        let mut at = passed.min(ranked.len());
        let mut hits = Vec::new();
        while hits.len() < limit && at < ranked.len() {
            let stop = ranked.len().min(at + limit - hits.len());
            let page = ranked.get(at..stop).unwrap_or_default();
            hits.append(&mut self.hits(&query, page, &end, &turn).await?);
            at = stop;
        }
        Ok(Hits { hits, next: (at < ranked.len()).then_some(at), is_cut })
    }
}

impl SessionHandle {
    /// Waits until the search index has the session's entries as of a revision.
    ///
    /// # Errors
    ///
    /// At the deadline [`ServiceError::RevisionNotReached`], or [`ServiceError::SearchNotReady`] after a start;
    /// [`ServiceError::SearchOff`].
    pub async fn indexed(&self, wanted: Revision, deadline: Instant) -> Result<(), ServiceError> {
        let Self { service, name, .. } = self;
        let progress = service.progress()?;
        let is_shared = service.has_replicas();
        let mut ticks = progress.ticks();
        let _waiting = progress.wait();
        loop {
            let head =
                if is_shared { service.texts_at(name).await? } else { progress.revision(name) };
            // After a start, the index knows how far it is before it can be searched.
            let is_ready = is_shared || progress.index().is_some();
            if head >= wanted && is_ready {
                return Ok(());
            }
            let stopping = service.stopping().cancelled();
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
}

impl Service {
    /// Returns the revision of a session's texts in a store that other servers write to.
    async fn texts_at(&self, session: &SessionName) -> Result<Revision, ServiceError> {
        self.catch_up(session).await?;
        let Some(extent) = self.extent(session)? else { return Ok(Revision(0)) };
        let store = Arc::clone(&self.inner.deps.store);
        let look = move || {
            let shared = store.shared().ok_or(ServiceError::Fault)?;
            let at = shared.texts().texts_at(WORDS_VERSION, &[extent.session])?;
            Ok(at.get(&extent.session).copied().unwrap_or_default())
        };
        with_files(look).await.map_err(|_| ServiceError::Fault)?
    }

    fn progress(&self) -> Result<Arc<Progress>, ServiceError> {
        self.inner.searches.progress().ok_or(ServiceError::SearchOff)
    }

    /// Returns those matches that are on their boards and match there.
    async fn hits(
        &self,
        query: &Query,
        ranked: &[Ranked],
        end: &Arc<End>,
        turn: &Arc<WorkTurn>,
    ) -> Result<Vec<Hit>, ServiceError> {
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
        let (query, end, turn) = (query.clone(), Arc::clone(end), Arc::clone(turn));
        let snippets = Arc::clone(&self.inner.searches.snippets);
        let show = move || {
            let _turn = turn;
            let texts = found.iter().map(|(_, entry)| searchable(entry));
            let snippets = snippets.of(&query, texts, &|| !end.has_come())?;
            let hits = found.into_iter().zip(snippets).filter_map(|((ranked, entry), snippet)| {
                let Ranked { session, log, score, .. } = ranked;
                let agent = author(&log, &entry).cloned();
                Some(Hit { session, log, entry, agent, score, snippet: snippet? })
            });
            Ok(hits.collect())
        };
        let shown = compute(show).await.map_err(|_| ServiceError::Fault)?;
        shown.map_err(|error: SearchError| {
            if matches!(error, SearchError::Ended) {
                return too_long();
            }
            tracing::error!(error = %Chain(&error), "the snippets of a search could not be made");
            ServiceError::Fault
        })
    }
}

/// Returns the matches within reach in a store that other servers write to, best first.
fn in_store(store: &dyn Store, sought: &Sought) -> Result<Matches, ServiceError> {
    let Sought { query, reach } = sought;
    let shared = store.shared().ok_or(ServiceError::Fault)?;
    let words = Words::new().and_then(|words| words.query(query));
    let words = words.map_err(|error| {
        tracing::error!(error = %Chain(&error), "the words of a query could not be determined");
        ServiceError::Fault
    })?;
    let logs = shared.texts().text_logs(&reach.name_ranges(), &reach.log_ranges())?;
    let logs: Vec<_> = logs
        .into_iter()
        .filter_map(|TextLog { session, name, log }| {
            let (name, log) = (SessionName::from_bytes(&name)?, log_of(&log)?);
            (reach.admits)(&name).then_some((session, name, log))
        })
        .collect();
    let author = |log: &LogName| reach.author_in(log).map(str::to_owned);
    let found = shared.texts().find_texts(&TextQuery {
        wanted: single(&words.wanted, |_| true),
        // A text may have the words of an excluded phrase, but not in a row.
        unwanted: single(&words.unwanted, |phrase| phrase.words.len() == 1),
        logs: logs.iter().map(|(id, _, log)| (*id, log_key(log), author(log))).collect(),
        since: reach.since,
        limit: RANKED_MAX + 1,
        time_max: SEARCH_TIME_MAX,
    })?;
    let mut found = found.ok_or_else(too_long)?;
    let is_cut = found.len() > RANKED_MAX;
    found.truncate(RANKED_MAX);
    let ranked = found.into_iter().filter_map(|TextFound { log, seq, score }| {
        let (_, session, log) = logs.get(log)?;
        Some(Ranked { session: session.clone(), log: log.clone(), seq: Seq(seq), score })
    });
    Ok(Matches { ranked: ranked.collect(), is_cut })
}

/// Returns the words of phrases one by one, and true for the beginning of a word.
fn single(phrases: &[Phrase], is_taken: impl Fn(&Phrase) -> bool) -> Vec<(String, bool)> {
    let taken = phrases.iter().filter(|phrase| is_taken(phrase));
    let words = taken.flat_map(|Phrase { words, is_prefix }| {
        let last = words.len();
        (1..).zip(words).map(move |(n, word)| (word.clone(), *is_prefix && n == last))
    });
    words.collect()
}

const fn too_long() -> ServiceError {
    ServiceError::SearchTooLong { max_s: SEARCH_TIME_MAX.as_secs() }
}

/// A damaged index is made anew.
fn failed(progress: &Progress, index: &Arc<Index>, error: &SearchError) -> ServiceError {
    match error {
        SearchError::Ended => return too_long(),
        SearchError::Closed => return ServiceError::SearchNotReady,
        SearchError::Damaged => progress.distrust_if_present(index),
        SearchError::Sqlite(_) | SearchError::Io(_) => {}
    }
    tracing::error!(error = %Chain(error), "a search failed");
    if matches!(error, SearchError::Damaged) {
        return ServiceError::SearchNotReady;
    }
    ServiceError::Fault
}
