//! Chunked bodies, rendered in bounded memory. A short body still gets a `Content-Length`.

use axum::body::{Body, Bytes};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use blackboard_api::pieces::{Pieces, WHOLE_BYTES_MAX};
use blackboard_service::ServiceError;

/// Builds a body from pieces. An early failure is returned as an error; a later one breaks the body off.
pub(crate) async fn body(mut pieces: impl Pieces) -> Result<Body, ServiceError> {
    let mut head = String::new();
    while head.len() < WHOLE_BYTES_MAX {
        if !pieces.write(&mut head).await? {
            return Ok(Body::from(head));
        }
        tokio::task::yield_now().await;
    }
    let rest = stream::try_unfold(Some(pieces), async |pieces| {
        let Some(mut pieces) = pieces else { return Ok(None) };
        let mut piece = String::new();
        let more = pieces.write(&mut piece).await?;
        // A fast reader of a long answer must not monopolize a worker thread.
        tokio::task::yield_now().await;
        Ok(Some((Bytes::from(piece), more.then_some(pieces))))
    });
    let rest = rest.inspect_err(|error: &ServiceError| {
        tracing::error!(%error, "failed to stream a response body");
    });
    Ok(Body::from_stream(stream::once(async { Ok(Bytes::from(head)) }).chain(rest)))
}
