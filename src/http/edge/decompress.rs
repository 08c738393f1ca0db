//! Bodies that came as gzip or zstd, decompressed as they are read.
//!
//! A body may be several streams on end, as `cat a.gz b.gz` makes it: all of them count, and what
//! follows the last one is damage. A layer that stops after the first would lose the rest in silence.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use futures_util::TryStreamExt as _;
use std::io;
use tokio_util::io::{ReaderStream, StreamReader};

use super::encoding::Coding;
use super::paced::paced;

/// The same request with its body decompressed.
pub(super) fn decompress(mut request: Request, coding: Coding) -> Request {
    // It is the length of what was sent, not of what comes out.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    request.map(|body| {
        let reader = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
        // A few KiB may become many MiB, and all of them are there at once.
        paced(match coding {
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
        })
    })
}
