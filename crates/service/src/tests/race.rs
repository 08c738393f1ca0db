//! Tests of concurrent writers: acknowledged writes are never lost.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tempfile::TempDir;

use super::service::*;
use crate::*;
use blackboard_board::{
    LogName, Rejected, Revision, Seq, SessionCommand, Set, SettingsPatch, json,
};

/// One session is deleted again and again while screenshots are posted to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_acknowledged_screenshot_has_its_image() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let done = Arc::new(AtomicBool::new(false));
    let poster = |poster: u32| {
        let service = service.clone();
        tokio::spawn(async move {
            for n in 0..50 {
                // Half of the images are those of others too.
                let poster = if n % 2 == 0 { 0 } else { poster };
                post_and_read(&service, format!("{n} by {poster}")).await;
            }
        })
    };
    let deleter = || {
        let (service, done) = (service.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                match service
                    .receipt(write_to("s", Command::Session(SessionCommand::Delete)), vec![])
                    .await
                {
                    Ok(_) | Err(ServiceError::Rejected { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        })
    };
    let deleters = [deleter(), deleter()];
    let posters = join_all((0..8).map(poster)).await;
    done.store(true, Ordering::Relaxed);
    for ended in posters.into_iter().chain(join_all(deleters).await) {
        ended.unwrap();
    }
    for last in ["a", "b"] {
        post_and_read(&service, last.to_owned()).await;
    }
    stop(service).await;
}

async fn post_and_read(service: &Service, image: String) {
    let receipt = loop {
        let (write, images) = screenshot("s", image.clone().into_bytes());
        match service.receipt(write, images).await {
            Ok(receipt) => break receipt,
            // Deleted under it eight times in a row: the caller tries again.
            Err(ServiceError::Overloaded) => {}
            Err(other) => panic!("{other:?}"),
        }
    };
    for entry in receipt.board.log(&LogName::Screenshots).unwrap().iter() {
        match service.at("s").image(&receipt.board, entry.item.image().unwrap()).await {
            Ok(bytes) => assert!(!bytes.is_empty()),
            Err(ServiceError::Rejected { rejected: Rejected::NoSession { .. }, .. }) => {
                let now = service.published_here(&name("s")).unwrap();
                assert!(now.is_none_or(|now| now.board.id() != receipt.board.id()));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_sessions_identity_never_comes_again() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let mut known = std::collections::HashSet::new();
    for round in 0..60_u32 {
        let (post, images) = screenshot("s", round.to_be_bytes().to_vec());
        let made = service.receipt(post, images).await.unwrap();
        assert!(known.insert(made.board.id()));
        let (post, images) = screenshot("s", b"later".to_vec());
        let delete = write_to("s", Command::Session(SessionCommand::Delete));
        let (posted, deleted) =
            tokio::join!(service.receipt(post, images), service.receipt(delete, vec![]));
        deleted.unwrap();
        let posted = posted.unwrap().board.id();
        if posted != made.board.id() {
            assert!(known.insert(posted));
            service
                .receipt(write_to("s", Command::Session(SessionCommand::Delete)), vec![])
                .await
                .unwrap();
        }
        assert!(service.published_here(&name("s")).unwrap().is_none());
    }
    stop(service).await;
}

async fn patch(service: &Service, patch: Patch) -> Result<Receipt, ServiceError> {
    let Write { terms, .. } = request("s", "{}");
    match service.at("s").patch_entry(terms, LogName::Requests, Seq(1), &patch, None).await? {
        Reply::Now(receipt) => Ok(receipt),
        Reply::Before(answer) => panic!("answered before: {answer:?}"),
    }
}

fn entry_text(service: &Service) -> String {
    let board = board(service, "s");
    board.log(&LogName::Requests).unwrap().get(Seq(1)).unwrap().item.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_patches_of_one_entry_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let patcher = |task: u32| {
        let service = service.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let merge = Patch::Merge(format!(r#"{{"{task}.{n}":{n}}}"#));
                patch(&service, merge).await.expect("a patch that is well formed");
            }
        })
    };
    for done in join_all((0..32).map(patcher)).await {
        done.unwrap();
    }
    assert_eq!(json::members(&entry_text(&service)).count(), 32 * 20);
    assert_eq!(board(&service, "s").revision(), Revision(641));
    assert_eq!(service.inner.patches.len(), 0);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compared_and_set_increments_of_one_entry_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", r#"{"n":0}"#), vec![]).await.unwrap();
    let incrementer = || {
        let service = service.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                loop {
                    let text = entry_text(&service);
                    let n: u32 = json::get(&text, "n").unwrap().parse().unwrap();
                    let operations = format!(
                        r#"[{{"op":"test","path":"/n","value":{n}}},{{"op":"replace","path":"/n","value":{}}}]"#,
                        n + 1
                    );
                    match patch(&service, Patch::Json(operations)).await {
                        Ok(_) => break,
                        Err(ServiceError::Patch { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        })
    };
    for done in join_all((0..8).map(|_| incrementer())).await {
        done.unwrap();
    }
    assert_eq!(entry_text(&service), r#"{"n":80}"#);
    stop(service).await;
}

/// A session that drops screenshots stores none of their images; one that keeps them again meanwhile
/// has every image that it names.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_screenshot_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(write_to("s", keeps(false)), vec![]).await.unwrap();
    let (post, images) = screenshot("s", b"dropped".to_vec());
    let dropped = service.receipt(post, images).await.unwrap();
    assert!(!dropped.committed);
    let homes = std::fs::read_dir(dir.path().join("blobs")).unwrap();
    assert_eq!(homes.count(), 0);

    let toggler = {
        let service = service.clone();
        tokio::spawn(async move {
            for n in 0..200 {
                service.receipt(write_to("s", keeps(n % 2 == 0)), vec![]).await.unwrap();
            }
        })
    };
    for n in 0..100_u32 {
        let (post, images) = screenshot("s", n.to_be_bytes().to_vec());
        let receipt = service.receipt(post, images).await.unwrap();
        for entry in receipt.board.log(&LogName::Screenshots).unwrap().iter() {
            service.at("s").image(&receipt.board, entry.item.image().unwrap()).await.unwrap();
        }
    }
    toggler.await.unwrap();
    stop(service).await;
}

fn keeps(keeps: bool) -> Command {
    let patch = SettingsPatch { screenshot_to_memory: Set::To(keeps), ..SettingsPatch::default() };
    Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs: vec![],
    })
}
