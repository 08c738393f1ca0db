//! Bodies that came as gzip or zstd, decompressed as they are read.
//!
//! A body may be several streams on end, as `cat a.gz b.gz` makes it: all of them count, and what
//! follows the last one is damage. A layer that stops after the first would lose the rest in silence.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::TryStreamExt as _;
use std::io;
use tokio_util::io::{ReaderStream, StreamReader};

/// Decompresses the body by its `Content-Encoding`, which is one of ours by now.
pub(super) async fn decompress(request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let Some(coding) = head.headers.remove(header::CONTENT_ENCODING) else {
        return next.run(Request::from_parts(head, body)).await;
    };
    // It is the length of what was sent, not of what comes out.
    head.headers.remove(header::CONTENT_LENGTH);
    let reader = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
    let body = if coding == "gzip" {
        let mut decoder = GzipDecoder::new(reader);
        decoder.multiple_members(true);
        Body::from_stream(ReaderStream::new(decoder))
    } else {
        let mut decoder = ZstdDecoder::new(reader);
        decoder.multiple_members(true);
        Body::from_stream(ReaderStream::new(decoder))
    };
    next.run(Request::from_parts(head, body)).await
}
