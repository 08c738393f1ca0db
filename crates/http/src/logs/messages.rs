//! Acknowledgements of messages.

use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;
use crate::request::path::EntryPath;
use crate::response::problem::Problem;
use crate::write::Writing;
use crate::write::response::Written;
use blackboard_api::tag::Resource;
use blackboard_board::{Command, Entry};

/// An acknowledged message.
#[derive(Serialize, ToSchema)]
pub(crate) struct AckedBody {
    /// The session's revision after the write.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    etag: String,
    /// The time of the first acknowledgement, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    acked_at: Option<String>,
}

/// Acknowledge a message
///
/// The agent says that it has dealt with the message, which then no longer waits for it. Only the first acknowledgement
/// counts; a repeat succeeds and changes nothing.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/agents/{agent}/messages/{seq}/ack", operation_id = "acknowledge_message", tag = "messages",
    responses(
        (status = 200, description = "Acknowledged, now or before", body = AckedBody, headers(("ETag" = String, description = "The message's tag"))),
        openapi::AckRefusals,
    )
)]
pub(crate) async fn ack(
    EntryPath { log, seq, .. }: EntryPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = Command::Ack { agent: log.owner().cloned(), message: seq };
    let resource = Resource::Entry(log.clone(), seq);
    let shape = move |written: &Written<'_>| {
        let tag = written.entry_tag(&log, seq);
        let board = &written.receipt.board;
        let entry = board.log(&log).and_then(|log| log.get(seq));
        let acked_at = entry.and_then(|entry| Entry::clone(entry).acked_at);
        let body = AckedBody {
            revision: board.revision().0,
            etag: tag.to_string(),
            acked_at: acked_at.map(|at| at.to_string()),
        };
        written.json(Some(tag), None, &body)
    };
    writing.write(resource, command, Vec::new(), shape).await
}
