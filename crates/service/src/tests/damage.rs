//! Tests of a failing or damaged store: the other sessions are served.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::cramped::start_uncompacted;
use super::service::*;
use crate::startup::damage::DamageCause;
use crate::*;
use blackboard_board::{BoardCommand, LogName, Misfit, Revision, SessionCommand};
use blackboard_child_test::{SHORT_FILES, child_dir, run_child};
use blackboard_clock::Clock;
use blackboard_store::{BlobStore as _, EmbeddedStore as _, Health, SqliteStore};

fn database(dir: &Path) -> Connection {
    Connection::open(dir.join("blackboard.db")).unwrap()
}

/// Flips the last bit of the frame in this row.
fn flip_a_bit(dir: &Path, row: i64) {
    let database = database(dir);
    let select = "SELECT frame FROM journal WHERE id = ?1";
    let mut frame: Vec<u8> = database.query_one(select, [row], |row| row.get(0)).unwrap();
    *frame.last_mut().unwrap() ^= 1;
    let update = "UPDATE journal SET frame = ?2 WHERE id = ?1";
    assert_eq!(database.execute(update, (row, frame)).unwrap(), 1);
}

/// Three sessions; the rows 2 and 5 of the journal are of `hurt`.
async fn three_sessions(dir: &Path) {
    let service = start_uncompacted(dir);
    for session in ["well", "hurt", "fine", "well", "hurt", "fine"] {
        let (write, images) = screenshot(session, session.as_bytes().to_vec());
        service.receipt(write, images).await.unwrap();
    }
    stop(service).await;
}

fn open(dir: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(dir, Default::default()).unwrap())
}

#[tokio::test]
async fn a_damaged_session_is_set_aside_and_the_others_are_served() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    flip_a_bit(dir.path(), 5);
    let service = start_uncompacted(dir.path());
    let [damage] = service.damage() else { panic!("{:?}", service.damage()) };
    assert_eq!((damage.journal_id.map(|id| id.0), damage.revision), (Some(5), Revision(2)));
    assert_eq!(damage.name, Some(name("hurt")));
    assert!(matches!(damage.cause, DamageCause::Frame(_)), "{damage}");

    let refused = |result: Result<_, ServiceError>| {
        assert!(matches!(result, Err(ServiceError::Damaged)));
    };
    refused(service.published_here(&name("hurt")).map(drop));
    refused(service.receipt(request("hurt", "{}"), vec![]).await.map(drop));
    let (write, images) = screenshot("hurt", b"more".to_vec());
    refused(service.receipt(write, images).await.map(drop));

    for session in ["well", "fine"] {
        assert_eq!(board(&service, session).revision(), Revision(2));
        let made = service.receipt(request(session, "{}"), vec![]).await.unwrap();
        assert_eq!(made.board.revision(), Revision(3));
    }
    stop(service).await;

    let store = open(dir.path());
    let soundness = check(&*store).unwrap();
    assert!(!soundness.is_sound());
    assert_eq!((soundness.commits, soundness.damage.len()), (8, 1));
    let mut blobs = 0;
    store
        .blobs(&mut |_| {
            blobs += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(blobs, 3, "its images may be all that is left of it");
}

#[tokio::test]
async fn a_session_that_the_start_found_damaged_is_deleted_for_good() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    flip_a_bit(dir.path(), 5);
    let service = start_uncompacted(dir.path());
    assert_eq!(service.status().damaged, 1);
    let deleted = service
        .receipt(write_to("hurt", Command::Session(SessionCommand::Delete)), vec![])
        .await
        .unwrap();
    assert_eq!((deleted.board.revision(), service.status().damaged), (Revision(3), 0));
    stop(service).await;
    for _ in 0..2 {
        let service = start_uncompacted(dir.path());
        assert!(service.damage().is_empty() && service.status().damaged == 0);
        assert!(service.published_here(&name("hurt")).unwrap().is_none());
        stop(service).await;
    }
    let store = open(dir.path());
    while store.idle() {}
    drop(store);
    let rows = "SELECT count(*) FROM journal WHERE id IN (2, 5)";
    assert_eq!(database(dir.path()).query_one(rows, [], |row| row.get(0)), Ok(0));
    assert!(check(&*open(dir.path())).unwrap().is_sound());
}

#[tokio::test]
async fn an_interrupted_deletion_is_completed_by_the_next_start() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    flip_a_bit(dir.path(), 5);
    let journal: Vec<(i64, Vec<u8>, i64, Vec<u8>)> = {
        let database = database(dir.path());
        let mut select = database.prepare("SELECT * FROM journal WHERE id IN (2, 5)").unwrap();
        let rows = select.query_map([], |row| row.try_into()).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let service = start_uncompacted(dir.path());
    service
        .receipt(write_to("hurt", Command::Session(SessionCommand::Delete)), vec![])
        .await
        .unwrap();
    stop(service).await;
    stop(start_uncompacted(dir.path())).await;
    for row in journal {
        let insert = "INSERT OR REPLACE INTO journal VALUES (?1, ?2, ?3, ?4)";
        assert_eq!(database(dir.path()).execute(insert, row).unwrap(), 1);
    }
    let service = start_uncompacted(dir.path());
    assert_eq!((service.damage().len(), service.status().damaged), (0, 0));
    assert!(service.published_here(&name("hurt")).unwrap().is_none());
    stop(service).await;
}

#[tokio::test]
async fn a_lost_commit_is_damage_too() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    let service = start_uncompacted(dir.path());
    service.receipt(request("hurt", "{}"), vec![]).await.unwrap();
    stop(service).await;
    database(dir.path()).execute("DELETE FROM journal WHERE id = 5", []).unwrap();
    let service = start_uncompacted(dir.path());
    let [damage] = service.damage() else { panic!("{:?}", service.damage()) };
    let (head, found) = (Revision(1), Revision(3));
    assert!(matches!(
        &damage.cause,
        DamageCause::Misfit(misfit) if *misfit == Misfit::Revision { head, found }
    ));
    stop(service).await;
}

#[tokio::test]
async fn damage_that_hides_a_name_stops_the_start() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    flip_a_bit(dir.path(), 2);
    let service = start_uncompacted(dir.path());
    let [damage] = service.damage() else { panic!("{:?}", service.damage()) };
    assert_eq!(damage.name, Some(name("hurt")), "it is kept a second time");
    stop(service).await;
    database(dir.path()).execute("UPDATE name SET crc = crc + 1", []).unwrap();
    let refused = Service::start(open(dir.path()), POLICY, Clock::system()).map(drop).unwrap_err();
    let LoadError::Nameless(damage) = refused else { panic!("{refused:?}") };
    assert_eq!((damage.journal_id.map(|id| id.0), damage.name), (Some(2), None));
}

#[tokio::test]
async fn a_lost_or_damaged_image_is_found_and_spoils_only_itself() {
    let dir = TempDir::new().unwrap();
    three_sessions(dir.path()).await;
    let service = start_uncompacted(dir.path());
    let hurt = board(&service, "hurt");
    let entry = hurt.log(&LogName::Screenshots).unwrap().at(0).cloned().unwrap();
    let image = entry.item.image().unwrap();
    let path = dir.path().join(format!("blobs/{}/{}", hurt.id(), image.sha256));
    std::fs::write(&path, b"other").unwrap();
    assert!(matches!(service.at("s").image(&hurt, image).await, Err(ServiceError::Store(_))));
    let (write, images) = screenshot("hurt", b"hurt".to_vec());
    service.receipt(write, images).await.unwrap();
    assert_eq!(
        service.at("s").image(&hurt, image).await.unwrap(),
        b"hurt",
        "sent again it is whole again"
    );
    std::fs::remove_file(&path).unwrap();
    stop(service).await;
    let soundness = check(&*open(dir.path())).unwrap();
    assert_eq!((soundness.sessions, soundness.images), (3, 3));
    assert_eq!(soundness.images_damaged.len(), 1);
}

#[test]
fn a_poisoned_store_takes_no_writes_and_reads_go_on() {
    if let Some(dir) = child_dir() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        return runtime.block_on(poison(&dir));
    }
    let dir = TempDir::new().unwrap();
    run_child(&SHORT_FILES, dir.path());
    let service = start_uncompacted(dir.path());
    assert_eq!(service.status().health, Health::Ready);
    let board = board(&service, "s");
    assert_eq!((board.revision(), board.logs().len()), (Revision(1), 4));
    service.stop();
}

async fn poison(dir: &Path) {
    let service = start(dir);
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let too_much = append("s", LogName::Requests, noise(12));
    let (lost, refused) = tokio::join!(
        service.receipt(too_much, vec![]),
        service.receipt(
            write_to("none", Command::Board(BoardCommand::Clear { state: false })),
            vec![]
        ),
    );
    assert!(matches!(lost, Err(ServiceError::Poisoned { outcome_unknown: true })), "{lost:?}");
    assert!(refused.is_err());
    assert_eq!(service.status().health, Health::Poisoned);
    assert_eq!(board(&service, "s").revision(), Revision(1), "what is unknown is not shown");

    let later = service.receipt(request("s", "{}"), vec![]).await.unwrap_err();
    assert!(matches!(later, ServiceError::Poisoned { outcome_unknown: false }), "never tried");
    let made = service.receipt(request("new", "{}"), vec![]).await.unwrap_err();
    assert!(matches!(made, ServiceError::Poisoned { outcome_unknown: false }), "never tried");
    assert!(service.published_here(&name("new")).unwrap().is_none());
    let (write, images) = screenshot("s", b"x".to_vec());
    assert_eq!(
        service.receipt(write, images).await.unwrap_err().code(),
        blackboard_board::Code::StorePoisoned
    );
    assert_eq!(board(&service, "s").log(&LogName::Requests).unwrap().len(), 1);
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap();
}
