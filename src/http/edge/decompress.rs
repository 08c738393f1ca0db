//! Decompression of gzip and zstd request bodies while they are read.
//!
//! A body may be several streams on end, as `cat a.gz b.gz` makes it: all of them count, and what
//! follows the last one is damage. A layer that stops after the first would lose the rest in silence.
//! A body that becomes many times its size is refused as soon as it does.

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

/// How many times the size of what came a body may become, beyond what is free.
pub(in crate::http) const RATIO_MAX: u64 = 200;

/// So much may come of however little: an ordinary body has no more.
const RATIO_FREE_BYTES: u64 = 8 << 20;

/// A body became too many times its size.
#[derive(Debug, thiserror::Error)]
#[error("the body becomes more than {RATIO_MAX} times its size")]
pub(super) struct Inflated;

/// The same request with its body decompressed.
pub(super) fn decompress(mut request: Request, coding: Coding) -> Request {
    // It is the length of what was sent, not of what comes out.
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
        // A few KiB may become many MiB, and all of them are there at once.
        paced(bounded(body, came))
    })
}

/// A decompressed body up to the bound on its ratio. `came` counts the bytes of the compressed one that were read.
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
