//! Blocking threads for work that grows with data.

use super::refusal::Refusal;
use super::yielding::TURN_BYTES_MAX;
use crate::board::Code;
use crate::fairness::compute;

/// Does work where it holds up nobody else.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let fault = |_| Refusal::new(Code::Internal, "the server failed; its log has the cause");
    compute(work).await.map_err(fault)?
}

/// Does work that grows with a body's size: at once where it is small, else where it may block.
pub(crate) async fn work<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if bytes <= TURN_BYTES_MAX {
        return work();
    }
    offload(work).await
}
