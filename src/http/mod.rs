//! The HTTP door: what stands between a socket and the service.
//!
//! [`serve`] keeps the connections, [`edge()`] treats every request and answer alike, and a refusal of
//! any layer leaves as a [`Problem`]. A handler takes what it needs from the request, makes one call,
//! and shapes the answer.

mod agents;
mod answer;
mod archive;
mod audit;
mod audit_walk;
mod blackboard;
mod body;
#[cfg(test)]
mod bounded_tests;
mod changes;
mod checkpoints;
mod claims;
mod client_stream;
mod diff;
mod difference;
mod docs;
mod edge;
mod ending;
mod entries;
mod error;
mod etag;
mod event_stream;
mod events;
mod form;
mod guard;
mod head_timer;
mod health;
mod idle;
mod idle_queues;
mod image_address;
mod inline;
mod intake;
mod keyed;
mod lists;
mod logs;
mod memory;
mod metrics;
mod notices;
mod offload;
mod on;
mod page;
mod page_wait;
mod pages;
mod params;
mod past;
mod path;
mod patience;
mod problem;
mod profiles;
mod prompt;
mod public_url;
mod questions;
mod range;
mod read;
mod repeat;
mod routes;
mod screenshots;
mod segments;
mod server;
mod session_patch;
mod sessions;
mod settings;
mod shaped;
mod sight;
mod state;
mod state_text;
mod stream;
mod transaction;
mod transactions;
mod turns;
mod until;
mod view;
mod wait;
mod write;

pub use edge::{
    ANSWERED, AllowedHosts, CorsOrigins, InvalidHost, InvalidOrigin, RequestId, edge, is_corrupt,
    is_late,
};
pub use event_stream::Streams;
pub use metrics::observation;
pub use problem::{Fault, Problem, ProblemBody};
pub use public_url::{InvalidPublicUrl, PUBLIC_URL_BYTES_MAX, PublicUrl};
use routes::no_route;
pub use routes::{openapi_yaml, router};
pub use server::{ConnectionLimits, serve};
