//! The commands that know a server by HTTP alone.

mod connection;
mod failure;
mod mcp;
mod output;
mod remote;
mod system;

pub use failure::Failure;
pub use mcp::Mcp;
pub use output::{note, put};
pub use remote::{Keeper, Remote, SECRET_VARIABLE, WORK_VARIABLES};
