//! Vectors of the original Python classes, played against the server.
//!
//! `vectors_shared.json` was made by running the original. Each difference from it is listed here by name, and a listed
//! one must occur.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::harness::Server;
use crate::vector_play::{Vector, holds, play};

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

/// A vector that ends otherwise here, the section that shows it, and what it holds instead.
struct Difference {
    name: &'static str,
    reason: &'static str,
    section: &'static str,
    items: &'static str,
}

const fn differs(
    name: &'static str,
    reason: &'static str,
    section: &'static str,
    items: &'static str,
) -> Difference {
    Difference { name, reason, section, items }
}

const SURROGATE: &str = "a lone surrogate is refused";
const OVERFLOW: &str =
    "a number beyond a double is refused: Python writes Infinity, which is no JSON";
const NO_JSON: &str = "NaN and Infinity are no JSON";
const SKIPPED: &str = "a line that cannot be taken is passed over; the others are loaded";
const WHOLE: &str = "what is malformed changes nothing; the original stops half-way";
const NO_STEP: &str = "an item without a step does not match; the original raises";
const STEP_NUMBER: &str = "a step to look for is a JSON number";

const THREE: &str = r#"[{"step":1,"a":"x"},{"step":2,"a":"y","b":null},{"step":3,"b":1e5}]"#;

const DIFFERENCES: &[Difference] = &[
    differs("str/lone_high", SURROGATE, "trajectories", "[]"),
    differs("str/lone_low", SURROGATE, "trajectories", "[]"),
    differs("str/swapped_pair", SURROGATE, "trajectories", "[]"),
    differs("num/overflow/-1e400", OVERFLOW, "trajectories", "[]"),
    differs("num/overflow/1.8e308", OVERFLOW, "trajectories", "[]"),
    differs("num/nonstd/-Infinity", NO_JSON, "trajectories", "[]"),
    differs("load/nan_line", SKIPPED, "questions", r#"[{"b":1}]"#),
    differs("load/huge_int_line", SKIPPED, "questions", r#"[{"ok":1},{"b":1}]"#),
    differs("from_dict/null_section", WHOLE, "questions", r#"[{"text":"old"}]"#),
    differs("from_dict/section_number", WHOLE, "questions", r#"[{"text":"old"}]"#),
    differs("mem/from_list_bad_item", WHOLE, "memory", r#"[{"old":1}]"#),
    differs("mem/from_list_null", WHOLE, "memory", r#"[{"old":1}]"#),
    differs(
        "mem/delete_missing_step_raises",
        NO_STEP,
        "memory",
        r#"[{"step":1,"a":"x"},{"step":3,"b":1e5},{"no":1}]"#,
    ),
    differs("mem/delete_missing_step_only_item", NO_STEP, "memory", r#"[{"no":1}]"#),
    differs(
        "mem/filter_steps_missing_raises",
        NO_STEP,
        "memory",
        r#"[{"step":1,"a":"x"},{"step":2,"a":"y","b":null},{"step":3,"b":1e5},{"no":1}]"#,
    ),
    differs("mem/board_delete_string_item_raises", NO_STEP, "requests", r#"[{"text":"text"}]"#),
    differs("mem/filter_steps_float_bool", STEP_NUMBER, "memory", THREE),
    differs("mem/delete_true_equals_1", STEP_NUMBER, "memory", THREE),
    differs(
        "mem/delete_struct_step",
        STEP_NUMBER,
        "memory",
        r#"[{"step":[1,{"a":1.0}]},{"step":[1]}]"#,
    ),
];

/// Vectors with an op that ends in the Python client, so that nothing of it is ever sent.
const CLIENT_SIDE: &[(&str, &str)] = &[
    ("img/metadata_none", "None has no get()"),
    ("img/metadata_none_missing_file", "None has no get()"),
    ("img/metadata_string", "a str has no get()"),
    ("img/directory", "a directory cannot be read"),
    ("load/missing_file", "there is no file to send"),
    ("load/empty_path", "there is no file to send"),
    ("mem/filter_keys_null", "None is no list of keys"),
];

#[tokio::test]
async fn the_originals_vectors_agree_but_for_the_listed_differences() {
    let text = include_str!("../vectors_shared.json");
    let vectors: Vectors = serde_json::from_str(text).expect("vectors");
    let listed: BTreeMap<&str, &Difference> =
        DIFFERENCES.iter().map(|difference| (difference.name, difference)).collect();
    let server = Server::start();
    let (mut wrong, mut unlisted, mut client_side) = (Vec::new(), listed.clone(), BTreeSet::new());
    for vector in &vectors.vectors {
        let board = server.made(&vector.name.replace('/', " ")).await;
        let played = play(&board, vector).await;
        let name = vector.name.as_str();
        if played.client_side {
            client_side.insert(name);
        }
        match (unlisted.remove(name), played.mismatches.is_empty()) {
            (None, true) => {}
            (None, false) => {
                let tags = vector.tags.join(", ");
                wrong.push(format!("{name} ({tags})\n  {}", played.mismatches.join("\n  ")));
            }
            (Some(_), true) => wrong.push(format!("{name}: the listed difference does not occur")),
            (Some(listed), false) => {
                if !holds(&board, listed.section, listed.items).await {
                    let (section, items, reason) = (listed.section, listed.items, listed.reason);
                    wrong.push(format!("{name}: {section} is not {items}, though {reason}"));
                }
            }
        }
    }
    wrong.extend(
        unlisted.keys().map(|name| format!("{name} is listed and no vector has that name")),
    );
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
    let expected: BTreeSet<&str> = CLIENT_SIDE.iter().map(|(name, _)| *name).collect();
    assert_eq!(client_side, expected);
}
