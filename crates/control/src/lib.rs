//! The control door: commands reach the running server by a socket in its data directory.
//!
//! ```text
//! {"export":{"session":"demo"}}       one request a connection: a line of JSON, and for an import the archive
//! {"format":…}, {"commit":…}, …       the content, if the request returns any
//! {"done":{"revision":17}}            or {"failed":{"code":"session-not-found","detail":"…"}}
//! ```
//! An answer without such a last line is incomplete. Access to the socket grants every right, so its mode is 0600.

mod answer;
mod archives;
mod backups;
mod client;
mod connection;
mod request;
mod server;
mod socket;
mod tokens;

pub use backups::{BackedUp, Checked, Fault, Finding, Step};
pub use client::{AskError, Asking, Line};
pub use connection::converse;
pub use request::{CarriedToken, Request, Sought};
pub use server::serve;
pub use socket::{SOCKET, Socket, connect};
pub use tokens::{DisabledTokens, ImportedToken, MadeToken, TokenLine};
