//! The outcome of a call: an answer, a task, or a question to the host's user.

use futures_util::future::BoxFuture;
use rmcp::model::{CreateTaskResult, InputRequiredResult};

use super::answer::{Answer, Facts, Failure};

/// The outcome of a call.
pub(crate) enum Outcome {
    Answer(Answer),
    /// The call goes on as a task.
    Task(Box<CreateTaskResult>),
    /// The client must ask its user first.
    Input(Box<InputRequiredResult>),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<Facts> for Outcome {
    fn from(facts: Facts) -> Self {
        Self::Answer(facts.into())
    }
}

/// The future of a call.
pub(crate) type Running = BoxFuture<'static, Result<Outcome, Failure>>;
