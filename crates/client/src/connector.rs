//! Connections: TCP, and TLS over it for `https`, within one time limit.

use std::error::Error as StdError;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::Service;

/// A connection that was not made: nothing of a request was sent.
///
/// The pool hands such errors on by reference only, so they are cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens there.
    #[error("the connection was refused")]
    Refused,
    /// The host is unknown or out of reach.
    #[error("the host cannot be reached")]
    Unreachable(#[source] Arc<dyn StdError + Send + Sync>),
    /// The connection took too long.
    #[error("the host did not accept the connection within {0:?}")]
    Timeout(Duration),
    /// TLS failed: the certificate does not lead to a root, or the server speaks no TLS.
    #[error("TLS failed")]
    Tls(#[source] Arc<io::Error>),
    /// The host has no name that a certificate could bear.
    #[error("the URL's host name is not valid for TLS")]
    Name,
}

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: Option<TlsConnector>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(tls: Option<TlsConnector>, limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Divided among the addresses of the host.
        tcp.set_connect_timeout(Some(limit));
        Self { tcp, tls, limit }
    }

    async fn open(self, uri: Uri) -> Result<Stream, ConnectError> {
        let limit = self.limit;
        timeout(limit, self.connect(uri)).await.unwrap_or(Err(ConnectError::Timeout(limit)))
    }

    async fn connect(mut self, uri: Uri) -> Result<Stream, ConnectError> {
        let limit = self.limit;
        let tcp = self.tcp.call(uri.clone()).await.map_err(|error| tcp_failure(error, limit))?;
        let Some(tls) = self.tls.filter(|_| uri.scheme() == Some(&Scheme::HTTPS)) else {
            return Ok(Stream::Plain(tcp));
        };
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::Name)?;
        let tls = tls.connect(name, tcp.into_inner()).await;
        let tls = tls.map_err(|why| ConnectError::Tls(Arc::new(why)))?;
        Ok(Stream::Tls(Box::new(TokioIo::new(tls))))
    }
}

fn tcp_failure(error: impl StdError + Send + Sync + 'static, limit: Duration) -> ConnectError {
    let mut source: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(cause) = source {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::ConnectionRefused) => return ConnectError::Refused,
            // The time of TCP and that of the whole connection end together.
            Some(io::ErrorKind::TimedOut) => return ConnectError::Timeout(limit),
            Some(_) | None => {}
        }
        source = cause.source();
    }
    ConnectError::Unreachable(Arc::new(error))
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().open(uri))
    }
}

/// An open connection.
pub(super) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, pieces),
        }
    }
}
