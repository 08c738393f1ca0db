//! Uploads of blobs.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::request::body::Arriving;
use crate::response::problem::Problem;
use blackboard_api::tag::Resource;
use blackboard_board::{BLOB_BYTES_MAX, Code, Digest, MediaType};
use blackboard_service::{Upload, Uploaded};

impl Writing {
    /// Adds the body's bytes to the session as a blob, if they have the expected digest.
    pub(crate) async fn upload(
        mut self: Box<Self>,
        body: Body,
        expected: Option<Digest>,
        media_type: MediaType,
        shape: impl Fn(&Written<'_>, Digest) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        self.finish_query()?;
        let mut arriving = Arriving::begin(&self.headers, body, BLOB_BYTES_MAX).await?;
        let upload = match self.session.begin_upload().await {
            Ok(upload) => upload,
            Err(error) => {
                arriving.linger().await;
                return Err(error.into());
            }
        };
        let uploaded = receive(upload, &mut arriving).await?;
        let sha256 = uploaded.sha256;
        if let Some(expected) = expected.filter(|expected| *expected != sha256) {
            return Err(mismatch(expected, sha256));
        }
        self.repeat = self.repeat.map(|repeat| repeat.with_digest(sha256));
        let resource = Resource::Blob(sha256);
        let call = self.call(&resource)?;
        let shape = Arc::new(move |written: &Written<'_>| shape(written, sha256));
        let keep = self.keep(&call, &shape);
        let reply = call.put_blob(uploaded, media_type, keep).await;
        self.answer(&resource, reply, &*shape).await
    }
}

async fn receive(mut upload: Upload, arriving: &mut Arriving) -> Result<Uploaded, Problem> {
    while let Some(piece) = arriving.next().await? {
        if let Err(error) = upload.push(&piece).await {
            arriving.linger().await;
            return Err(error.into());
        }
    }
    Ok(upload.end().await?)
}

/// Refuses bytes with another digest than that of their address.
fn mismatch(expected: Digest, found: Digest) -> Problem {
    let detail = format!("the body's SHA-256 is {found}, not {expected}; nothing was stored");
    Problem::new(Code::DigestMismatch, detail).member("sha256", &found.to_string())
}
