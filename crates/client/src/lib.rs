//! HTTP client of the commands that talk to a server: its URL, the token, TLS, and answers within bounds.
//!
//! Nothing here knows boards, and no text that it makes contains the token.

mod answer;
mod base_url;
mod body;
mod connection;
mod connector;
mod error;
mod problem;
mod sse;
mod tls;
mod token;

pub use answer::Answer;
pub use base_url::{BASE_URL_BYTES_MAX, BaseUrl, InvalidBaseUrl};
pub use connection::{Client, Limits};
pub use connector::ConnectError;
pub use error::Error;
pub use problem::{PROBLEM_BYTES_MAX, Problem};
pub use sse::{EVENT_BYTES_MAX, Event, Events};
pub use token::{InvalidToken, TOKEN_BYTES_MAX, Token, TokenError};
