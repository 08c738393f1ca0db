//! Scripted server, which controls its answers byte by byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::DEADLINE;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The method of a message, or nothing of a request without one.
    pub(crate) fn method(&self) -> String {
        let message: Value = serde_json::from_str(&self.body).unwrap_or_default();
        message["method"].as_str().unwrap_or_default().to_owned()
    }
}

trait ReadWrite: Read + Write + Send {}

impl<T: Read + Write + Send> ReadWrite for T {}

/// The connection of a request.
pub(crate) struct Peer(Box<dyn ReadWrite>);

impl Peer {
    /// Writes bytes. A bridge that was killed takes none.
    pub(crate) fn put(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).and_then(|()| self.0.flush()).ok();
    }

    /// Answers with a whole body.
    pub(crate) fn answer(&mut self, status: u16, media_type: &str, body: &str) {
        let length = body.len();
        self.put(&format!(
            "HTTP/1.1 {status} \r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }

    pub(crate) fn json(&mut self, body: &str) {
        self.answer(200, "application/json", body);
    }

    /// Answers a request with its own id as the result.
    pub(crate) fn echo(&mut self, request: &Request) {
        let id = &request.json()["id"];
        self.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#));
    }

    /// Begins a stream of events, which ends with the connection.
    pub(crate) fn begin_events(&mut self) {
        self.put("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    }

    /// Waits until the other side closes the connection.
    pub(crate) fn wait_for_end(&mut self) {
        self.0.read_to_end(&mut Vec::new()).ok();
    }

    fn request(&mut self) -> Option<Request> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        let mut request = Request { head: String::from_utf8(head).ok()?, body: String::new() };
        let length = request.header("content-length").map_or(Ok(0), str::parse).ok()?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        request.body = String::from_utf8(body).ok()?;
        Some(request)
    }
}

type Script = dyn Fn(&Request, &mut Peer) + Send + Sync;

/// Starts a server, whose URL is returned; each of its connections is a thread that plays the script for each request,
/// and is closed where that says so.
pub(crate) fn serve(script: impl Fn(&Request, &mut Peer) + Send + Sync + 'static) -> String {
    let authority = start(Arc::new(script), |stream| Some(Peer(Box::new(stream))));
    format!("http://{authority}")
}

/// The same with TLS, by the certificate in `tests/tls`.
pub(crate) fn serve_tls(script: impl Fn(&Request, &mut Peer) + Send + Sync + 'static) -> String {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../tls/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../tls/server.key"));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("a certificate")], key.expect("a key"));
    let config = Arc::new(config.expect("a configuration"));
    let authority = start(Arc::new(script), move |stream| {
        let tls = ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(Peer(Box::new(StreamOwned::new(tls, stream))))
    });
    format!("https://{authority}")
}

fn start(script: Arc<Script>, open: impl Fn(TcpStream) -> Option<Peer> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let authority = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
            let (script, peer) = (Arc::clone(&script), open(stream));
            thread::spawn(move || {
                let Some(mut peer) = peer else { return };
                while let Some(request) = peer.request() {
                    script(&request, &mut peer);
                    if request.method().starts_with("last/") {
                        break;
                    }
                }
            });
        }
    });
    authority
}
