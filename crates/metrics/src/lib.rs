//! Metrics of the running server, and their text for Prometheus.
//!
//! Metrics that the code counts are declared here, with name and help; those read at a scrape are in `http/ops/metrics.rs`.
//! `prometheus-client` keeps the numbers and writes the text.
//! Nothing is gathered before a scrape, nothing grows, and no label holds text that a client chose.

mod gauge;
mod histogram;
mod requests;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use prometheus_client::encoding::text;
use prometheus_client::registry::{Registry, Unit};

pub use gauge::{Counted, Gauge};
pub use histogram::{Numbers, Times};
pub use requests::{Requests, known_method};
pub use words::{Count, CounterByWord};

/// A text format for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `OpenMetrics` 1.0.0.
    OpenMetrics,
    /// The older text format 0.0.4.
    Text,
}

impl Format {
    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => OPEN_METRICS,
            Self::Text => TEXT,
        }
    }
}

/// The media type of `OpenMetrics`.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type of the older text format.
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The prefix of all names.
const PREFIX: &str = "blackboard";

/// Answered requests, and the time from each one's head to its answer's.
pub static REQUESTS: LazyLock<Requests> = LazyLock::new(Requests::default);

/// Requests whose answer has not begun.
pub static REQUESTS_IN_PROGRESS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Refusals and failures, by the code of their problem.
pub static REFUSALS: LazyLock<CounterByWord> = LazyLock::new(|| CounterByWord::new("code"));

/// Open connections of clients.
pub static CONNECTIONS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Streams of events.
pub static STREAMS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Watchers of a session's changes, streams included.
pub static WATCHERS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// Panics and unexpected ends of threads, by the thread's name.
pub static THREAD_FAILURES: LazyLock<CounterByWord> =
    LazyLock::new(|| CounterByWord::new("thread"));

/// Times that the search index was found damaged.
pub static SEARCH_INDEX_DAMAGES: LazyLock<Count> = LazyLock::new(Count::default);

/// Sessions that lists and the inbox examined, shown or not.
pub static LISTED: LazyLock<Count> = LazyLock::new(Count::default);

/// Offers of a claimable request to a waiting worker.
pub static CLAIM_OFFERS: LazyLock<Count> = LazyLock::new(Count::default);

/// Writes in the queue or with the writer.
pub static WRITES_WAITING: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// The number of writes of each batch.
pub static BATCH_WRITES: LazyLock<Numbers> = LazyLock::new(Numbers::default);

/// The duration of a batch, from its first write to its answers.
pub static BATCH_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The duration of the store's durable transactions.
pub static SYNC_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The number of sessions whose acknowledged commits the database lost.
pub static LOST_HEADS: LazyLock<Count> = LazyLock::new(Count::default);

/// The duration of checkpoints of the store's log into its database.
pub static CHECKPOINT_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The duration until an image's file is durable.
pub static BLOB_SYNC_TIMES: LazyLock<Times> = LazyLock::new(Times::default);

/// The registry of all metrics above. The crate appends a full stop to the help, the unit to the name, and `_total`
/// to a counter's name.
static COUNTED: LazyLock<Registry> = LazyLock::new(|| {
    let mut counted = registry();
    add_requests(&mut counted);
    add_gauges(&mut counted);
    add_writes(&mut counted);
    counted.register(
        "thread_failures",
        "Panics of the server's threads, by the thread's name; all but the writer are restarted",
        THREAD_FAILURES.counts.clone(),
    );
    counted
});

fn add_requests(counted: &mut Registry) {
    counted.register(
        "http_requests",
        "Answered requests by method, route and status",
        REQUESTS.answers.clone(),
    );
    counted.register_with_unit(
        "http_request_duration",
        "Time from a request's head to the head of its answer, by method and route",
        Unit::Seconds,
        REQUESTS.times.clone(),
    );
    counted.register(
        "http_refusals",
        "Requests that were rejected or failed, by the code of their problem",
        REFUSALS.counts.clone(),
    );
    counted.register(
        "search_index_damages",
        "Times that the search index was found damaged, and rebuilt",
        SEARCH_INDEX_DAMAGES.0.clone(),
    );
    counted.register(
        "list_sessions_examined",
        "Sessions that lists and the inbox examined, shown or not",
        LISTED.0.clone(),
    );
    counted.register(
        "claim_offers",
        "Claimable requests that were offered to a waiting worker",
        CLAIM_OFFERS.0.clone(),
    );
}

fn add_gauges(counted: &mut Registry) {
    for (name, help, gauge) in [
        ("http_requests_in_progress", "Requests whose answer has not begun", &REQUESTS_IN_PROGRESS),
        ("http_connections_open", "Open connections of clients", &CONNECTIONS),
        ("http_streams_open", "Streams of server-sent events that are open", &STREAMS),
        ("watchers", "Waiting reads and streams that watch a session", &WATCHERS),
        ("writer_queue_writes", "Writes in the queue or with the writer", &WRITES_WAITING),
    ] {
        counted.register(name, help, gauge.0.clone());
    }
}

fn add_writes(counted: &mut Registry) {
    counted.register(
        "store_lost_heads",
        "Sessions with commits on this server that the database lost in a failover",
        LOST_HEADS.0.clone(),
    );
    counted.register("commit_batch_writes", "Writes in each batch", BATCH_WRITES.0.clone());
    for (name, help, times) in [
        (
            "commit_batch_duration",
            "Time from the decision on a batch's first write until all of it was durable and answered",
            &BATCH_TIMES,
        ),
        ("store_commit_duration", "Time of each COMMIT of the store, with its sync", &SYNC_TIMES),
        (
            "store_checkpoint_duration",
            "Time of each checkpoint of the store's write-ahead log into its database",
            &CHECKPOINT_TIMES,
        ),
        ("blob_sync_duration", "Time of the sync of each new image file", &BLOB_SYNC_TIMES),
    ] {
        counted.register_with_unit(name, help, Unit::Seconds, times.0.clone());
    }
}

/// Creates an empty registry, for values that are read on a scrape.
#[must_use]
pub fn registry() -> Registry {
    Registry::with_prefix(PREFIX)
}

/// Renders the values read on this scrape, all metrics, and the end marker.
///
/// # Errors
///
/// If the encoder fails.
pub fn written(looked_up: &Registry) -> Result<String, fmt::Error> {
    let mut written = String::new();
    text::encode_registry(&mut written, looked_up)?;
    text::encode(&mut written, &COUNTED)?;
    Ok(written)
}

/// Rewrites a text of `OpenMetrics` in the older format: a counter's or an info's type and help have the name of its samples
/// there, and neither units nor an end are marked.
#[must_use]
pub fn older(open_metrics: &str) -> String {
    let mut types = BTreeMap::new();
    let described = open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.extend(described.filter_map(|line| line.split_once(' ')));
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        let (Some(keyword @ ("HELP" | "TYPE")), Some(name), Some(rest)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (suffix, kind) = match types.get(name) {
            Some(&"counter") => ("_total", "counter"),
            Some(&"info") => ("_info", "gauge"),
            Some(&"unknown") => ("", "untyped"),
            Some(kind) => ("", *kind),
            None => ("", "untyped"),
        };
        let rest = if keyword == "TYPE" { kind } else { rest };
        text.push_str("# ");
        text.extend([keyword, " ", name, suffix, " ", rest, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests;
