//! A blackboard that agents on many devices share over HTTP: durable, ordered, and readable as a prompt.
#![doc = include_str!("ARCHITECTURE.md")]

#[cfg(unix)]
pub mod app;
pub mod commands;
#[cfg(unix)]
pub mod config;
#[cfg(unix)]
pub mod descriptors;
#[cfg(unix)]
mod doors;
#[cfg(unix)]
mod systemd;
#[cfg(unix)]
pub mod telemetry;

pub use blackboard_cli as cli;
pub use blackboard_error_chain as error_chain;

// The server's crates need Unix.
#[cfg(all(unix, feature = "mcp"))]
pub use blackboard_mcp as mcp;
#[cfg(unix)]
use blackboard_owner_files as owner_files;
#[cfg(all(unix, feature = "page"))]
pub use blackboard_ui as ui;
#[cfg(unix)]
pub use {
    blackboard_api as api, blackboard_auth as auth, blackboard_board as board,
    blackboard_clock as clock, blackboard_control as control, blackboard_fairness as fairness,
    blackboard_http as http, blackboard_metrics as metrics, blackboard_printable as printable,
    blackboard_prompt as prompt, blackboard_service as service, blackboard_store as store,
};
