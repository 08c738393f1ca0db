//! The store in a PostgreSQL service, to which any number of servers append.
//!
//! Nothing is kept in memory but connections. A commit is durable when PostgreSQL has answered its transaction. A
//! transaction that broke is looked up by its frames; nothing is poisoned.

/// The seal of a frame: its header, as `Frame::seal` returns it.
macro_rules! seal_of {
    ($frame:literal) => {
        concat!("substring(", $frame, " FOR 11)")
    };
}

const _: () = assert!(size_of::<blackboard_board::Seal>() == 11, "the seal that statements take");

mod append;
mod blobs;
mod connection;
mod error;
mod hints;
mod history;
mod leader;
mod lists;
mod logouts;
mod resolve;
mod schema;
mod sessions;
mod statement;
mod texts;
mod tokens;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use connection::address::PostgresUrl;
pub use connection::{
    POSTGRES_CHECKERS_MAX, POSTGRES_READERS_MAX, POSTGRES_SNAPSHOTS_MAX, POSTGRES_WRITERS_MAX,
};

use append::Broken;
use blobs::Fresh;
use connection::{ANSWER_MAX, Connections};
use hints::Hints;
use leader::Pulse;

use super::{
    EmbeddedStore, Head, Health, Hint, LogoutRow, LogoutStore, Outcome, PageMax, Pinned,
    PostgresFailure, RowQuery, Run, SharedStore, SigningKey, Store, StoreError, SummaryRow,
    TextStore, TokenRow,
};
use blackboard_board::{Epoch, Revision, SessionId, Timestamp};
use blackboard_clock::Clock;
use blackboard_error_chain::Chain;
use blackboard_metrics as metrics;

/// The longest wait for a transaction of appends. A standby that confirms commits may be slow.
const APPEND_MAX: Duration = Duration::from_secs(10);

/// The store in a PostgreSQL service.
#[derive(Debug)]
pub struct PostgresStore {
    connections: Arc<Connections>,
    signing_key: SigningKey,
    hints: Hints,
    pulse: Arc<Pulse>,
    is_closed: AtomicBool,
    fresh: Fresh,
}

impl PostgresUrl {
    /// Connects to the service, and returns the store with its clock. Blocks.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::open`].
    pub fn open(&self) -> Result<(Arc<dyn Store>, Clock), StoreError> {
        let store = PostgresStore::open(self)?;
        let clock = Clock::of_store(store.time());
        Ok((Arc::new(store), clock))
    }
}

impl PostgresStore {
    /// Connects to a service, and makes or migrates the schema. Blocks.
    ///
    /// # Errors
    ///
    /// [`StoreError::Postgres`] if the service is refused, [`StoreError::Unreachable`].
    pub fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        Self::open_with(url, schema::STEPS)
    }

    fn open_with(url: &PostgresUrl, steps: &[&str]) -> Result<Self, StoreError> {
        let connections = Arc::new(Connections::to(url)?);
        let pulse = Arc::new(Pulse::default());
        let meta = connections.wait(async {
            let mut client = connections.first().await?;
            let meta = schema::open(&mut client, steps).await?;
            // Before the first beat, since nothing may be stamped with another time.
            leader::look(&client, &pulse).await?;
            Ok(meta)
        })?;
        connections.keep_to(&meta.schema);
        let hints = Hints::new(&meta.schema);
        leader::start(&connections, &pulse, &meta.schema);
        hints.start(&connections);
        Ok(Self {
            connections,
            signing_key: meta.signing_key,
            hints,
            pulse,
            is_closed: AtomicBool::new(false),
            fresh: Fresh::default(),
        })
    }

    /// Returns the database's time, as of its last answer and what has passed since.
    #[must_use]
    pub fn time(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let pulse = Arc::clone(&self.pulse);
        Arc::new(move || pulse.time())
    }

    /// Notes whether the service answered.
    fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.pulse.note(!matches!(answer, Err(StoreError::Unreachable(_))));
        answer
    }

    fn append_alone(&self, runs: &[&Run]) -> Vec<Outcome> {
        let appended = self.connections.wait(async {
            let client = self.connections.writer().await?;
            let begun = Instant::now();
            let appended = tokio::time::timeout(APPEND_MAX, append::alone(&client, runs)).await;
            metrics::SYNC_TIMES.observe(begun.elapsed());
            match appended {
                Ok(Ok(mut outcomes)) => {
                    tell_missing_blobs(&client, runs, &mut outcomes).await;
                    Ok(outcomes)
                }
                Ok(Err(Broken::RolledBack(outcome))) => Ok(vec![outcome; runs.len()]),
                Ok(Err(Broken::Unknown(error))) => {
                    tracing::warn!(%error, "a transaction broke; its outcome is looked up");
                    discard(client);
                    Ok(resolve::outcomes(&self.connections, runs).await)
                }
                Err(_) => {
                    tracing::warn!("a transaction was not answered; its outcome is looked up");
                    discard(client);
                    Ok(resolve::outcomes(&self.connections, runs).await)
                }
            }
        });
        self.noted(appended).unwrap_or_else(|error| vec![not_tried(&error); runs.len()])
    }

    /// Appends runs all or none.
    fn append_group(&self, runs: &[&Run]) -> Vec<Outcome> {
        let appended = self.connections.wait(async {
            let client = self.connections.writer().await?;
            self.together(client, runs, true).await
        });
        self.noted(appended).unwrap_or_else(|error| vec![not_tried(&error); runs.len()])
    }

    /// Stores runs in one transaction, which begins here or has begun. One that is not stored rolls all back, but for a
    /// rejected row, which fails with its group.
    async fn together(
        &self,
        client: deadpool_postgres::Object,
        runs: &[&Run],
        begins: bool,
    ) -> Result<Vec<Outcome>, StoreError> {
        let work = async {
            if begins {
                append::begin(&client).await?;
            }
            let mut outcomes = append::within(&client, runs).await?;
            let is_done =
                |outcome: &Outcome| [Outcome::Appended, append::REJECTED].contains(outcome);
            let failed = outcomes.iter().find(|outcome| !is_done(outcome)).copied();
            append::end(&client, if failed.is_some() { "ROLLBACK" } else { "COMMIT" }).await?;
            if let Some(failed) = failed {
                outcomes = vec![failed; runs.len()];
            }
            Ok(outcomes)
        };
        let begun = Instant::now();
        let appended = tokio::time::timeout(APPEND_MAX, work).await;
        metrics::SYNC_TIMES.observe(begun.elapsed());
        match appended {
            Ok(Ok(mut outcomes)) => {
                tell_missing_blobs(&client, runs, &mut outcomes).await;
                Ok(outcomes)
            }
            Ok(Err(Broken::RolledBack(outcome))) => {
                // The transaction is over, but must be ended.
                if append::end(&client, "ROLLBACK").await.is_err() {
                    discard(client);
                }
                Ok(vec![outcome; runs.len()])
            }
            Ok(Err(Broken::Unknown(_))) | Err(_) => {
                discard(client);
                Ok(resolve::outcomes(&self.connections, runs).await)
            }
        }
    }

    /// Tells other servers of the sessions that these runs changed.
    fn tell(&self, batch: &[Run], outcomes: &[Outcome]) {
        let stored = batch.iter().zip(outcomes).filter(|(_, one)| **one == Outcome::Appended);
        self.hints.tell(stored.filter_map(|(run, _)| Some(run.row.as_ref()?.name.clone())));
    }

    fn append_in_order(&self, batch: &[Run]) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Refused; batch.len()];
        let mut order: Vec<usize> = (0..batch.len()).collect();
        let name = |index: &usize| {
            batch.get(*index).and_then(|run| run.row.as_ref()).map(|row| row.name.as_slice())
        };
        order.sort_by(|one, other| name(one).cmp(&name(other)));
        let mut groups: Vec<Option<u32>> = batch.iter().map(|run| run.group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let places = order.iter().copied();
            let places: Vec<usize> = places
                .filter(|place| batch.get(*place).is_some_and(|run| run.group == group))
                .collect();
            let runs: Vec<&Run> = places.iter().filter_map(|place| batch.get(*place)).collect();
            let of_group = match group {
                Some(_) if runs.len() > 1 => self.append_group(&runs),
                Some(_) | None => self.append_alone(&runs),
            };
            for (place, outcome) in places.into_iter().zip(of_group) {
                if let Some(slot) = outcomes.get_mut(place) {
                    *slot = outcome;
                }
            }
        }
        outcomes
    }
}

/// Returns the outcome of runs for which no connection was found.
fn not_tried(error: &StoreError) -> Outcome {
    if matches!(error, StoreError::Full) {
        return Outcome::Full;
    }
    if let StoreError::Failed(failure) = error {
        return Outcome::Failed(*failure);
    }
    if matches!(error, StoreError::Closed) {
        return Outcome::Refused;
    }
    if matches!(error, StoreError::Unreachable(_)) {
        tracing::debug!(%error, "an append was not tried");
        return Outcome::Unreachable;
    }
    tracing::error!(error = %Chain(error), "an append was not tried");
    Outcome::Failed(PostgresFailure::Statement)
}

/// Tells the runs that miss a blob from those that met another head. If that cannot be told, they stay conflicts: the
/// outcomes of the others are certain by now.
async fn tell_missing_blobs(
    client: &deadpool_postgres::Object,
    runs: &[&Run],
    outcomes: &mut [Outcome],
) {
    if let Err(error) = history::tell_missing_blobs(client, runs, outcomes).await {
        tracing::debug!(%error, "missing blobs cannot be distinguished from conflicts");
    }
}

/// Closes a connection instead of returning it to its pool.
fn discard(client: deadpool_postgres::Object) {
    drop(deadpool_postgres::Object::take(client));
}

impl Store for PostgresStore {
    fn embedded(&self) -> Option<&dyn EmbeddedStore> {
        None
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        if self.is_closed.load(Ordering::Acquire) {
            return vec![Outcome::Refused; batch.len()];
        }
        let outcomes = self.append_in_order(batch);
        self.tell(batch, &outcomes);
        outcomes
    }

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.noted(
            self.connections
                .read(async |client| history::commits(&client, session, after, max).await),
        )
    }

    fn base(&self, session: SessionId) -> Result<Option<Revision>, StoreError> {
        self.noted(self.connections.read(async |client| {
            Ok(history::base(&client, session).await?.and_then(|base| base.revision))
        }))
    }

    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let client = self.connections.wait(self.connections.reader())?;
        history::read_base(&self.connections, &client, session, visit)
    }

    fn pin(&self, session: SessionId) -> Result<Box<dyn Pinned>, StoreError> {
        history::pin(&self.connections, session)
    }

    fn stage(&self, session: SessionId) -> Result<(), StoreError> {
        self.connections.read(async |client| history::stage(&client, session).await)
    }

    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        _frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        let content = self.pulse.content();
        self.connections
            .read(async |client| history::put_base(&client, session, base, (content, parts)).await)
    }

    fn set_base(&self, session: SessionId, base: Revision) -> Outcome {
        let set = self.connections.wait(async {
            let mut client = self.connections.writer().await?;
            history::set_base(&mut client, session, base).await
        });
        self.noted(set).unwrap_or_else(|error| not_tried(&error))
    }

    fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        self.connections.read(async |mut client| history::discard(&mut client, session).await)
    }

    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.connections.read(async |mut client| history::forget(&mut client, sessions).await)
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        self.connections.read(async |client| tokens::all(&client).await)
    }

    fn put_token(&self, id: uuid::Uuid, body: Option<&[u8]>) -> Result<(), StoreError> {
        self.noted(
            self.connections.read(async |mut client| tokens::put(&mut client, id, body).await),
        )
    }

    fn tokens_version(&self) -> Result<u64, StoreError> {
        self.noted(self.connections.wait(connection::within(ANSWER_MAX, async {
            let client = self.connections.checker().await?;
            tokens::version(&client).await
        })))
    }

    fn logout_store(&self) -> Option<&dyn LogoutStore> {
        Some(self)
    }

    fn epoch(&self) -> Epoch {
        self.pulse.epoch()
    }

    fn signing_key(&self) -> &SigningKey {
        &self.signing_key
    }

    fn health(&self) -> Health {
        if self.pulse.is_there() { Health::Ready } else { Health::Unreachable }
    }

    /// Other servers go on.
    fn close(&self) -> Result<(), StoreError> {
        self.is_closed.store(true, Ordering::Release);
        self.pulse.stop();
        Ok(())
    }
}

impl SharedStore for PostgresStore {
    fn heads(&self, asked: &[(Vec<u8>, Revision)]) -> Result<Vec<Option<Head>>, StoreError> {
        let found = self.noted(self.connections.wait(connection::within(ANSWER_MAX, async {
            let client = self.connections.checker().await?;
            sessions::heads(&client, asked).await
        })));
        let (heads, epoch) = found?;
        self.pulse.note_epoch(schema::epoch_of(epoch)?);
        Ok(heads)
    }

    fn draw_epoch(&self, known: Epoch) -> Result<(), StoreError> {
        let drawn = self.noted(self.connections.wait(connection::within(APPEND_MAX, async {
            let client = self.connections.writer().await?;
            schema::draw_epoch(&client, known).await
        })));
        drawn.map(|epoch| self.pulse.note_epoch(epoch))
    }

    fn due(&self, now: Timestamp, max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.connections.read(async |client| sessions::due(&client, now, max).await)
    }

    fn limited(&self, after: &[u8], max: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.connections.read(async |client| sessions::limited(&client, after, max).await)
    }

    fn over(&self, before: Timestamp, max: usize) -> Result<Vec<SessionId>, StoreError> {
        self.connections.read(async |client| sessions::over(&client, before, max).await)
    }

    fn collectable(
        &self,
        before: Timestamp,
        after: &[u8],
        max: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.connections
            .read(async |client| sessions::collectable(&client, before, after, max).await)
    }

    fn sweep(&self) -> Result<(), StoreError> {
        self.connections.read(async |client| {
            sessions::sweep(&client).await?;
            logouts::sweep(&client).await
        })
    }

    fn lead(&self) -> bool {
        self.pulse.leads()
    }

    fn exclusively(&self, names: &[Vec<u8>], decide: &mut dyn FnMut() -> Vec<Run>) -> Vec<Outcome> {
        let held = self.connections.wait(async {
            let client = self.connections.writer().await?;
            sessions::hold(&client, names).await?;
            Ok(client)
        });
        let client = match self.noted(held) {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "sessions could not be locked");
                return Vec::new();
            }
        };
        let batch = decide();
        let runs: Vec<&Run> = batch.iter().collect();
        let outcomes = self.connections.wait(self.together(client, &runs, false));
        let outcomes =
            self.noted(outcomes).unwrap_or_else(|error| vec![not_tried(&error); runs.len()]);
        self.tell(&batch, &outcomes);
        outcomes
    }

    fn rows(&self, sought: &RowQuery<'_>) -> Result<Vec<(Vec<u8>, SummaryRow)>, StoreError> {
        self.noted(self.connections.wait(connection::within(APPEND_MAX, async {
            let client = self.connections.reader().await?;
            lists::rows(&client, sought).await
        })))
    }

    fn count(&self) -> Result<usize, StoreError> {
        self.noted(self.connections.read(async |client| lists::count(&client).await))
    }

    fn texts(&self) -> &dyn TextStore {
        self
    }

    fn on_hint(&self, hear: Box<dyn Fn(Hint) + Send + Sync>) {
        self.hints.on_hint(hear);
    }
}

impl LogoutStore for PostgresStore {
    fn log_out(&self, logout: &LogoutRow, max: usize) -> Result<(), StoreError> {
        self.noted(self.connections.wait(connection::within(ANSWER_MAX, async {
            let mut client = self.connections.checker().await?;
            logouts::put(&mut client, logout, max).await
        })))
    }

    fn logouts(&self, after: i64) -> Result<Vec<(i64, LogoutRow)>, StoreError> {
        self.noted(self.connections.wait(connection::within(ANSWER_MAX, async {
            let client = self.connections.checker().await?;
            logouts::after(&client, after).await
        })))
    }
}

#[cfg(test)]
mod tests;
