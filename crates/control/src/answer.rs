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
use blackboard_auth::AuthError;
use blackboard_board::{Code, SessionName};
use blackboard_error_chain::Chain;
use blackboard_service::{ServiceError, Unreachable};

/// The read and write timeout of a client.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The last line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    /// The request succeeded.
    Done(Box<RawValue>),
    /// The request failed.
    Failed {
        /// The stable code.
        code: String,
        /// The reason, for people.
        detail: String,
    },
}

/// A refused or failed request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no complete request arrived in time; a request is one line of at most {max} bytes")]
    NoRequest { max: u64 },
    #[error("this version does not know the request {0}")]
    Unknown(serde_json::Error),
    #[error("session '{0}' does not exist")]
    NoSession(SessionName),
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("the connection failed")]
    Broken(#[from] io::Error),
    #[error("the response cannot be written as JSON")]
    Unwritten(#[source] serde_json::Error),
}

impl Refusal {
    fn code(&self) -> Code {
        match self {
            Self::NoRequest { .. } => Code::RequestTimeout,
            Self::Unknown(_) | Self::Relative(_) => Code::InvalidField,
            Self::NoSession(_) => Code::SessionNotFound,
            Self::Unreachable(why) => why.code(),
            Self::Service(error) => error.code(),
            Self::Auth(error) => error.code(),
            Self::Broken(_) | Self::Unwritten(_) => Code::Internal,
        }
    }
}

/// The outcome of a request.
pub(super) type Done = Result<Box<RawValue>, Refusal>;

/// The content of a successful last line.
pub(super) fn done(told: &impl Serialize) -> Done {
    to_raw_value(told).map_err(Refusal::Unwritten)
}

/// The sink for the lines of an answer.
pub(super) struct Answer {
    output: OwnedWriteHalf,
}

impl Answer {
    pub(super) fn to(output: OwnedWriteHalf) -> Self {
        Self { output }
    }

    /// Writes whole lines.
    pub(super) async fn lines(&mut self, lines: &str) -> Result<(), Refusal> {
        let written = timeout(SILENCE_MAX, self.output.write_all(lines.as_bytes())).await;
        Ok(written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??)
    }

    /// Writes the last line; the client may have disconnected.
    pub(super) async fn end(mut self, request: Option<&Request>, done: Done) {
        let kind = request.map(tracing::field::display);
        let last = match done {
            Ok(told) => {
                tracing::info!(request = kind, "request done");
                Last::Done(told)
            }
            Err(refusal) => {
                let detail = Chain(&refusal).to_string();
                tracing::warn!(request = kind, %detail, "request refused");
                Last::Failed { code: refusal.code().as_str().to_owned(), detail }
            }
        };
        let Ok(mut line) = serde_json::to_string(&last) else { return };
        line.push('\n');
        if let Err(refusal) = self.lines(&line).await {
            tracing::debug!(error = %Chain(&refusal), "the client disconnected before the end of the answer");
        }
    }
}
