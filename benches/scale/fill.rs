//! Stores full of commits: each item in a commit of its own, as agents write them.
//!
//! Commits are decided here and appended to the store without a service, which would compact them meanwhile.
//! Measurements of a compacted store start a service afterwards.

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use blackboard::board::stored::{Body, encode_commit};
use blackboard::board::{
    Board, Command, Frame, Item, LogCommand, LogName, Moment, Nonce, Policy, Revision, SessionId,
    SessionName, Terms, Timestamp, Write, decide,
};
use blackboard::clock::Clock;
use blackboard::service::Service;
use blackboard::store::{
    EmbeddedStore as _, Outcome, Run, SqliteOptions, SqliteStore, Store as _, SyncLevel,
};
use uuid::Uuid;

use crate::Failure;
use crate::texts::{Kind, Texts};

/// How many commits are made durable together.
const BATCH: usize = 1_024;

/// Between two looks at how far settling is.
const LOOK: Duration = Duration::from_millis(20);

/// A store that settles nothing for so long does not settle.
const SETTLE_STEP_MAX: Duration = Duration::from_secs(30);

/// What to fill a store with.
#[derive(Clone, Copy)]
pub struct Plan {
    pub sessions: usize,
    /// Of each session, all in one log.
    pub commits: usize,
    /// So many sessions are written to by turns, before others are.
    pub at_once: usize,
    pub kind: Kind,
}

/// The sessions that are written to, with the batch to be stored next.
struct Filling<'a> {
    store: &'a SqliteStore,
    policy: Policy,
    texts: Texts,
    batch: Vec<Run>,
    bytes: u64,
}

/// A store that takes what is written to it without waiting for the disk: it is filled, not tested.
pub fn open(dir: &Path) -> Result<SqliteStore, Failure> {
    let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
    Ok(SqliteStore::open(dir, options)?)
}

pub fn policy() -> Policy {
    Policy {
        auto_create: true,
        session_bytes_max: 8 << 30,
        session_blob_bytes_max: 1 << 30,
        session_items_max: 1 << 30,
        sessions_max: 1 << 30,
        qa_pairs: Vec::new(),
    }
}

/// Fills a store, and gives the bytes of the items.
pub fn fill(store: &SqliteStore, plan: Plan) -> Result<u64, Failure> {
    let texts = Texts::of(plan.kind);
    let mut filling = Filling { store, policy: policy(), texts, batch: Vec::new(), bytes: 0 };
    for first in (0..plan.sessions).step_by(plan.at_once) {
        let numbers = first..plan.sessions.min(first + plan.at_once);
        let mut boards = Vec::new();
        for number in numbers {
            let name: SessionName = session(number).parse()?;
            boards.push((name, Board::absent(SessionId(Uuid::now_v7()), Revision(0))));
        }
        for _ in 0..plan.commits {
            for (name, board) in &mut boards {
                filling.append(name, board)?;
            }
        }
    }
    filling.flush()?;
    Ok(filling.bytes)
}

/// So many items as one JSON array, with the bytes of the items alone.
pub fn array(texts: &mut Texts, items: usize) -> (String, u64) {
    let items: Vec<String> = (0..items).map(|_| texts.next()).collect();
    let bytes: usize = items.iter().map(String::len).sum();
    (format!("[{}]", items.join(",")), bytes as u64)
}

/// The name of a session that was filled.
pub fn session(number: usize) -> String {
    format!("session-{number}")
}

impl Filling<'_> {
    fn append(&mut self, name: &SessionName, board: &mut Board) -> Result<(), Failure> {
        let item = Item::from_json(&self.texts.next())?;
        self.bytes += item.bytes();
        let write = append(name, item);
        let now = Timestamp(jiff::Timestamp::now().as_millisecond());
        let nonce = Nonce(self.texts.random());
        let moment = Moment { now, nonce, policy: &self.policy, qa_pairs: &[], sessions: 0 };
        let decision = decide(board, &write, moment)?;
        let commit = decision.commit.ok_or("an append that changes nothing")?;
        let frame =
            Frame::encode(board.id(), commit.revision, &Body::of(encode_commit(&commit)?.into()))?;
        self.batch.push(Run {
            session: board.id(),
            expected: board.revision(),
            ends: None,
            frames: vec![frame],
            grows: true,
            claim: None,
            adopts: false,
            group: None,
            row: None,
        });
        *board = decision.board;
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let outcomes = self.store.append(&self.batch);
        self.batch.clear();
        let stored = outcomes.iter().all(|outcome| *outcome == Outcome::Appended);
        if stored { Ok(()) } else { Err("the store took not all".into()) }
    }
}

/// The write that appends an item.
pub fn append(session: &SessionName, item: Item) -> Write {
    Write {
        session: session.clone(),
        terms: Terms::default(),
        command: Command::Log(LogName::Trajectories, LogCommand::Append { items: vec![item] }),
    }
}

/// Runs a service over a store until all is settled, and stops it; gives the time that it took.
pub fn settle(store: SqliteStore) -> Result<Duration, Failure> {
    let store = Arc::new(store);
    let begin = Instant::now();
    let service = Service::start(Arc::<SqliteStore>::clone(&store), policy(), Clock::system())?;
    wait_settled(&store)?;
    let took = begin.elapsed();
    service.stop();
    Ok(took)
}

/// Waits until the service that has this store has settled all.
pub fn wait_settled(store: &SqliteStore) -> Result<(), Failure> {
    let (mut left, mut since) = (store.uncompacted_bytes(), Instant::now());
    while left > 0 {
        sleep(LOOK);
        let now = store.uncompacted_bytes();
        if now < left {
            since = Instant::now();
        } else if since.elapsed() > SETTLE_STEP_MAX {
            return Err(format!("{left} bytes stay unsettled").into());
        }
        left = now;
    }
    Ok(())
}
