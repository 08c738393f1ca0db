//! Paced bodies: small frames, with yields between them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};

use blackboard_fairness::end_turn;

/// The maximum size of a frame, and the number of bytes after which the body yields.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// Splits a body into frames of at most `FRAME_BYTES_MAX` bytes.
pub(crate) fn paced(body: Body) -> Body {
    let is_short = body.size_hint().upper().is_some_and(|most| most <= FRAME_BYTES_MAX as u64);
    if is_short { body } else { Body::new(Paced { body, rest: Bytes::new(), worked: 0 }) }
}

struct Paced {
    body: Body,
    /// The rest of the current frame.
    rest: Bytes,
    /// The number of bytes returned since the last yield.
    worked: usize,
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.worked >= FRAME_BYTES_MAX {
            self.worked = 0;
            return end_turn(cx);
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let most = self.rest.len().min(FRAME_BYTES_MAX);
        let data = self.rest.split_to(most);
        self.worked += data.len();
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The body no longer counts the rest of the frame taken from it.
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut with_rest = SizeHint::new();
        with_rest.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            with_rest.set_upper(upper + rest);
        }
        with_rest
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::future::poll_immediate;
    use futures_util::stream;
    use http_body_util::BodyExt as _;
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn each_poll_gives_a_bounded_frame_and_all_of_them_are_the_body() {
        let bytes: Vec<u8> = (0..=250).cycle().take(1_000_000).collect();
        let pieces: Vec<_> = [0, 1, 300_000, 1, 699_998]
            .iter()
            .scan(0, |at, length| {
                *at += length;
                Some(Ok::<_, Infallible>(Bytes::copy_from_slice(&bytes[*at - length..*at])))
            })
            .collect();
        let mut body = paced(Body::from_stream(stream::iter(pieces)));
        let (mut all, mut turns) = (Vec::new(), 0);
        while all.len() < bytes.len() {
            match poll_immediate(body.frame()).await {
                Some(frame) => {
                    let data = frame.unwrap().unwrap().into_data().unwrap();
                    assert!(data.len() <= FRAME_BYTES_MAX);
                    all.extend_from_slice(&data);
                }
                None => turns += 1,
            }
        }
        assert_eq!(all, bytes);
        assert!(turns >= bytes.len() / FRAME_BYTES_MAX / 2, "{turns}");
    }

    #[tokio::test]
    async fn a_body_with_a_length_keeps_it() {
        let mut body = paced(Body::from(vec![b'x'; 200_000]));
        assert_eq!(body.size_hint().exact(), Some(200_000));
        body.frame().await.unwrap().unwrap();
        assert_eq!(body.size_hint().exact(), Some(200_000 - FRAME_BYTES_MAX as u64));
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 200_000 - FRAME_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_socket_that_can_be_read_has_its_turn_between_two_frames() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let mut far = tokio::net::UnixStream::from_std(far).unwrap();
        near.write_all(b"x").unwrap();
        let frames = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&frames);
        let reading = tokio::spawn(async move {
            far.read_u8().await.unwrap();
            count.load(Ordering::SeqCst)
        });
        // This task never waits, and wakes only itself.
        let working = tokio::spawn(async move {
            let mut body = paced(Body::from(vec![b'x'; 100 * FRAME_BYTES_MAX]));
            while body.frame().await.is_some() {
                frames.fetch_add(1, Ordering::SeqCst);
            }
        });
        let before = reading.await.unwrap();
        assert!(before <= 2, "{before} frames were worked on first");
        working.await.unwrap();
    }
}
