//! What is counted, as Prometheus reads it: what the server counts while it runs, and what it looks up now.
//!
//! Nothing in it names a session, an agent or a token.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::answer::Answer;
use super::docs;
use super::health;
use super::params::Params;
use super::problem::Problem;
use crate::board::Code;
use crate::metrics::{self, Text};
use crate::service::{Figures, Service};
use crate::store::Health;

/// Looking how much there is of everything visits each session: one looks at a time, the others wait.
static LOOK: Semaphore = Semaphore::const_new(1);

/// When this process began to serve, in seconds since 1970.
static STARTED: LazyLock<f64> = LazyLock::new(|| {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
});

/// Tell what the server counts and times
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Metrics in the text format of Prometheus, 0.0.4; none of them names a session, \
        an agent or a token", body = String, content_type = Text::MEDIA_TYPE),
        docs::ServerRefusals))]
pub(super) async fn metrics(
    State(service): State<Service>,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let look = LOOK.acquire().await;
    let text = spawn_blocking(move || text(&service.figures())).await;
    drop(look);
    let failed = |_| Problem::new(Code::Internal, "the metrics were not gathered");
    Ok(Answer::plain().body(Text::MEDIA_TYPE, Body::from(text.map_err(failed)?)))
}

/// The routes for whoever watches the server and has no token: nothing of any session can be read there.
pub fn observation(service: Service) -> Router {
    begin();
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .with_state(service)
}

/// Notes when the server began.
pub(super) fn begin() {
    LazyLock::force(&STARTED);
}

fn text(figures: &Figures) -> String {
    let mut text = Text::default();
    text.gauges(
        "blackboard_build_info",
        "The version that runs.",
        "version",
        [(env!("CARGO_PKG_VERSION"), 1)],
    );
    text.gauge(
        "blackboard_start_time_seconds",
        "When the server began, in seconds since 1970.",
        format_args!("{:.3}", *STARTED),
    );
    metrics::write(&mut text);
    write(&mut text, figures);
    text.into_string()
}

fn write(text: &mut Text, figures: &Figures) {
    let is = |health| u8::from(figures.health == health);
    text.gauges(
        "blackboard_store_state",
        "1 for the state that the store is in; full still takes deletions, poisoned waits for a restart.",
        "state",
        [
            ("ready", is(Health::Ready)),
            ("full", is(Health::Full)),
            ("poisoned", is(Health::Poisoned)),
        ],
    );
    text.gauge("blackboard_sessions", "Sessions that exist.", figures.hot + figures.cold);
    text.gauges(
        "blackboard_boards",
        "Boards in memory (hot), and those that are read when they are asked for (cold).",
        "place",
        [("hot", figures.hot), ("cold", figures.cold)],
    );
    text.gauge(
        "blackboard_sessions_damaged",
        "Sessions that are not served, because their stored history is damaged.",
        figures.damaged,
    );
    text.gauge(
        "blackboard_resident_bytes",
        "About what the sessions take of the memory.",
        figures.resident_bytes,
    );
    text.gauge(
        "blackboard_memory_budget_bytes",
        "What they may take (--memory-budget).",
        figures.budget_bytes,
    );
    text.gauge(
        "blackboard_writer_queue_bytes",
        "Bytes of the writes that wait for the writer, or that it has in its hands.",
        figures.waiting_bytes,
    );
    text.gauge(
        "blackboard_journal_unsettled_bytes",
        "Bytes of commits in the journal that are not packed by session yet.",
        figures.unsettled_bytes,
    );
    text.gauges(
        "blackboard_store_file_bytes",
        "The length of the store's files.",
        "file",
        [("database", figures.files.database), ("log", figures.files.log)],
    );
    text.gauge(
        "blackboard_image_bytes",
        "Bytes of the images that the sessions' histories name.",
        figures.image_bytes,
    );
}
