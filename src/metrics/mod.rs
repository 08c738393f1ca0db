//! Metrics of the running server, and their text for Prometheus.
//!
//! Every metric is declared here, with its name and help. `prometheus-client` keeps the numbers and writes the text.
//! Nothing is gathered before a scrape, nothing grows, and no label holds text that a client chose.

mod gauge;
mod histogram;
mod requests;
mod words;

use std::fmt;
use std::sync::LazyLock;

use prometheus_client::encoding::text;
use prometheus_client::registry::{Registry, Unit};

pub use gauge::{Counted, Gauge};
pub use histogram::{Numbers, Times};
pub use requests::{Requests, known_method};
pub use words::{Count, CounterByWord};

/// The media type of what is written.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The prefix of every name.
const PREFIX: &str = "blackboard";

/// Requests and how long each took to the head of its answer.
pub static REQUESTS: LazyLock<Requests> = LazyLock::new(Requests::default);

/// Requests whose answer has not begun.
pub static REQUESTS_IN_PROGRESS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Refusals and failures, by the code of their problem.
pub static REFUSALS: LazyLock<CounterByWord> = LazyLock::new(|| CounterByWord::new("code"));

/// Connections of clients.
pub static CONNECTIONS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Streams of events.
pub static STREAMS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Watchers of a session's changes, streams included.
pub static WATCHERS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Panics of threads, by the thread's name, and ends without a reason.
pub static THREAD_FAILURES: LazyLock<CounterByWord> =
    LazyLock::new(|| CounterByWord::new("thread"));

/// Sessions that lists and the inbox looked at, found or not.
pub static LISTED: LazyLock<Count> = LazyLock::new(Count::default);

/// Writes in the writer's queue or in its hands.
pub static WRITES_WAITING: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// The writes of a batch.
pub static BATCH_WRITES: LazyLock<Numbers> = LazyLock::new(Numbers::default);

/// The duration of a batch, from its first write to its answers.
pub static BATCH_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The duration of the store's durable transactions.
pub static SYNC_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The duration of checkpoints of the store's log into its database.
pub static CHECKPOINT_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The duration until an image's file is durable.
pub static BLOB_SYNC_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// All of it. The crate puts a full stop behind the words, the unit behind the name, and `total` behind a counter's.
static COUNTED: LazyLock<Registry> = LazyLock::new(|| {
    let mut counted = registry();
    add_requests(&mut counted);
    add_gauges(&mut counted);
    add_writes(&mut counted);
    counted.register(
        "thread_failures",
        "Panics of the server's threads, by the thread's name; all but the writer start again",
        THREAD_FAILURES.counts.clone(),
    );
    counted
});

fn add_requests(counted: &mut Registry) {
    counted.register(
        "http_requests",
        "Requests by method, route and status of their answer",
        REQUESTS.answers.clone(),
    );
    counted.register_with_unit(
        "http_request_duration",
        "From a request's head to the head of its answer, by method and route",
        Unit::Seconds,
        REQUESTS.times.clone(),
    );
    counted.register(
        "http_refusals",
        "Requests that were refused or failed, by the code of their problem",
        REFUSALS.counts.clone(),
    );
    counted.register(
        "list_sessions_examined",
        "Sessions that lists and the inbox looked at, whether they were shown or not",
        LISTED.0.clone(),
    );
}

fn add_gauges(counted: &mut Registry) {
    for (name, help, gauge) in [
        ("http_requests_in_progress", "Requests whose answer has not begun", &REQUESTS_IN_PROGRESS),
        ("http_connections_open", "Open connections of clients", &CONNECTIONS),
        ("http_streams_open", "Streams of server-sent events that are open", &STREAMS),
        ("watchers", "Waiting reads and streams that watch a session", &WATCHERS),
        (
            "writer_queue_writes",
            "Writes that wait for the writer, or that it has in its hands",
            &WRITES_WAITING,
        ),
    ] {
        counted.register(name, help, gauge.0.clone());
    }
}

fn add_writes(counted: &mut Registry) {
    counted.register("commit_batch_writes", "Writes that one batch took", BATCH_WRITES.0.clone());
    for (name, help, times) in [
        (
            "commit_batch_duration",
            "From the first write of a batch, decided, until all of it was durable and answered",
            &BATCH_TIMES,
        ),
        (
            "store_commit_duration",
            "The COMMIT of each transaction of the store, with its sync",
            &SYNC_TIMES,
        ),
        (
            "store_checkpoint_duration",
            "Each move of the store's write-ahead log into the database",
            &CHECKPOINT_TIMES,
        ),
        ("blob_sync_duration", "The sync of each new file of an image", &BLOB_SYNC_TIMES),
    ] {
        counted.register_with_unit(name, help, Unit::Seconds, times.0.clone());
    }
}

/// Creates an empty registry, for values read on a scrape.
#[must_use]
pub fn registry() -> Registry {
    Registry::with_prefix(PREFIX)
}

/// Writes the looked-up values, all metrics, and the end marker.
///
/// # Errors
/// If a number is none that the format has.
pub fn written(looked_up: &Registry) -> Result<String, fmt::Error> {
    let mut written = String::new();
    text::encode_registry(&mut written, looked_up)?;
    text::encode(&mut written, &COUNTED)?;
    Ok(written)
}

#[cfg(test)]
mod tests;
