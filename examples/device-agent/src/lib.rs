//! Agents of three layers on one blackboard; this file is the map.
//!
//! From the top down: [`registry`] and [`agents`] list the agents; [`state`] decides when to act, [`strategy`] what to
//! do, [`command`] how; [`device`] does it with tools that speak [`mcp`]. [`model`] makes decisions, and all share the
//! [`board`]. Failures are a [`board::Error`]; a tool's failure is a result.
#![expect(missing_docs, reason = "a field's name says what it is; comments are for rules")]
#![expect(clippy::indexing_slicing, reason = "a member that a JSON value does not have is null")]

pub mod agents;
pub mod board;
pub mod command;
pub mod device;
pub mod mcp;
pub mod model;
pub mod registry;
pub mod state;
pub mod strategy;

/// The guide's page, with its snippet of Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/agents.md")]
struct Guide;
