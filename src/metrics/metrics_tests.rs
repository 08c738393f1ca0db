//! What is counted is written as Prometheus reads it, and no label grows by what clients send.

use std::time::Duration;

use super::*;

static TIMES: Histogram = Histogram::seconds("t_seconds", "Times.");
static THINGS: Gauge = Gauge::new("things", "Things.");

fn written(write: impl FnOnce(&mut Text)) -> String {
    let mut text = Text::default();
    write(&mut text);
    text.into_string()
}

#[test]
fn a_histogram_counts_what_is_at_most_each_bound() {
    for ms in [1, 1, 2, 300, 60_000] {
        TIMES.observe(Duration::from_millis(ms));
    }
    let text = written(|text| TIMES.write(text));
    assert!(text.starts_with("# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"), "{text}");
    for line in [
        "t_seconds_bucket{le=\"0.0001\"} 0",
        "t_seconds_bucket{le=\"0.0005\"} 0",
        "t_seconds_bucket{le=\"0.001\"} 2",
        "t_seconds_bucket{le=\"0.0025\"} 3",
        "t_seconds_bucket{le=\"0.5\"} 4",
        "t_seconds_bucket{le=\"10\"} 4",
        "t_seconds_bucket{le=\"+Inf\"} 5",
        "t_seconds_sum 60.304",
        "t_seconds_count 5",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}

#[test]
fn what_is_counted_is_counted_until_it_goes() {
    let (one, two) = (THINGS.count(), THINGS.count());
    assert!(written(|text| THINGS.write(text)).ends_with("\nthings 2\n"));
    drop(one);
    assert!(written(|text| THINGS.write(text)).ends_with("\nthings 1\n"));
    drop(two);
    assert!(written(|text| THINGS.write(text)).ends_with("\nthings 0\n"));
}

#[test]
fn requests_are_counted_by_method_route_and_status() {
    let requests = Requests::new();
    for status in [200, 200, 404] {
        requests.note("GET", "/v1/sessions/{session}", status, Duration::from_millis(3));
    }
    let text = written(|text| requests.write(text));
    let labels = "method=\"GET\",route=\"/v1/sessions/{session}\"";
    for line in [
        format!("blackboard_http_requests_total{{{labels},status=\"200\"}} 2"),
        format!("blackboard_http_requests_total{{{labels},status=\"404\"}} 1"),
        format!("blackboard_http_request_duration_seconds_count{{{labels}}} 3"),
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}

#[test]
fn what_a_client_makes_up_adds_no_series() {
    let requests = Requests::new();
    for n in 0..1000 {
        requests.note(&format!("VERB{n}"), "none", 600 + n, Duration::ZERO);
    }
    let text = written(|text| requests.write(text));
    let counts = text.lines().filter(|line| line.starts_with("blackboard_http_requests_total{"));
    let other =
        "blackboard_http_requests_total{method=\"other\",route=\"none\",status=\"other\"} 1000";
    assert_eq!(counts.collect::<Vec<_>>(), [other]);
}
