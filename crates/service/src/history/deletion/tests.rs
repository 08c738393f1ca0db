//! Tests of deletion: files left behind, their removal, and a full disk.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::tests::clock::{BusyWriter, Hand};
use crate::tests::service::{
    POLICY, append, board, item, name, request, screenshot, stop, write_to,
};
use crate::{Service, ServiceError, check};
use blackboard_board::{
    Command, History, LogCommand, LogName, Seq, SessionCommand, Set, SettingsPatch,
};
use blackboard_clock::Clock;

use blackboard_store::{SqliteOptions, SqliteStore, SyncLevel};

const NO_RESERVE: SqliteOptions =
    SqliteOptions { sync: SyncLevel::Full, free_bytes_min: 0, free_part: 1 };

/// Whatever grows finds no room.
const FULL: SqliteOptions = SqliteOptions { free_bytes_min: 1 << 60, ..NO_RESERVE };

fn start_with(dir: &Path, options: SqliteOptions, clock: Clock) -> Service {
    let store = SqliteStore::open(dir, options).unwrap();
    Service::start(Arc::new(store), POLICY, clock).unwrap()
}

fn start(dir: &Path) -> Service {
    start_with(dir, NO_RESERVE, Clock::system())
}

fn delete(session: &str) -> blackboard_board::Write {
    write_to(session, Command::Session(SessionCommand::Delete))
}

/// How many rows these tables have.
fn counts<const N: usize>(dir: &Path, tables: [&str; N]) -> [i64; N] {
    let database = Connection::open(dir.join("blackboard.db")).unwrap();
    let count = |table: &str| {
        database.query_one(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    tables.map(count)
}

/// Waits until as many rows are in these tables.
async fn reach<const N: usize>(dir: &Path, tables: [&str; N], wanted: [i64; N]) {
    for _ in 0..2_000 {
        if counts(dir, tables) == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(counts(dir, tables), wanted);
}

const HISTORY: [&str; 4] = ["journal", "segment", "base", "ending"];

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_leaves_its_name_and_last_revision() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for session in ["a", "b"] {
        for _ in 0..20 {
            service.receipt(request(session, r#"{"n":"secret"}"#), vec![]).await.unwrap();
        }
    }
    assert_eq!(service.receipt(delete("a"), vec![]).await.unwrap().board.revision(), Revision(21));
    // The deletion and the other session's commits are compacted by now, and the rest is gone.
    reach(dir.path(), HISTORY, [0, 2, 0, 3]).await;
    stop(service).await;

    let service = start(dir.path());
    assert_eq!(service.damage().len(), 0);
    assert!(service.published_here(&name("a")).unwrap().is_none());
    let again = service.receipt(request("a", "{}"), vec![]).await.unwrap();
    assert_eq!(again.board.revision(), Revision(22));
    assert_eq!(board(&service, "b").revision(), Revision(20));
    stop(service).await;
    let store = SqliteStore::open(dir.path(), NO_RESERVE).unwrap();
    assert!(check(&store).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_forgotten_after_thirty_days_or_reuse() {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let service = start_with(dir.path(), NO_RESERVE, hand.clock());
    for session in ["old", "again"] {
        service.receipt(request(session, "{}"), vec![]).await.unwrap();
        service.receipt(delete(session), vec![]).await.unwrap();
    }
    service.receipt(request("again", "{}"), vec![]).await.unwrap();
    stop(service).await;
    let service = start_with(dir.path(), NO_RESERVE, hand.clock());
    reach(dir.path(), ["ending", "history"], [3, 1]).await;
    assert_eq!(board(&service, "again").revision(), Revision(3));
    stop(service).await;
    hand.set(TOMBSTONE_MS + 1);
    let service = start_with(dir.path(), NO_RESERVE, hand.clock());
    reach(dir.path(), ["ending", "history", "session"], [0, 0, 1]).await;
    let anew = service.receipt(request("old", "{}"), vec![]).await.unwrap();
    assert_eq!(anew.board.revision(), Revision(1));
    stop(service).await;
    let store = SqliteStore::open(dir.path(), NO_RESERVE).unwrap();
    assert!(check(&store).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_forgets_old_and_reused_deletions() {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let service = start_with(dir.path(), NO_RESERVE, hand.clock());
    for session in ["old", "again", "watched"] {
        service.receipt(request(session, "{}"), vec![]).await.unwrap();
        service.receipt(delete(session), vec![]).await.unwrap();
    }
    let mut watch = service.watch(&name("watched")).unwrap();
    service.receipt(request("again", "{}"), vec![]).await.unwrap();
    reach(dir.path(), ["ending", "history"], [9, 3]).await;

    hand.set(TOMBSTONE_MS + 1);
    let held = service.inner.sessions.memory.held();
    // It looks at the clock as it looks after a history.
    let patch = SettingsPatch { history: Set::To(History::Revisions(1)), ..Default::default() };
    let (settings, labels) = (Set::To(patch), Set::Keep);
    let command = Command::Session(SessionCommand::Put { settings, labels, qa_pairs: vec![] });
    service.receipt(write_to("again", command), vec![]).await.unwrap();
    reach(dir.path(), ["ending", "history"], [3, 2]).await;
    let known = |session| service.inner.sessions.directory.get(&name(session)).is_some();
    assert!(!known("old") && known("again") && known("watched"));
    assert!(service.inner.sessions.memory.held() < held);
    let anew = service.receipt(request("old", "{}"), vec![]).await.unwrap();
    assert_eq!(anew.board.revision(), Revision(1));
    let anew = service.receipt(request("watched", "{}"), vec![]).await.unwrap();
    assert_eq!(anew.board.revision(), Revision(3));
    assert!(watch.changed().await);
    drop(watch);
    stop(service).await;
    let store = SqliteStore::open(dir.path(), NO_RESERVE).unwrap();
    assert!(check(&store).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_removals_do_not_wait_for_additions() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for session in ["deleted", "cleared"] {
        service.receipt(request(session, "{}"), vec![]).await.unwrap();
    }
    let (write, images) = screenshot("deleted", b"image".to_vec());
    service.receipt(write, images).await.unwrap();
    service.receipt(request("held", "{}"), vec![]).await.unwrap();
    stop(service).await;
    let service = start_with(dir.path(), FULL, Clock::system());
    // All are decided in one batch, so no board is read meanwhile.
    for session in ["deleted", "cleared"] {
        service.published(&name(session)).await.unwrap();
    }
    let held = BusyWriter::at(&service, delete("held")).await;
    let clear = Command::Log(LogName::Requests, LogCommand::DeleteEntry { seq: Seq(1) });
    let writes = [
        request("deleted", r#"{"more":1}"#),
        delete("deleted"),
        append("cleared", LogName::Requests, vec![item(r#"{"more":1}"#)]),
        write_to("cleared", clear),
    ];
    let mut replies: Vec<_> =
        writes.into_iter().map(|write| Box::pin(service.receipt(write, vec![]))).collect();
    for reply in &mut replies {
        assert!(futures_util::FutureExt::now_or_never(reply.as_mut()).is_none());
    }
    held.release().await;
    let replies = futures_util::future::join_all(replies).await;
    let [added, deleted, refused, cleared] = replies.try_into().unwrap();
    // What a deletion makes forgotten need not be stored.
    assert_eq!(added.unwrap().board.revision(), Revision(3));
    assert_eq!(deleted.unwrap().board.revision(), Revision(4));
    assert!(matches!(refused, Err(ServiceError::StoreFull)), "{refused:?}");
    assert_eq!(cleared.unwrap().board.revision(), Revision(2));
    let left = board(&service, "cleared");
    assert!(left.log(&LogName::Requests).unwrap().is_empty());
    stop(service).await;
    let service = start(dir.path());
    assert!(service.published_here(&name("deleted")).unwrap().is_none());
    assert_eq!(board(&service, "cleared").revision(), Revision(2));
    stop(service).await;
}
