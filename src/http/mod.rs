//! The HTTP door: what stands between a socket and the service.
//!
//! [`serve`] keeps the connections, [`edge()`] treats every request and answer alike, and a refusal of
//! any layer leaves as a [`Problem`].

mod edge;
mod problem;
mod server;

pub use edge::{AllowedHosts, InvalidHost, RequestId, edge, is_corrupt, is_late};
pub use problem::{Fault, Problem, ProblemBody};
pub use server::{ConnectionLimits, serve};
