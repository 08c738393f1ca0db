//! Tests of the reaper: deletions never wait for it, and it misses no image.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::Service;
use crate::tests::clock::{BusyWriter, LONG, open, until};
use crate::tests::cramped::Cramped;
use crate::tests::service::*;
use blackboard_board::SessionCommand;
use blackboard_clock::Clock;

/// A service on a store whose work on the images of whole sessions can be held up.
fn start_gated(dir: &Path) -> (Arc<Cramped>, Service) {
    let store = Arc::new(Cramped::in_dir(dir));
    let service = Service::start(Arc::clone(&store) as Arc<dyn Store>, POLICY, Clock::system());
    (store, service.unwrap())
}

async fn post(service: &Service, session: &str) -> SessionId {
    let (write, images) = screenshot(session, session.as_bytes().to_vec());
    service.receipt(write, images).await.unwrap().board.id()
}

fn home(dir: &TempDir, session: SessionId) -> PathBuf {
    dir.path().join("blobs").join(session.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_and_the_writes_after_it_wait_for_no_image_to_go() {
    let dir = TempDir::new().unwrap();
    let (store, service) = start_gated(dir.path());
    let gone = post(&service, "gone").await;
    let kept = post(&service, "kept").await;
    store.gate.set_closed(true);
    let answered = async {
        service
            .receipt(write_to("gone", Command::Session(SessionCommand::Delete)), vec![])
            .await
            .unwrap();
        service.receipt(request("kept", "{}"), vec![]).await.unwrap();
    };
    timeout(LONG, answered).await.expect("the writer removes images");
    assert!(home(&dir, gone).exists());
    store.gate.set_closed(false);
    until("its images stay", || !home(&dir, gone).exists()).await;
    assert!(home(&dir, kept).exists());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_ready_before_what_a_crash_left_is_removed() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let kept = post(&service, "kept").await;
    stop(service).await;
    let (orphan, trash) = (SessionId(Uuid::from_u128(1)), dir.path().join("blobs/trash"));
    for left in [home(&dir, orphan), trash.join("session")] {
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("image"), b"image").unwrap();
    }
    let store = Arc::new(Cramped::in_dir(dir.path()));
    store.gate.set_closed(true);
    let (gated, clock) = (Arc::clone(&store) as Arc<dyn Store>, Clock::system());
    let starting = tokio::task::spawn_blocking(move || Service::start(gated, POLICY, clock));
    let service =
        timeout(LONG, starting).await.expect("the start removes images").unwrap().unwrap();
    service.receipt(request("kept", "{}"), vec![]).await.unwrap();
    assert!(home(&dir, orphan).exists());
    store.gate.set_closed(false);
    until("the left ones stay", || !home(&dir, orphan).exists() && !trash.exists()).await;
    assert!(home(&dir, kept).exists());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_at_the_end_is_removed_before_it() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for n in 0..20 {
        post(&service, &format!("s{n}")).await;
    }
    for n in 0..20 {
        let delete = write_to(&format!("s{n}"), Command::Session(SessionCommand::Delete));
        service.receipt(delete, vec![]).await.unwrap();
    }
    stop(service).await;
    assert_eq!(fs::read_dir(dir.path().join("blobs")).unwrap().count(), 0);
}

/// A put may come after its session was deleted and its images were removed.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_a_deletion_overtook_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let old = post(&service, "s").await;
    let held = BusyWriter::new(&service).await;
    let delete = service.receipt(write_to("s", Command::Session(SessionCommand::Delete)), vec![]);
    let mut delete = Box::pin(delete);
    assert!(futures_util::poll!(&mut delete).is_pending());
    // Its image is stored under the session that is about to be deleted.
    let posting = {
        let service = service.clone();
        tokio::spawn(async move {
            let (write, images) = screenshot("s", b"late".to_vec());
            service.receipt(write, images).await.unwrap().board.id()
        })
    };
    until("it is not stored", || fs::read_dir(home(&dir, old)).unwrap().count() == 2).await;
    held.release().await;
    delete.await.unwrap();
    let new = posting.await.unwrap();
    assert_ne!(new, old);
    until("the old ones stay", || !home(&dir, old).exists()).await;
    assert!(home(&dir, new).exists());
    stop(service).await;
    assert!(crate::check(&open(dir.path())).unwrap().is_sound());
}
