//! `/metrics`: its contents, its omissions, and its own address.

use std::collections::BTreeSet;

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Server, client};
use crate::sse::Stream;

/// The value of a series, by all that stands before it.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap_or_else(|_| panic!("{series} is {value}")))
}

/// The value of a series now.
pub(crate) async fn sample(server: &Server, series: &str) -> f64 {
    value(&metrics(server).await, series).unwrap_or_default()
}

async fn metrics(server: &Server) -> String {
    let answer = server.get("/metrics").await;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.is(200).header("content-type"), media_type);
    answer.text().to_owned()
}

/// The metrics once this series has a value of which that holds.
async fn once(server: &Server, series: &str, holds: impl Fn(f64) -> bool) -> String {
    for _ in 0..3000 {
        let text = metrics(server).await;
        if value(&text, series).is_some_and(&holds) {
            return text;
        }
    }
    panic!("{series} does not come to it:\n{}", metrics(server).await)
}

/// Waits until so many requests have no answer yet, besides the one for the metrics.
pub(crate) async fn in_progress(server: &Server, count: u32) {
    let wanted = f64::from(count + 1);
    let holds = |value: f64| (value - wanted).abs() < 0.5;
    once(server, "blackboard_http_requests_in_progress", holds).await;
}

#[tokio::test]
async fn requests_are_counted_by_method_route_and_status() {
    let server = Server::start();
    let board = server.board("s");
    for _ in 0..3 {
        board.post("requests", r#"{"a":1}"#).await.is(201);
    }
    board.get("requests/99").await.problem(404, "entry-not-found");
    server.get("/no/such/route").await.problem(404, "route-not-found");
    let text = metrics(&server).await;
    let of = |method: &str, route: &str| format!("method=\"{method}\",route=\"{route}\"");
    let posts = of("POST", "/v1/sessions/{session}/{log}");
    let total = |labels: &str, status| {
        value(&text, &format!("blackboard_http_requests_total{{{labels},status=\"{status}\"}}"))
    };
    assert_eq!(total(&posts, 201), Some(3.0), "{text}");
    assert_eq!(total(&of("GET", "/v1/sessions/{session}/{log}/{seq}"), 404), Some(1.0), "{text}");
    assert_eq!(total(&of("GET", "none"), 404), Some(1.0), "{text}");
    let times = "blackboard_http_request_duration_seconds";
    assert_eq!(value(&text, &format!("{times}_count{{{posts}}}")), Some(3.0), "{text}");
    assert_eq!(value(&text, &format!("{times}_bucket{{le=\"+Inf\",{posts}}}")), Some(3.0));
    for (code, count) in [("entry-not-found", 1.0), ("route-not-found", 1.0)] {
        let series = format!("blackboard_http_refusals_total{{code=\"{code}\"}}");
        assert_eq!(value(&text, &series), Some(count), "{text}");
    }
    // Itself.
    assert_eq!(value(&text, "blackboard_http_requests_in_progress"), Some(1.0), "{text}");
}

#[tokio::test]
async fn what_the_store_and_the_writer_do_is_counted_and_timed() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"{"a":1}"#).await.is(201);
    let png = include_bytes!("../corpus/images/rgb.png");
    ask(board.typed(Method::POST, "screenshots", "image/png", png.to_vec())).await.is(201);
    let text = metrics(&server).await;
    for series in [
        "blackboard_commit_batch_writes_count",
        "blackboard_commit_batch_duration_seconds_count",
        "blackboard_store_commit_duration_seconds_count",
        "blackboard_blob_sync_duration_seconds_count",
        "blackboard_boards{place=\"hot\"}",
        "blackboard_resident_bytes",
        #[cfg(target_os = "linux")]
        "blackboard_process_resident_bytes",
        "blackboard_store_file_bytes{file=\"database\"}",
        "blackboard_store_file_bytes{file=\"log\"}",
        "blackboard_store_room_bytes",
        "blackboard_http_connections_open",
        "blackboard_start_time_seconds",
    ] {
        assert!(value(&text, series).is_some_and(|value| value > 0.0), "{series}:\n{text}");
    }
    for (series, is) in [
        ("blackboard_sessions", 1.0),
        ("blackboard_sessions_damaged", 0.0),
        ("blackboard_boards{place=\"cold\"}", 0.0),
        ("blackboard_image_bytes", f64::from(u32::try_from(png.len()).unwrap())),
        ("blackboard_store_state{state=\"ready\"}", 1.0),
        ("blackboard_store_state{state=\"full\"}", 0.0),
        ("blackboard_store_state{state=\"poisoned\"}", 0.0),
        ("blackboard_writer_queue_writes", 0.0),
        ("blackboard_writer_queue_bytes", 0.0),
        ("blackboard_watchers", 0.0),
        ("blackboard_clock_held", 0.0),
        ("blackboard_thread_up{thread=\"writer\"}", 1.0),
        ("blackboard_thread_up{thread=\"retention\"}", 1.0),
        ("blackboard_memory_budget_bytes", f64::from(1 << 30)),
        (concat!("blackboard_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
    ] {
        assert_eq!(value(&text, series), Some(is), "{series}:\n{text}");
    }
}

#[tokio::test]
async fn past_boards_and_recent_commits_in_memory_are_counted() {
    let server = Server::start();
    let board = server.made("s").await;
    let stream = Stream::open(board.to(Method::GET, "events")).await;
    for series in ["blackboard_past_boards_bytes", "blackboard_recent_commits_bytes"] {
        let text = metrics(&server).await;
        assert_eq!(value(&text, series), Some(0.0), "{text}");
    }
    board.post("requests", r#"{"a":1}"#).await.is(201);
    board.post("requests", r#"{"a":2}"#).await.is(201);
    let before = value(&metrics(&server).await, "blackboard_resident_bytes").unwrap();
    board.get("requests?at=2").await.is(200);
    let text = metrics(&server).await;
    let past = value(&text, "blackboard_past_boards_bytes").unwrap();
    assert!(past > 0.0, "{text}");
    assert!(value(&text, "blackboard_resident_bytes").unwrap() >= before + past, "{text}");
    assert!(value(&text, "blackboard_recent_commits_bytes").unwrap() > 0.0, "{text}");
    drop(stream);
}

#[tokio::test]
async fn a_stream_and_a_wait_are_counted_while_they_last() {
    let server = Server::start();
    let board = server.made("s").await;
    let stream = Stream::open(board.to(Method::GET, "events")).await;
    let text = once(&server, "blackboard_http_streams_open", |open| open == 1.0).await;
    assert_eq!(value(&text, "blackboard_watchers"), Some(1.0), "{text}");
    let tag = board.get("requests").await.etag();
    let poll = board.to(Method::GET, "requests?wait=60s").header("if-none-match", tag);
    let polling = tokio::spawn(poll.send());
    once(&server, "blackboard_watchers", |watchers| watchers == 2.0).await;
    drop(stream);
    // A client that is gone is found so when something is sent to it.
    for _ in 0..1000 {
        board.post("requests", r#"{"a":1}"#).await.is(201);
        let text = metrics(&server).await;
        let left = ["blackboard_watchers", "blackboard_http_streams_open"];
        if left.iter().all(|series| value(&text, series) == Some(0.0)) {
            polling.await.unwrap().unwrap();
            return;
        }
    }
    panic!("who is gone is counted still:\n{}", metrics(&server).await)
}

#[tokio::test]
async fn every_metric_has_its_help_its_type_and_its_prefix() {
    let server = Server::start();
    server.board("s").post("requests", r#"{"a":1}"#).await.is(201);
    let text = metrics(&server).await;
    let text = text.strip_suffix("# EOF\n").expect("an end");
    let mut told = BTreeSet::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (of, words) = help.split_once(' ').unwrap();
            assert!(told.insert(of) && words.ends_with('.') && !words.ends_with(".."), "{line}");
            name = of;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (of, kind) = kind.split_once(' ').unwrap();
            let kinds = ["counter", "gauge", "histogram", "info"];
            assert!(of == name && kinds.contains(&kind) && !of.ends_with("_total"), "{line}");
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (of, unit) = unit.split_once(' ').unwrap();
            assert!(of == name && of.ends_with(&format!("_{unit}")), "{line}");
        } else {
            assert!(line.starts_with(name) && name.starts_with("blackboard_"), "{line}");
            value(line, line.rsplit_once(' ').unwrap().0);
        }
    }
}

#[tokio::test]
async fn nothing_that_a_client_chose_is_in_a_metric() {
    let server = Server::start();
    let board = server.board("secret-session");
    ask(board.by("secret-agent", Method::POST, "requests", r#"{"secret":1}"#)).await.is(201);
    board.get("state/secret-key?secret-parameter=1").await.refused();
    server.get("/secret-route").await.is(404);
    ask(server.to(Method::from_bytes(b"SECRET").unwrap(), "/secret-route")).await.refused();
    let text = metrics(&server).await;
    assert!(!text.to_lowercase().contains("secret"), "{text}");
    assert!(text.contains("method=\"other\",route=\"none\""), "{text}");
}

#[tokio::test]
async fn a_door_of_its_own_serves_metrics_and_health_alone() {
    let mut server = Server::start_with(&["--metrics-listen", "127.0.0.1:0"]);
    server.board("s").post("requests", r#"{"a":1}"#).await.is(201);
    let said = server.said("serving metrics");
    let line = said.lines().find(|line| line.contains("serving metrics")).unwrap();
    let url = &line[line.find("http://").unwrap()..];
    let address = &url[..url.find("/metrics").unwrap()];
    let http = client();
    let get = |path: &str| ask(http.get(format!("{address}{path}")));
    let text = get("/metrics").await;
    assert!(text.is(200).text().contains("\nblackboard_sessions 1\n"), "{text}");
    for path in ["/healthz", "/readyz"] {
        get(path).await.is(200);
    }
    for path in ["/v1/sessions", "/v1/sessions/s/requests", "/openapi.json", "/docs", "/"] {
        get(path).await.problem(404, "route-not-found");
    }
    ask(http.get(format!("{address}/metrics")).header("host", "elsewhere.example"))
        .await
        .problem(421, "unknown-host");
    // The main door has it still.
    metrics(&server).await;
    assert!(server.stop().success());
}

/// The most lines of a server that has done little.
const IDLE_LINES_MAX: usize = 300;

#[tokio::test]
async fn a_server_that_did_little_has_few_lines() {
    let server = Server::start();
    let text = metrics(&server).await;
    assert!(text.lines().count() < IDLE_LINES_MAX, "{text}");
    for never in ["blob_sync", "commit_batch", "http_refusals", "thread_failures"] {
        assert!(!text.contains(&format!("blackboard_{never}")), "{never} in\n{text}");
    }
    let board = server.board("s");
    board.post("requests", r#"{"a":1}"#).await.is(201);
    board.get("requests").await.is(200);
    board.get("prompt").await.is(200);
    board.get("requests/99").await.is(404);
    server.get("/v1/sessions").await.is(200);
    let text = metrics(&server).await;
    assert!(text.lines().count() < IDLE_LINES_MAX, "{text}");
    assert!(text.contains("blackboard_commit_batch_writes_count 1\n"), "{text}");
}

#[tokio::test]
async fn the_format_is_the_one_that_accept_prefers() {
    let server = Server::start();
    server.get("/healthz").await.is(200);
    let newer = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let older = "text/plain; version=0.0.4; charset=utf-8";
    // As Prometheus 2 and 3 send it, and one whose scrape has the older protocol only.
    let two = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let three = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, media_type) in [
        (two, newer),
        (three, newer),
        ("*/*", newer),
        ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", older),
        ("text/plain", older),
        ("text/html,text/*;q=0.9,*/*;q=0.8", older),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.3", older),
        ("text/plain;q=0", newer),
    ] {
        let answer = ask(server.to(Method::GET, "/metrics").header("accept", accept)).await;
        assert_eq!(answer.is(200).header("content-type"), media_type, "{accept}");
        let (text, is_newer) = (answer.text(), media_type == newer);
        assert_eq!(text.ends_with("# EOF\n"), is_newer, "{text}");
        assert_eq!(text.contains("# UNIT"), is_newer, "{text}");
        let counter = if is_newer { "" } else { "_total" };
        let described = format!("# TYPE blackboard_http_requests{counter} counter\n");
        assert!(text.contains(&described), "{text}");
        assert_eq!(text.contains("# TYPE blackboard_build_info gauge\n"), !is_newer, "{text}");
        assert!(text.contains("\nblackboard_http_requests_total{"), "{text}");
        assert!(text.contains("# TYPE blackboard_http_request_duration_seconds histogram\n"));
    }
}
