//! Connections to the database: bounded pools, and the threads on which they run.

pub(super) mod address;
mod pooler;
mod tls;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
    Runtime as PoolRuntime, TimeoutType,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::{Client, Config};
use uuid::Uuid;

use address::PostgresUrl;

use super::error::{TimedOut, not_connected, not_lent};
use crate::{PostgresError, StoreError};

/// The number of connections for appends.
pub const POSTGRES_WRITERS_MAX: usize = 3;

/// The number of connections for head checks.
pub const POSTGRES_CHECKERS_MAX: usize = 2;

/// The number of connections for everything else.
pub const POSTGRES_READERS_MAX: usize = 8;

/// The number of connections for archives that go out. Each is held as long as its reader takes.
pub const POSTGRES_SNAPSHOTS_MAX: usize = 4;

/// The longest wait for an answer to a short statement, and for a connection.
pub(super) const ANSWER_MAX: Duration = Duration::from_millis(1500);

/// The longest time without a sign of the other side while something was sent to it.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// The threads that drive the connections.
const THREADS: usize = 2;

/// The settings of each connection, whatever the defaults of the role and the database are. A server that stands still
/// within a transaction holds its rows for 3 s at most, and another one waits for them a little longer. An append expects
/// READ COMMITTED: it waits for another one and then finds the new head. Nothing found by an index is left out.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET lock_timeout = '4s'; SET idle_in_transaction_session_timeout = '3s'; \
    SET default_transaction_isolation = 'read committed'; SET gin_fuzzy_search_limit = 0; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')";

/// The schema of the store, once it is known. Each connection is set to it: a search path that is changed later, or that a
/// pooler forgets, would lead to another store.
type SchemaName = Arc<OnceLock<String>>;

/// The pools, and the runtime that drives them. Calls block, so they are made on blocking threads.
#[derive(Debug)]
pub(super) struct Connections {
    /// Absent once dropped.
    runtime: Option<Runtime>,
    writers: Pool,
    checkers: Pool,
    readers: Pool,
    snapshots: Pool,
    url: PostgresUrl,
    schema: SchemaName,
    /// The application name of the connections for appends, which no other server has.
    writer_name: String,
}

impl Connections {
    /// Prepares the pools; nothing is connected yet.
    pub(super) fn to(url: &PostgresUrl) -> Result<Self, PostgresError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("postgres")
            .enable_all()
            .build()?;
        let mut url = url.clone();
        url.config.connect_timeout(ANSWER_MAX);
        url.config.keepalives_idle(Duration::from_secs(30));
        // A network that swallows everything breaks the connection, so that another one is tried.
        url.config.tcp_user_timeout(UNACKNOWLEDGED_MAX);
        let writer_name = format!("blackboard {}", Uuid::new_v4().simple());
        let mut of_writers = url.clone();
        of_writers.config.application_name(&writer_name);
        let schema = SchemaName::default();
        let writers = pool(&of_writers, &schema, POSTGRES_WRITERS_MAX)?;
        let checkers = pool(&url, &schema, POSTGRES_CHECKERS_MAX)?;
        let readers = pool(&url, &schema, POSTGRES_READERS_MAX)?;
        let snapshots = pool(&url, &schema, POSTGRES_SNAPSHOTS_MAX)?;
        let runtime = Some(runtime);
        Ok(Self { runtime, writers, checkers, readers, snapshots, url, schema, writer_name })
    }

    /// Opens the first connection, if each connection keeps its session of PostgreSQL.
    pub(super) async fn first(&self) -> Result<Client, StoreError> {
        let (first, other) = (dial(&self.url, |_| {}).await?, dial(&self.url, |_| {}).await?);
        within(ANSWER_MAX, pooler::check(&first, &other)).await?;
        timeout(ANSWER_MAX, set_up(&first, None)).await.map_err(|_| timed_out())??;
        Ok(first)
    }

    /// Sets the schema of all later connections.
    pub(super) fn keep_to(&self, schema: &str) {
        self.schema.get_or_init(|| schema.to_owned());
    }

    /// Waits for a future on this thread, which must be one that may block.
    pub(super) fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let runtime = self.runtime.as_ref().ok_or(StoreError::Closed)?;
        runtime.block_on(future)
    }

    /// Lends a connection to work that is waited for on this thread.
    pub(super) fn read<T>(
        &self,
        work: impl AsyncFnOnce(Object) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.wait(async { work(self.reader().await?).await })
    }

    /// Starts a task that ends with the store.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(task));
        }
    }

    /// Lends a connection for an append.
    pub(super) async fn writer(&self) -> Result<Object, StoreError> {
        self.writers.get().await.map_err(not_lent)
    }

    /// Lends a connection for a head check.
    pub(super) async fn checker(&self) -> Result<Object, StoreError> {
        self.checkers.get().await.map_err(not_lent)
    }

    /// Lends a connection for anything else.
    pub(super) async fn reader(&self) -> Result<Object, StoreError> {
        self.readers.get().await.map_err(not_lent)
    }

    /// Lends a connection for a long transaction, if one is free.
    pub(super) async fn snapshot(&self) -> Result<Object, StoreError> {
        self.snapshots.get().await.map_err(|error| {
            let are_lent = matches!(error, PoolError::Timeout(TimeoutType::Wait));
            if are_lent { StoreError::NoConnection } else { not_lent(error) }
        })
    }

    pub(super) fn writer_name(&self) -> &str {
        &self.writer_name
    }

    /// The address, to open connections that are in no pool.
    pub(super) fn url(&self) -> &PostgresUrl {
        &self.url
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last handle may be dropped where nothing may block.
            runtime.shutdown_background();
        }
    }
}

fn pool(url: &PostgresUrl, schema: &SchemaName, max: usize) -> Result<Pool, PostgresError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(Config::clone(&url.config), tls::connector(url)?, recycling);
    let schema = Arc::clone(schema);
    let prepare = Hook::async_fn(move |client, _| {
        let schema = Arc::clone(&schema);
        Box::pin(async move {
            let schema = schema.get().map(String::as_str);
            let prepared = timeout(ANSWER_MAX, set_up(client, schema)).await;
            match prepared {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(HookError::message(error.to_string())),
                Err(_) => Err(HookError::message("the server does not answer")),
            }
        })
    });
    let pool = Pool::builder(manager)
        .max_size(max)
        .runtime(PoolRuntime::Tokio1)
        .wait_timeout(Some(ANSWER_MAX))
        .create_timeout(Some(ANSWER_MAX))
        .recycle_timeout(Some(ANSWER_MAX))
        .post_create(prepare)
        .build();
    pool.map_err(|error| PostgresError::Address(error.to_string()))
}

/// Sets and checks what acknowledged commits depend on.
async fn set_up(client: &Client, schema: Option<&str>) -> Result<(), PostgresError> {
    client.batch_execute(SETTINGS).await.map_err(PostgresError::Server)?;
    if let Some(schema) = schema {
        set_path(client, schema).await?;
    }
    let levels = "SELECT current_setting('synchronous_commit'), current_setting('fsync')";
    let row = client.query_one(levels, &[]).await.map_err(PostgresError::Server)?;
    let level = |place| row.try_get::<usize, String>(place).map_err(PostgresError::Server);
    if level(1)? != "on" {
        return Err(PostgresError::FsyncOff);
    }
    if ["on", "remote_apply"].contains(&&*level(0)?) {
        Ok(())
    } else {
        Err(PostgresError::NotSynchronous)
    }
}

/// Leads all names of tables to a schema.
pub(super) async fn set_path(client: &Client, schema: &str) -> Result<(), PostgresError> {
    let set = "SELECT set_config('search_path', quote_ident($1), false)";
    client.execute(set, &[&schema]).await.map_err(PostgresError::Server).map(drop)
}

/// Opens a connection that is in no pool, driven until `Client` is dropped. Its notices go to `hear`.
pub(super) async fn connect(
    url: &PostgresUrl,
    schema: &str,
    hear: impl FnMut(tokio_postgres::AsyncMessage) + Send + 'static,
) -> Result<Client, StoreError> {
    let client = dial(url, hear).await?;
    let set_up = set_up(&client, Some(schema));
    timeout(ANSWER_MAX, set_up).await.map_err(|_| timed_out())??;
    Ok(client)
}

/// Opens a connection and sets nothing on it.
async fn dial(
    url: &PostgresUrl,
    mut hear: impl FnMut(tokio_postgres::AsyncMessage) + Send + 'static,
) -> Result<Client, StoreError> {
    let tls = tls::connector(url)?;
    let connected = timeout(ANSWER_MAX, url.config.connect(tls)).await;
    let (client, mut connection) = connected.map_err(|_| timed_out())?.map_err(not_connected)?;
    drop(tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            hear(message);
        }
    }));
    Ok(client)
}

/// Bounds the wait for an answer.
pub(super) async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unreachable(Box::new(TimedOut(time)))),
    }
}

fn timed_out() -> StoreError {
    StoreError::Unreachable(Box::new(TimedOut(ANSWER_MAX)))
}
