//! Tests of the dashboard and the alerts: the server has each series and label in them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use blackboard_metrics::{
    BATCH_TIMES, BATCH_WRITES, BLOB_SYNC_TIMES, CHECKPOINT_TIMES, REFUSALS, REQUESTS, SYNC_TIMES,
    THREAD_FAILURES,
};
use blackboard_service::Status;
use blackboard_store::FileBytes;

const DASHBOARD: &str = include_str!("../../../../../docker/grafana/blackboard.json");
const DOCUMENTS: [&str; 3] = [
    include_str!("../../../../../docs/operations.md"),
    include_str!("../../../../../docs/cluster.md"),
    include_str!("../../../../../docs/guide/sessions.md"),
];
const RULES: &str = include_str!("../../../../../docker/prometheus/rules.yaml");

/// Labels that Prometheus adds itself.
const ADDED_LABELS: [&str; 2] = ["instance", "job"];

const STATUS: Status = Status {
    sessions: 0,
    damaged: 0,
    health: Health::Ready,
    threads: Vec::new(),
    is_search_rebuilding: false,
};

const STATS: Stats = Stats {
    status: STATUS,
    hot: 0,
    cold: 0,
    over_budget: 0,
    resident_bytes: 0,
    past_bytes: 0,
    recent_bytes: 0,
    budget_bytes: 0,
    image_bytes: 0,
    waiting_bytes: 0,
    uncompacted_bytes: 0,
    files: FileBytes { database: 0, log: 0 },
    room_bytes: Some(0),
    is_clock_held: false,
};

/// All series of a server in which everything has happened once, by name, with the text of their labels.
fn known_series() -> BTreeMap<String, String> {
    REQUESTS.note("GET", "/", 200, Duration::ZERO);
    Code::ALL.iter().for_each(|code| REFUSALS.add_one(code.as_str()));
    THREAD_FAILURES.add_one("writer");
    BATCH_WRITES.observe(1);
    for times in [&BATCH_TIMES, &SYNC_TIMES, &CHECKPOINT_TIMES, &BLOB_SYNC_TIMES] {
        times.observe(Duration::ZERO);
    }
    let status = Status { threads: vec![("writer", true)], ..STATUS };
    let mut known = BTreeMap::<_, String>::new();
    let text = text(&Stats { status, ..STATS }).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_at(line.find(['{', ' ']).unwrap());
        known.entry(name.to_owned()).or_default().push_str(labels);
    }
    known
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The series that a text names, each with the matchers behind it.
fn named_series(text: &str) -> BTreeSet<(&str, &str)> {
    let found = text.match_indices("blackboard_").map(|(at, _)| {
        let rest = &text[at..];
        let (name, rest) = rest.split_at(rest.find(|c| !is_part(c)).unwrap());
        (name, rest.strip_prefix('{').map_or("", |rest| rest.split('}').next().unwrap()))
    });
    found.collect()
}

/// The labels of matchers, each with the values that it may have: `code=~"a|b", file="log"`.
fn matched(matchers: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    matchers.split(',').filter(|matcher| !matcher.is_empty()).map(|matcher| {
        let (label, values) = matcher.split_once('=').unwrap();
        (label.trim().trim_end_matches('!'), values.trim_matches(['~', '"', '\\']).split('|'))
    })
}

fn check(text: &str) {
    let known = known_series();
    let named = named_series(text);
    assert!(named.len() > 5, "{named:?}");
    for (name, matchers) in named {
        let labels = known.get(name).unwrap_or_else(|| panic!("no series {name}"));
        for (label, mut values) in matched(matchers) {
            let is_known = ADDED_LABELS.contains(&label)
                || (labels.contains(&format!("{label}=\"")))
                    && values.all(|value| {
                        // Methods and statuses are those of the requests that came.
                        !["code", "file", "state"].contains(&label)
                            || labels.contains(&format!("{label}=\"{value}\""))
                    });
            assert!(is_known, "{name} has no {matchers}");
        }
    }
}

#[test]
fn the_alerts_name_series_that_the_server_has() {
    check(RULES);
}

#[test]
fn the_dashboard_names_series_that_the_server_has() {
    serde_json::from_str::<serde_json::Value>(DASHBOARD).unwrap();
    check(DASHBOARD);
}

#[test]
fn the_documents_name_series_that_the_server_has() {
    let (known, text) = (known_series(), DOCUMENTS.concat());
    let named = named_series(&text);
    assert!(named.len() > 5, "{named:?}");
    for (name, _) in named {
        // A histogram is named without the suffix of its series.
        let is_known = known.contains_key(name) || known.contains_key(&format!("{name}_bucket"));
        assert!(is_known, "no series {name}");
    }
}
