//! Answers of the control socket: lines, then a last line that tells success or failure.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::OwnedWriteHalf;
use tokio::time::timeout;

use super::request::Request;
use crate::auth::AuthError;
use crate::board::{Code, SessionName};
use crate::error_chain::Chain;
use crate::service::ServiceError;

/// A client that takes nothing for so long is cut off, as is one that sends nothing.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The last line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    /// All of it was done.
    Done(Box<RawValue>),
    /// It was not.
    Failed {
        /// The stable word for it.
        code: String,
        /// What happened, for a person to read.
        detail: String,
    },
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no request of at most {max} bytes came in time")]
    NoRequest { max: u64 },
    #[error("this version knows no such request: {0}")]
    Unknown(serde_json::Error),
    #[error("there is no session '{0}'")]
    NoSession(SessionName),
    #[error("{} does not begin at the root", .0.display())]
    Relative(PathBuf),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
    #[error("the answer has no JSON form")]
    Unwritten(#[source] serde_json::Error),
}

impl Refusal {
    fn code(&self) -> Code {
        match self {
            Self::NoRequest { .. } => Code::RequestTimeout,
            Self::Unknown(_) | Self::Relative(_) => Code::InvalidField,
            Self::NoSession(_) => Code::SessionNotFound,
            Self::Service(error) => error.code(),
            Self::Auth(error) => error.code(),
            Self::Broken(_) | Self::Unwritten(_) => Code::Internal,
        }
    }
}

/// What a request came to.
pub(super) type Done = Result<Box<RawValue>, Refusal>;

/// What tells of something that was done.
pub(super) fn done(told: &impl Serialize) -> Done {
    to_raw_value(told).map_err(Refusal::Unwritten)
}

/// Where the lines go.
pub(super) struct Answer {
    output: OwnedWriteHalf,
}

impl Answer {
    pub(super) fn to(output: OwnedWriteHalf) -> Self {
        Self { output }
    }

    /// Whole lines.
    pub(super) async fn lines(&mut self, lines: &str) -> Result<(), Refusal> {
        let written = timeout(SILENCE_MAX, self.output.write_all(lines.as_bytes())).await;
        Ok(written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??)
    }

    /// The last line. Nobody may be there to read it.
    pub(super) async fn end(mut self, request: Option<&Request>, done: Done) {
        let kind = request.map(tracing::field::display);
        let last = match done {
            Ok(told) => {
                tracing::info!(request = kind, "carried out by the control socket");
                Last::Done(told)
            }
            Err(refusal) => {
                let detail = Chain(&refusal).to_string();
                tracing::warn!(request = kind, %detail, "refused by the control socket");
                Last::Failed { code: refusal.code().as_str().to_owned(), detail }
            }
        };
        let Ok(mut line) = serde_json::to_string(&last) else { return };
        line.push('\n');
        if let Err(refusal) = self.lines(&line).await {
            tracing::debug!(error = %Chain(&refusal), "who asked went away before the end");
        }
    }
}
