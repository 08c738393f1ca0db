//! A failed command.

use std::error::Error;

use blackboard_error_chain::Chain;

/// A failed command; decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Invalid usage: exit code 2, as for an unknown flag.
    #[error(transparent)]
    Usage(Box<dyn Error + Send + Sync>),
    /// The command failed: exit code 1.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
    /// A server rejected the request or was not reached: an exit code for each class.
    #[error("{}", Chain(&**error))]
    Refused {
        /// The exit code of the class.
        code: u8,
        /// The rejection.
        error: Box<dyn Error + Send + Sync>,
    },
}

impl Failure {
    /// Returns the exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused { code, .. } => *code,
        }
    }

    /// Returns the failure of an invalid usage.
    #[must_use]
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Usage(error.into())
    }

    /// Returns the failure of a command.
    #[must_use]
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}
