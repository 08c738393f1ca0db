//! Moves long computations to blocking threads.

use super::refusal::Refusal;
use super::yielding::TURN_BYTES_MAX;
use blackboard_board::Code;
use blackboard_fairness::compute;

/// Runs work on a blocking thread.
pub async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let fault = |_| Refusal::new(Code::Internal, "the server failed; its log has the cause");
    compute(work).await.map_err(fault)?
}

/// Runs work that grows with a body's size: in place if the body is small, else on a blocking thread.
pub async fn work<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if bytes <= TURN_BYTES_MAX {
        return work();
    }
    // Boxed, since most bodies are small.
    Box::pin(offload(work)).await
}
