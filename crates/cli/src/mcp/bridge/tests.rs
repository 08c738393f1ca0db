//! Tests of what takes long or needs a slow host: silence, the end of the input, bounds.

use std::future::pending;

use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::super::endpoint::Identity;
use super::*;
use blackboard_client::{Client, Limits};
use blackboard_roots::Roots;

const SHORT: Duration = Duration::from_millis(300);

/// A bridge to a server that takes connections and never answers.
struct Silent {
    host: DuplexStream,
    bridge: JoinHandle<io::Result<()>>,
    _server: TcpListener,
}

impl Silent {
    /// Given up after so long.
    async fn start(silence: Duration) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", server.local_addr().unwrap()).parse().unwrap();
        let limits = Limits { connect: Duration::from_secs(5), silence };
        let client = Client::new(base, None, &Roots::System, limits).unwrap();
        let endpoint = Endpoint::new(client, None, Identity::default()).unwrap();
        let (host, own) = duplex(1 << 20);
        let (input, output) = tokio::io::split(own);
        let bridge = tokio::spawn(Bridge::run(endpoint, None, input, output, pending()));
        Self { host, bridge, _server: server }
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(self.host.read_u8().await.unwrap());
        }
        String::from_utf8(line).unwrap()
    }
}

fn request(id: usize) -> String {
    format!("{{\"id\":{id},\"method\":\"ping\"}}\n")
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let mut silent = Silent::start(SHORT).await;
    silent.host.write_all(request(1).as_bytes()).await.unwrap();
    let line = silent.line().await;
    assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"#), "{line}");
    assert!(line.contains("was silent for 0 s"), "{line}");
    silent.host.shutdown().await.unwrap();
    silent.bridge.await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_beyond_the_bound_are_refused_by_id() {
    // No silence is over before the last of them is there.
    let mut silent = Silent::start(Duration::from_secs(60)).await;
    let lines: String = (0..=OPEN_MAX).map(request).collect();
    silent.host.write_all(lines.as_bytes()).await.unwrap();
    let line = silent.line().await;
    assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":1024,"error":{"code":-32000,"#), "{line}");
    silent.bridge.abort();
}

#[tokio::test]
async fn a_closed_output_ends_the_bridge() {
    let Silent { host, bridge, _server } = Silent::start(SHORT).await;
    let (mut read, mut write) = tokio::io::split(host);
    write.write_all(request(1).as_bytes()).await.unwrap();
    read.read_u8().await.unwrap();
    drop((read, write));
    bridge.await.unwrap().unwrap();
}

#[test]
fn a_message_is_one_line() {
    assert_eq!(line("{\"a\":1.0}".to_owned()), "{\"a\":1.0}\n");
    assert_eq!(line("{\n  \"a\\n\": 1\r\n}".to_owned()), "{   \"a\\n\": 1  }\n");
}
