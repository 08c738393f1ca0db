//! Streaming decompression of gzip and zstd request bodies.
//!
//! A body may be several concatenated streams, as made by `cat a.gz b.gz`. All of them are read, and trailing data
//! is damage; a layer that stops after the first stream would silently lose the rest. A body that expands beyond
//! the ratio allowed is refused at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use futures_util::TryStreamExt as _;
use http_body::Body as _;
use tokio_util::io::{ReaderStream, StreamReader};

use super::body_polls::paced::paced;
use super::body_polls::wrapped::wrapped;
use super::encoding::Coding;

/// The maximum ratio of a body's decompressed size to its compressed size, beyond `RATIO_FREE_BYTES`.
pub(crate) const RATIO_MAX: u64 = 200;

/// The decompressed size that is allowed at any ratio; ordinary bodies are no larger.
const RATIO_FREE_BYTES: u64 = 8 << 20;

/// A body that expanded beyond the ratio allowed.
#[derive(Debug, thiserror::Error)]
#[error("the body expands to more than {RATIO_MAX} times its compressed size")]
pub(super) struct Inflated;

/// Decompresses the body of a request.
pub(super) fn decompress(mut request: Request, coding: Coding) -> Request {
    // The header gives the compressed length.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    request.map(|body| {
        let came = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&came);
        let data = body.into_data_stream().inspect_ok(move |data| {
            counting.fetch_add(data.len() as u64, Ordering::Relaxed);
        });
        let reader = StreamReader::new(data.map_err(io::Error::other));
        let body = match coding {
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(reader);
                decoder.multiple_members(true);
                Body::from_stream(ReaderStream::new(decoder))
            }
            Coding::Zstd => {
                let mut decoder = ZstdDecoder::new(reader);
                decoder.multiple_members(true);
                Body::from_stream(ReaderStream::new(decoder))
            }
        };
        // A few KiB may expand to many MiB, ready all at once.
        paced(bounded(body, came))
    })
}

/// Limits the ratio of a decompressed body. `came` counts the compressed bytes read.
fn bounded(body: Body, came: Arc<AtomicU64>) -> Body {
    let mut made = 0_u64;
    wrapped(body, move |body, cx| {
        let frame = ready!(body.poll_frame(cx));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        made += data.map_or(0, |data| data.len() as u64);
        let most = came.load(Ordering::Relaxed).saturating_mul(RATIO_MAX);
        if made > most.saturating_add(RATIO_FREE_BYTES) {
            return Poll::Ready(Some(Err(axum::Error::new(Inflated))));
        }
        Poll::Ready(frame)
    })
}
