//! What is counted and timed while the server runs, and how that is written for Prometheus.
//!
//! Whatever is counted stands here, by its name and with its words. Counting is an addition to an atomic number:
//! nothing is gathered until somebody asks, and nothing grows. No label has anything in it that a client chose.

mod histogram;
mod number;
mod requests;
mod text;
mod words;

pub use histogram::Histogram;
pub use number::{Counted, Counter, Gauge};
pub use requests::Requests;
pub use text::Text;
pub use words::CounterByWord;

/// Requests and how long each took to the head of its answer.
pub static REQUESTS: Requests = Requests::new();

/// Those whose answer has not begun.
pub static REQUESTS_IN_PROGRESS: Gauge =
    Gauge::new("blackboard_http_requests_in_progress", "Requests whose answer has not begun.");

/// Refusals and failures, by the code of their problem.
pub static REFUSALS: CounterByWord = CounterByWord::new(
    "blackboard_http_refusals_total",
    "Requests that were refused or failed, by the code of their problem.",
    "code",
);

/// Connections of clients.
pub static CONNECTIONS: Gauge =
    Gauge::new("blackboard_http_connections_open", "Open connections of clients.");

/// Streams of events.
pub static STREAMS: Gauge =
    Gauge::new("blackboard_http_streams_open", "Streams of server-sent events that are open.");

/// Those who wait for a change of a session, by streams too.
pub static WATCHERS: Gauge =
    Gauge::new("blackboard_watchers", "Waiting reads and streams that watch a session.");

/// Writes in the writer's queue or in its hands.
pub static WRITES_WAITING: Gauge = Gauge::new(
    "blackboard_writer_queue_writes",
    "Writes that wait for the writer, or that it has in its hands.",
);

/// How many writes one batch took.
pub static BATCH_WRITES: Histogram =
    Histogram::numbers("blackboard_commit_batch_writes", "Writes that one batch took.");

/// How long a batch took, from its first write to its answers.
pub static BATCH_TIMES: Histogram = Histogram::seconds(
    "blackboard_commit_batch_duration_seconds",
    "From the first write of a batch, decided, until all of it was durable and answered.",
);

/// How long a transaction of the store took to become durable.
pub static SYNC_TIMES: Histogram = Histogram::seconds(
    "blackboard_store_commit_duration_seconds",
    "The COMMIT of each transaction of the store, with its sync.",
);

/// How long a move of the store's log into its database took.
pub static CHECKPOINT_TIMES: Histogram = Histogram::seconds(
    "blackboard_store_checkpoint_duration_seconds",
    "Each move of the store's write-ahead log into the database.",
);

/// How long an image's file took to become durable.
pub static BLOB_SYNC_TIMES: Histogram = Histogram::seconds(
    "blackboard_blob_sync_duration_seconds",
    "The sync of each new file of an image.",
);

/// Writes all that is counted here.
pub fn write(text: &mut Text) {
    REQUESTS.write(text);
    REFUSALS.write(text);
    for gauge in [&REQUESTS_IN_PROGRESS, &CONNECTIONS, &STREAMS, &WATCHERS, &WRITES_WAITING] {
        gauge.write(text);
    }
    let times = [&BATCH_TIMES, &SYNC_TIMES, &CHECKPOINT_TIMES, &BLOB_SYNC_TIMES];
    for histogram in [&BATCH_WRITES].into_iter().chain(times) {
        histogram.write(text);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
