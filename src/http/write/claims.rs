//! Claims of the next request.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::api::tag::{Resource, Tag};
use crate::board::{self, Command, LogName, Seq};
use crate::http::response::Answer;
use crate::http::response::problem::Problem;
use crate::service::{NextClaim, Reply, Wait};

impl Writing {
    /// Claims the next request, and waits for one if there is a `wait`. Without one the answer is 204.
    pub(in crate::http) async fn claim_next(
        mut self,
        claim: NextClaim,
        wait: Option<Wait>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let NextClaim { wanted, ttl } = claim.clone();
        self.caller().permits(&Command::ClaimNext { wanted, from: Seq(0), ttl })?;
        self.describes = true;
        let resource = Resource::Log(LogName::Requests);
        let (terms, shape) = (self.terms(&resource)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let given_up = wait.as_ref().map(|wait| wait.given_up.clone()).unwrap_or_default();
        let claiming = self.session.claim_next(&terms, &claim, wait, keep);
        let mut claiming = std::pin::pin!(claiming);
        let reply = tokio::select! {
            reply = &mut claiming => reply,
            // A worker without rights must get no request; a claim under way is finished.
            _ = self.caller().over(self.session.service().now()) => {
                given_up.cancel();
                claiming.await
            }
        };
        if let Ok(Reply::Now(receipt)) = &reply
            && receipt.answer == board::Answer::Next(None)
        {
            self.caller().still_may(self.session.service().now())?;
            let (board, epoch) = (&receipt.board, self.epoch());
            let tag = Tag::new(epoch, board.log_version(&LogName::Requests), &resource);
            let none = Answer::of(board.revision()).tag(&tag).status(StatusCode::NO_CONTENT);
            return Ok(none.without_body());
        }
        self.answer(&resource, reply, &*shape).await
    }
}
