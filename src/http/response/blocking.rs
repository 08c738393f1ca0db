//! Work that grows with data, on a thread that may block: the runtime's own threads serve everybody.

use super::problem::Problem;
use crate::board::Code;
use crate::fairness::compute;

/// Does work where it holds up nobody else.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let fault = |_| Problem::new(Code::Internal, "a fault inside the server");
    compute(work).await.map_err(fault)?
}
