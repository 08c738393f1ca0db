//! The contract, held by asking a real server: each file is a noun of the contract or a promise about it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test stops where it fails and says why"
)]

mod answer;
mod harness;
mod images;
mod python_value;
mod raw;

mod bad_input;
mod bad_paths;
mod concurrency;
mod conditions;
mod connections;
mod crash;
mod crash_load;
mod edge;
mod entries;
mod filters;
mod forms;
mod logs;
mod ndjson;
mod openapi;
mod oversize;
mod packed;
mod paging;
mod prompt;
mod readme;
mod refusals;
mod screenshots;
mod sessions;
mod settings;
mod soundness;
mod vector_play;
mod vectors;
