//! Inboxes: the open questions, and the claimable requests, of all sessions.
use axum::response::Response;
use tokio::sync::watch;

use super::openapi;
use super::read::shared_scans::{ListText, Listed};
use super::read::{Early, Reading};
use super::response::problem::Problem;
use blackboard_api::inbox::{InboxPage, InboxQuery, PendingQuery, RequestsPage, page};
use blackboard_auth::Caller;
use blackboard_service::{Inbox, Service};

/// List open questions
///
/// Open questions of all sessions are sorted by session and then by seq, a page at a time. A question is open while
/// it has a text as `question` or `text` and no `answer`.
#[utoipa::path(
    get, path = "/v1/questions", operation_id = "list_questions", tag = "questions",
    params(InboxQuery, openapi::ListWaitQuery),
    responses(
        (status = 200, description = "A page of questions", body = InboxPage, headers(("ETag" = String, description = "Changes with the response"))),
        openapi::ListRefusals,
    )
)]
pub(super) async fn questions(mut reading: Reading) -> Result<Response, Early> {
    let query = InboxQuery::take(&mut reading.params)?;
    reading.list(&Listing { inbox: Inbox::Questions, query }).await
}

/// List pending requests
///
/// Pending requests of all sessions are sorted by session and then by seq, a page at a time. A request is pending
/// while it is neither claimed, done, failed nor blocked.
#[utoipa::path(
    get, path = "/v1/requests", operation_id = "list_requests", tag = "requests",
    params(InboxQuery, PendingQuery, openapi::ListWaitQuery),
    responses(
        (status = 200, description = "A page of requests", body = RequestsPage, headers(("ETag" = String, description = "Changes with the response"))),
        openapi::ListRefusals,
    )
)]
pub(super) async fn requests(mut reading: Reading) -> Result<Response, Early> {
    let query = InboxQuery::take(&mut reading.params)?;
    // Only pending requests are listed, whether it is said or not.
    let _ = PendingQuery::take(&mut reading.params)?.pending;
    reading.list(&Listing { inbox: Inbox::Requests, query }).await
}

/// A page of an inbox.
#[derive(Clone, Debug)]
struct Listing {
    inbox: Inbox,
    query: InboxQuery,
}

impl Listed for Listing {
    fn name(&self) -> String {
        format!("{self:?}")
    }

    fn ticks(&self, service: &Service) -> watch::Receiver<u64> {
        service.channels().inbox(self.inbox)
    }

    async fn text(
        &self,
        service: &Service,
        caller: &Caller,
        _: Option<&ListText>,
    ) -> Result<ListText, Problem> {
        let text = page(service, caller, self.inbox, &self.query).await?.into();
        Ok(ListText { version: None, text })
    }
}
