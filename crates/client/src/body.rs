//! The body of an answer, read piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::error::Error;

/// The rest of a body.
#[derive(Debug)]
pub(super) struct Body {
    incoming: Incoming,
    silence: Duration,
}

impl Body {
    pub(super) const fn new(incoming: Incoming, silence: Duration) -> Self {
        Self { incoming, silence }
    }

    /// Returns the next piece, or nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = timeout(self.silence, self.incoming.frame())
                .await
                .map_err(|_| Error::Silent(self.silence))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|why| Error::Broken(Box::new(why)))?;
            // Trailers are passed over.
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }
}
