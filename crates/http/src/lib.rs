//! The HTTP door, from socket to service.
//!
//! [`serve`] runs the connections, [`edge()`] wraps all requests and answers, and refusals of every layer become a
//! [`Problem`]. A handler extracts its arguments from the request, makes one call and shapes the answer.

mod access;
mod agents;
mod attention;
mod blobs;
mod connection;
mod doors;
mod edge;
mod events;
mod front;
mod history;
mod inbox;
mod logs;
mod openapi;
mod ops;
mod prompt;
mod questions;
mod read;
mod request;
mod requests;
mod response;
mod routes;
mod screenshots;
mod search;
mod sessions;
mod state;
mod transactions;
mod write;

pub use access::Credentials;
pub use connection::{ConnectionLimits, serve};
pub use doors::{Door, DoorAnswer, DoorRequest, Page};
pub use edge::{
    ANSWERED, AllowedHosts, CorsOrigins, EdgeOptions, InvalidHost, InvalidOrigin, InvalidProxies,
    TrustedProxies, is_corrupt, is_late,
};
pub use events::sse::Streams;
pub use front::{Front, edge};
pub use ops::metrics::observation;
pub use request::public_url::{InvalidPublicUrl, PUBLIC_URL_BYTES_MAX, PublicUrl};
pub use response::problem::{Problem, ProblemBody};
pub use response::request_id::RequestId;
pub use routes::{Routes, openapi_yaml, router};

#[cfg(test)]
mod tests;
