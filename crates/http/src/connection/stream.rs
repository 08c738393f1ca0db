//! The byte stream of a connection, with timeouts.
//!
//! Resets the connections of slow clients, tells the head timer of each first byte, and requests of the client's
//! departure.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::departure::Departure;
use super::idle::Idleness;
use super::malformed_head::Parsed;
use super::slow_client::StallDeadline;

/// The stream from which hyper reads and to which hyper writes.
pub(crate) struct ClientStream {
    tcp: TcpStream,
    idleness: Arc<Idleness>,
    deadline: StallDeadline,
    parsed: Parsed,
    departure: Departure,
    /// The rest of a response that replaces hyper's.
    replacement: Vec<u8>,
}

impl ClientStream {
    /// Wraps a connection, which is reset if the client reads nothing for `stall_max`, or reads too slowly.
    pub(super) fn new(
        tcp: TcpStream,
        idleness: Arc<Idleness>,
        stall_max: Duration,
        parsed: Parsed,
        departure: Departure,
    ) -> Self {
        prepare(&tcp, stall_max);
        let (deadline, replacement) = (StallDeadline::new(stall_max), Vec::new());
        Self { tcp, idleness, deadline, parsed, departure, replacement }
    }

    /// Writes the rest of a replaced response.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let written = Pin::new(&mut self.tcp).poll_write(cx, &self.replacement);
            let bytes = ready!(self.written(cx, written))?;
            self.replacement.drain(..bytes.min(self.replacement.len()));
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Looks for the end of the stream, if a request wants to know of it. The connection's task is woken at the end.
    fn look_for_departure(&self, cx: &mut Context<'_>) {
        if self.departure.is_awaited() {
            let mut byte = [MaybeUninit::uninit()];
            // A client that has sent its next request is there.
            if let Poll::Ready(Ok(0) | Err(_)) =
                self.tcp.poll_peek(cx, &mut ReadBuf::uninit(&mut byte))
            {
                self.departure.departed();
            }
        }
    }

    /// Maps the result of a write, which becomes an error once the client is too slow.
    fn written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if let Ok(bytes) = written {
                self.deadline.moved(bytes);
            }
            return Poll::Ready(written);
        }
        ready!(self.deadline.poll_end(cx));
        // Otherwise the system would go on sending the bytes in its buffer.
        if let Err(error) = self.tcp.set_zero_linger() {
            tracing::debug!(%error, "cannot reset a connection");
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Sets the socket's options. A failure does no harm.
fn prepare(tcp: &TcpStream, stall_max: Duration) {
    if let Err(error) = tcp.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    // No write waits for bytes in the system's buffer: the system itself must detect that the client takes none.
    #[cfg(target_os = "linux")]
    {
        let ms = u32::try_from(stall_max.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(tcp, ms) {
            tracing::debug!(%error, "cannot set TCP_USER_TIMEOUT");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _: Duration = stall_max;
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.tcp).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.idleness.read();
        }
        read
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(replacement) = self.parsed.replacement(bytes) {
            self.replacement = replacement;
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = slices.first()
            && let Some(replacement) = self.parsed.replacement(first)
        {
            self.replacement = replacement;
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, slices);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        // hyper flushes each time that it has polled the handler.
        self.look_for_departure(cx);
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
