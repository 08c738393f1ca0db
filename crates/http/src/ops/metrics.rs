//! Metrics in the format of `OpenMetrics`, or in the older one of Prometheus.
//!
//! Counters begin at the server's start; gauges are read on request. No metric names a session, an agent or a token.

use std::fmt;
use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::get;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Semaphore;

use super::health;
use crate::access::methods::{Methods, method_not_allowed};
use crate::openapi;
use crate::request::query::Query;
use crate::response::Answer;
use crate::response::problem::Problem;
use blackboard_accept::MediaType;
use blackboard_board::Code;
use blackboard_fairness::compute;
use blackboard_metrics as metrics;
use blackboard_metrics::{Format, OPEN_METRICS, TEXT, older};
use blackboard_service::{Service, Stats};
use blackboard_store::Health;

/// Limits the gathering of statistics, which visits each session, to one request at a time.
static LOOK: Semaphore = Semaphore::const_new(1);

/// The start time of this process, in seconds since 1970.
static STARTED: LazyLock<f64> = LazyLock::new(|| {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
});

/// The formats, by the parameter that tells their versions apart.
const NEWER: MediaType =
    MediaType { essence: "application/openmetrics-text", parameters: &[("version", "1.0.0")] };

const OLDER: MediaType = MediaType { essence: "text/plain", parameters: &[("version", "0.0.4")] };

/// Read the server's metrics
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Metrics in the text format of OpenMetrics 1.0.0, or in Prometheus's own, 0.0.4, if \
        `Accept` prefers that; none names a session, an agent or a token",
        content((String = OPEN_METRICS), (String = TEXT))),
        openapi::ServerRefusals))]
pub(crate) async fn metrics(
    State(service): State<Service>,
    Query(params): Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.finish()?;
    let format = format(&headers);
    let look = LOOK.acquire().await;
    let text = compute(move || {
        let text = text(&service.stats())?;
        Ok::<_, fmt::Error>(match format {
            Format::OpenMetrics => text,
            Format::Text => older(&text),
        })
    })
    .await;
    drop(look);
    let Ok(Ok(text)) = text else {
        return Err(Problem::new(Code::Internal, "the metrics could not be gathered"));
    };
    Ok(Answer::plain().body(format.media_type(), Body::from(text)))
}

/// Returns the format that `Accept` prefers: `OpenMetrics`, unless the older one has a greater weight.
fn format(headers: &HeaderMap) -> Format {
    let accept = || headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if OLDER.weight(accept()) > NEWER.weight(accept()) { Format::Text } else { Format::OpenMetrics }
}

/// Returns the routes for monitoring without a token. They show nothing of any session.
pub fn observation(service: Service) -> Router {
    begin();
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .method_not_allowed_fallback(|path, request| {
            method_not_allowed(State(Methods::default()), path, request)
        })
        .with_state(service)
}

/// Records the start time.
pub(crate) fn begin() {
    LazyLock::force(&STARTED);
}

fn text(stats: &Stats) -> Result<String, fmt::Error> {
    let status = &stats.status;
    let mut looked_up = metrics::registry();
    add_server(&mut looked_up);
    looked_up.register(
        "clock_held",
        "1 while expiry is suspended because the wall clock jumped, 0 otherwise",
        ConstGauge::new(u64::from(stats.is_clock_held)),
    );
    looked_up.register(
        "search_rebuilding",
        "1 while the search index is rebuilt after damage and searches are 503, 0 otherwise",
        ConstGauge::new(u64::from(status.is_search_rebuilding)),
    );
    looked_up.register(
        "thread_up",
        "1 while the server's thread is running, 0 while it pauses after a panic",
        by_word("thread", status.threads.iter().map(|(name, is_up)| (*name, u64::from(*is_up)))),
    );
    add_store(&mut looked_up, stats);
    add_sessions(&mut looked_up, stats);
    add_bytes(&mut looked_up, stats);
    metrics::written(&looked_up)
}

type ByWord = Family<[(&'static str, &'static str); 1], Gauge<u64, AtomicU64>>;

/// Builds a family of gauges by one label.
fn by_word(label: &'static str, values: impl IntoIterator<Item = (&'static str, u64)>) -> ByWord {
    let family = ByWord::default();
    for (word, value) in values {
        family.get_or_create(&[(label, word)]).set(value);
    }
    family
}

fn add_server(looked_up: &mut Registry) {
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    looked_up.register("build", "The running version", version);
    looked_up.register_with_unit(
        "start_time",
        "The server's start time, in seconds since 1970",
        Unit::Seconds,
        ConstGauge::new(*STARTED),
    );
    if let Some(bytes) = resident_memory() {
        looked_up.register_with_unit(
            "process_resident",
            "Resident memory of the process, as reported by the system",
            Unit::Bytes,
            ConstGauge::new(bytes),
        );
    }
}

/// Returns the resident memory of this process in bytes, where the system reports it.
fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn add_store(looked_up: &mut Registry, stats: &Stats) {
    let is = |health| u64::from(stats.status.health == health);
    let states = [
        ("ready", is(Health::Ready)),
        ("full", is(Health::Full)),
        ("unreachable", is(Health::Unreachable)),
        ("poisoned", is(Health::Poisoned)),
    ];
    looked_up.register(
        "store_state",
        "1 for the store's current state, 0 for the others; full still accepts deletions, poisoned needs a restart, unreachable is a database service that does not answer",
        by_word("state", states),
    );
    looked_up.register_with_unit(
        "store_file",
        "Size of the store's files",
        Unit::Bytes,
        by_word("file", [("database", stats.files.database), ("log", stats.files.log)]),
    );
    if let Some(bytes) = stats.room_bytes {
        looked_up.register_with_unit(
            "store_room",
            "Bytes that may be written before the store is full, by the disk's free space",
            Unit::Bytes,
            ConstGauge::new(bytes),
        );
    }
}

fn add_sessions(looked_up: &mut Registry, stats: &Stats) {
    let sessions = ConstGauge::new(stats.hot + stats.cold);
    looked_up.register("sessions", "Existing sessions", sessions);
    looked_up.register(
        "boards",
        "Boards in memory (hot), and boards loaded on demand (cold)",
        by_word("place", [("hot", stats.hot as u64), ("cold", stats.cold as u64)]),
    );
    looked_up.register(
        "sessions_damaged",
        "Sessions that are not served because their stored history is damaged",
        ConstGauge::new(stats.status.damaged),
    );
    looked_up.register(
        "sessions_over_budget",
        "Sessions whose agents' costs have passed their cost_max",
        ConstGauge::new(stats.over_budget),
    );
}

fn add_bytes(looked_up: &mut Registry, stats: &Stats) {
    for (name, help, bytes) in [
        ("resident", "Estimated memory of sessions and past boards", stats.resident_bytes as u64),
        (
            "memory_budget",
            "Limit of the resident bytes (--memory-budget)",
            stats.budget_bytes as u64,
        ),
        (
            "past_boards",
            "Estimated memory of cached past boards, included in the resident bytes",
            stats.past_bytes as u64,
        ),
        (
            "recent_commits",
            "Memory of the last commits of watched sessions, besides the resident bytes",
            stats.recent_bytes as u64,
        ),
        (
            "writer_queue",
            "Bytes of the writes queued for the writer or being committed",
            stats.waiting_bytes as u64,
        ),
        (
            "journal_uncompacted",
            "Bytes of commits in the journal that are not compacted yet",
            stats.uncompacted_bytes,
        ),
        ("image", "Bytes of the images that sessions' histories reference", stats.image_bytes),
    ] {
        looked_up.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(bytes));
    }
}

#[cfg(test)]
mod tests;
