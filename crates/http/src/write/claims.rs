//! Claims of the next request.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::response::Answer;
use crate::response::problem::Problem;
use blackboard_api::tag::{Resource, Tag};
use blackboard_board::{self as board, LogName};
use blackboard_service::{NextClaim, Reply, Wait};

impl Writing {
    /// Claims the next request, and waits for one if there is a `wait`. Without one the answer is 204.
    pub(crate) async fn claim_next(
        mut self: Box<Self>,
        claim: NextClaim,
        wait: Option<Wait>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        self.describes = true;
        let resource = Resource::Log(LogName::Requests);
        let (call, shape) = (self.call(&resource)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = call.claim_next(&claim, wait, keep).await;
        if let Ok(Reply::Now(receipt)) = &reply
            && receipt.answer == board::Answer::Next(None)
        {
            let (board, epoch) = (&receipt.board, self.epoch());
            let tag = Tag::new(epoch, board.log_version(&LogName::Requests), &resource);
            let none = Answer::of(board.revision()).tag(&tag).status(StatusCode::NO_CONTENT);
            return Ok(none.without_body());
        }
        self.answer(&resource, reply, &*shape).await
    }
}
