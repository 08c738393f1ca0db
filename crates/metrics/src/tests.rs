//! Tests of metrics: valid Prometheus text, and no label that grows with what clients send.

use std::time::Duration;

use prometheus_client::registry::Metric;

use super::*;

static THINGS: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// The lines of one metric.
fn lines(name: &str, metric: impl Metric) -> Vec<String> {
    let mut registry = Registry::default();
    registry.register(name, "Words", metric);
    let mut written = String::new();
    text::encode_registry(&mut written, &registry).unwrap();
    written.lines().map(str::to_owned).collect()
}

#[track_caller]
fn has(lines: &[String], line: &str) {
    assert!(lines.iter().any(|found| found == line), "no {line} in\n{lines:#?}");
}

#[test]
fn a_histogram_counts_what_is_at_most_each_bound() {
    let times = Times::default();
    for ms in [1, 1, 2, 500, 60_000] {
        times.observe(Duration::from_millis(ms));
    }
    let lines = lines("t", times.0.clone());
    assert_eq!(lines[..2], ["# HELP t Words.", "# TYPE t histogram"]);
    for line in [
        "t_bucket{le=\"0.001\"} 2",
        "t_bucket{le=\"0.005\"} 3",
        "t_bucket{le=\"0.5\"} 4",
        "t_bucket{le=\"2.5\"} 4",
        "t_bucket{le=\"+Inf\"} 5",
        "t_sum 60.504",
        "t_count 5",
    ] {
        has(&lines, line);
    }
}

#[test]
fn numbers_are_counted_up_to_the_largest_batch() {
    let numbers = Numbers::default();
    for number in [1, 2, 4, 1024, 1025] {
        numbers.observe(number);
    }
    let lines = lines("n", numbers.0.clone());
    for line in [
        "n_bucket{le=\"1.0\"} 1",
        "n_bucket{le=\"4.0\"} 3",
        "n_bucket{le=\"256.0\"} 3",
        "n_bucket{le=\"1024.0\"} 4",
        "n_bucket{le=\"+Inf\"} 5",
    ] {
        has(&lines, line);
    }
}

#[test]
fn a_histogram_of_nothing_has_no_lines() {
    assert!(lines("t", Times::default().0).is_empty());
    assert!(lines("n", Numbers::default().0).is_empty());
}

#[test]
fn what_is_counted_is_counted_until_it_goes() {
    let written = || lines("things", THINGS.0.clone()).pop().unwrap();
    let (one, two) = (THINGS.count(), THINGS.count());
    assert_eq!(written(), "things 2");
    drop(one);
    assert_eq!(written(), "things 1");
    drop(two);
    assert_eq!(written(), "things 0");
}

#[test]
fn requests_are_counted_by_method_route_and_status() {
    let requests = Requests::default();
    for status in [200, 200, 404] {
        requests.note("GET", "/v1/sessions/{session}", status, Duration::from_millis(3));
    }
    let labels = "method=\"GET\",route=\"/v1/sessions/{session}\"";
    let answers = lines("answers", requests.answers.clone());
    has(&answers, &format!("answers_total{{{labels},status=\"200\"}} 2"));
    has(&answers, &format!("answers_total{{{labels},status=\"404\"}} 1"));
    has(&lines("times", requests.times.clone()), &format!("times_count{{{labels}}} 3"));
}

#[test]
fn what_a_client_makes_up_adds_no_series() {
    let requests = Requests::default();
    for n in 0..1000 {
        requests.note(known_method(&format!("VERB{n}")), "none", 600 + n, Duration::ZERO);
    }
    let answers = lines("answers", requests.answers.clone());
    let other = "answers_total{method=\"other\",route=\"none\",status=\"other\"} 1000";
    assert_eq!(answers[2..], [other]);
}
