//! The HTTP door: what stands between a socket and the service.
//!
//! [`serve`] keeps the connections.

mod server;

pub use server::{ConnectionLimits, serve};
