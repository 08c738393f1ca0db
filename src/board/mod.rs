//! What a blackboard is: its values and its rules.
//!
//! Nothing here knows a clock, a file, a network, an async runtime or HTTP.

mod code;
mod frame;
mod ids;
pub mod json;
mod names;
mod time;

pub use code::Code;
pub use frame::{COMMIT_BYTES_MAX, Frame, FrameError};
pub use ids::{Digest, Epoch, Nonce, Revision, Seq, SessionId};
pub use names::{AgentName, InvalidName, NAME_BYTES_MAX, SessionName};
pub use time::Timestamp;
