//! A blackboard that agents on many devices share over HTTP: durable, ordered, and readable as a prompt.
#![doc = include_str!("ARCHITECTURE.md")]

pub mod app;
pub mod commands;
pub mod config;
pub mod descriptors;
mod doors;
mod systemd;
pub mod telemetry;

pub use blackboard_api as api;
pub use blackboard_auth as auth;
pub use blackboard_board as board;
pub use blackboard_cli as cli;
pub use blackboard_clock as clock;
pub use blackboard_control as control;
pub use blackboard_error_chain as error_chain;
pub use blackboard_fairness as fairness;
pub use blackboard_http as http;
#[cfg(feature = "mcp")]
pub use blackboard_mcp as mcp;
pub use blackboard_metrics as metrics;
use blackboard_owner_files as owner_files;
pub use blackboard_printable as printable;
pub use blackboard_prompt as prompt;
pub use blackboard_service as service;
pub use blackboard_store as store;
#[cfg(feature = "page")]
pub use blackboard_ui as ui;
