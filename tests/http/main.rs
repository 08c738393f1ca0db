//! The contract, held by asking a real server: each file is a noun of the contract or a promise about it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test stops where it fails and says why"
)]

mod agent_lists;
mod agent_states;
mod agents;
mod answer;
mod archive;
mod audit;
mod backups;
mod bad_input;
mod bad_paths;
mod bombs;
mod canaries;
mod checkpoints;
mod claims;
mod clock;
mod cold;
mod collection;
mod concurrency;
mod conditions;
mod connections;
mod control;
mod crash;
mod crash_keys;
mod crash_load;
mod cut_events;
mod diff;
mod documented_calls;
mod done;
mod edge;
mod entries;
mod events;
mod expiry;
mod exports;
mod fences;
mod filters;
mod follower;
mod forms;
mod harness;
mod hostile;
mod idempotency;
mod idle_streams;
mod image_route;
mod images;
mod linear;
mod locked;
mod logs;
mod matrix;
mod metrics;
mod ndjson;
mod openapi;
mod oversize;
mod packed;
mod paging;
mod past;
mod past_reads;
mod polling;
mod printed_config;
mod privacy;
mod profiles;
mod prompt;
mod prompt_budget;
mod prompt_formats;
mod prompt_length;
mod python_value;
mod questions;
mod quotas;
mod races;
mod raw;
mod readme;
mod refusals;
mod replays;
mod retention;
mod rights;
mod screenshots;
mod sessions;
mod settings;
mod shutdown;
mod signed;
mod smuggling;
mod soundness;
mod sse;
mod stalled;
mod state;
mod state_patch;
mod state_paths;
mod state_tags;
mod state_views;
mod thumbnails;
mod tokens;
mod transaction_conditions;
mod transactions;
mod until;
mod upgrades;
mod vector_play;
mod vectors;
mod waiting;
mod watch_load;
mod watchers;
mod whole;
