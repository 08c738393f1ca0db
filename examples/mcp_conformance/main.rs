//! Server with the fixtures of the MCP conformance suite beside the board's own tools.
//!
//! `tests/mcp/conformance/run` starts it. It prints the address of its MCP door, and ends with its standard input.
#![expect(clippy::print_stdout, reason = "the address is for the program that started this one")]

mod asking;
mod content;
mod fixtures;
mod inputs;
mod reading;
mod tasks;

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::{io, thread};

use blackboard::auth::{TokenLimits, Tokens};
use blackboard::board::Policy;
use blackboard::clock::Clock;
use blackboard::http::{ConnectionLimits, Door, EdgeOptions, Streams, edge, router, serve};
use blackboard::mcp;
use blackboard::service::Service;
use blackboard::store::{SqliteOptions, SqliteStore, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use fixtures::Fixtures;

const STREAMS_MAX: u32 = 64;

const POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 64 << 20,
    session_blob_bytes_max: 64 << 20,
    session_items_max: 10_000,
    sessions_max: 1_000,
    qa_pairs: Vec::new(),
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let store = SqliteStore::open(data.path(), SqliteOptions::default())?;
    let store: Arc<dyn Store> = Arc::new(store);
    let limits = TokenLimits { rate: None, streams_max: STREAMS_MAX };
    let tokens = Tokens::open(Arc::clone(&store), Clock::system(), limits)?;
    let service = Service::start(store, POLICY, Clock::system())?;
    let fixtures = Arc::new(Fixtures::new(service.clone()));
    let answer = mcp::answer_with(&service, Some(fixtures));
    let doors = vec![Door { name: "mcp", path: mcp::PATH, answer }];
    let router = router(service.clone(), tokens, None, Streams::new(STREAMS_MAX), doors, None);
    let router = edge(router, EdgeOptions::default(), service.clone());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}{}", listener.local_addr()?, mcp::PATH);
    let shutdown = service.stopping().clone();
    cancel_with_input(shutdown.clone());
    serve(listener, router, ConnectionLimits::default(), shutdown).await;
    tokio::task::spawn_blocking(move || service.stop()).await?;
    Ok(())
}

/// Cancels the token when the standard input ends, as it does with the program that started this one.
fn cancel_with_input(shutdown: CancellationToken) {
    thread::spawn(move || {
        let read = io::copy(&mut io::stdin(), &mut io::sink());
        shutdown.cancel();
        read
    });
}
