//! Server inside the test, on a clock that the test sets; otherwise started like `blackboard serve`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use blackboard::auth::{TokenLimits, Tokens};
use blackboard::board::{Policy, Timestamp};
use blackboard::clock::Clock;
use blackboard::http::{ConnectionLimits, EdgeOptions, Streams, edge, router, serve};
use blackboard::service::Service;
use blackboard::store::{SqliteOptions, SqliteStore, Store, SyncLevel};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::harness::{Board, client};

/// When its clock begins: 2026-11-21T07:03:11.123Z.
const BEGIN: i64 = 1_795_244_591_123;

const POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 1 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

/// A server whose time is the test's.
pub(crate) struct Clocked {
    home: TempDir,
    hand: Arc<AtomicI64>,
    http: reqwest::Client,
    running: Running,
}

struct Running {
    address: String,
    service: Service,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Clocked {
    pub(crate) async fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let hand = Arc::new(AtomicI64::new(BEGIN));
        let running = Running::start(&home, &hand).await;
        Self { home, hand, http: client(), running }
    }

    /// It is now so many milliseconds after the beginning.
    pub(crate) fn set(&self, ms: i64) {
        self.hand.store(BEGIN + ms, Ordering::SeqCst);
    }

    pub(crate) fn board(&self, session: &str) -> Board {
        Board::at(&self.http, &self.running.address, session)
    }

    /// Down, and up again so many milliseconds after the beginning.
    pub(crate) async fn restart_at(self, ms: i64) -> Self {
        let Self { home, hand, running, .. } = self;
        running.stop().await;
        hand.store(BEGIN + ms, Ordering::SeqCst);
        let running = Running::start(&home, &hand).await;
        // Not the old client: it may hold connections to where nobody listens.
        Self { home, hand, http: client(), running }
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
    }
}

impl Running {
    async fn start(home: &TempDir, hand: &Arc<AtomicI64>) -> Self {
        let options = SqliteOptions { sync: SyncLevel::Normal, ..SqliteOptions::default() };
        let store = SqliteStore::open(home.path(), options).expect("a store");
        let hand = Arc::clone(hand);
        let clock = Clock::new(move || Timestamp(hand.load(Ordering::SeqCst)));
        let store: Arc<dyn Store> = Arc::new(store);
        let limits = TokenLimits { rate: None, streams_max: 100 };
        let tokens = Tokens::open(Arc::clone(&store), clock.clone(), limits).expect("tokens");
        let service = Service::start(store, POLICY, clock).expect("a service");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let shutdown = CancellationToken::new();
        let router = edge(
            router(service.clone(), tokens, None, Streams::new(100), Vec::new(), None),
            EdgeOptions::default(),
            service.clone(),
        );
        let limits = ConnectionLimits::default();
        let serving = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
        Self { address, service, shutdown, serving }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.expect("every connection ends");
        let service = self.service;
        tokio::task::spawn_blocking(move || service.stop()).await.expect("the writer ends");
    }
}

/// A read at this revision or a later one, however often that must be asked for.
pub(crate) async fn reached(board: &Board, tail: &str, revision: u64) -> Answer {
    let and = if tail.contains('?') { '&' } else { '?' };
    for _ in 0..30 {
        let answer = board.get(&format!("{tail}{and}min_revision={revision}")).await;
        if answer.status() != 503 {
            return answer;
        }
        answer.problem(503, "revision-not-reached");
    }
    panic!("revision {revision} does not come")
}
