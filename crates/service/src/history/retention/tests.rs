//! Tests of retention: exactly what the setting asks for is kept.

use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::tests::service::{board, name, request, start, stop, write_to};
use crate::{At, Service};
use blackboard_board::{Command, LogName, SessionCommand, Set, SettingsPatch};

const DEADLINE: Duration = Duration::from_secs(30);

async fn set(service: &Service, history: History) {
    let patch = SettingsPatch { history: Set::To(history), ..SettingsPatch::default() };
    let (settings, labels) = (Set::To(patch), Set::Keep);
    let command = Command::Session(SessionCommand::Put { settings, labels, qa_pairs: Vec::new() });
    service.receipt(write_to("s", command), Vec::new()).await.unwrap();
}

async fn fill(service: &Service, count: u64) {
    for n in 0..count {
        service.receipt(request("s", &format!("{{\"n\":{n}}}")), Vec::new()).await.unwrap();
    }
}

/// The oldest revision, as soon as it is above one.
async fn cut(service: &Service, above: u64) -> u64 {
    let begin = Instant::now();
    loop {
        let Revision(oldest) = board(service, "s").oldest();
        if oldest > above {
            return oldest;
        }
        assert!(begin.elapsed() < DEADLINE, "nothing was cut");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_revisions_are_kept_and_older_ones_are_gone() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    fill(&service, 50).await;
    let published = |service: &Service| service.published_here(&name("s")).unwrap().unwrap();
    let bytes = published(&service).history_bytes;
    // A past board that is at hand is of no use once its commits are gone.
    service.at("s").board_at(&published(&service), &At::Revision(Revision(2))).await.unwrap();
    set(&service, History::Revisions(10)).await;
    assert_eq!(cut(&service, 0).await, 41);
    assert!(published(&service).history_bytes < bytes / 2);
    let then = async |at| {
        service.at("s").board_at(&published(&service), &At::Revision(Revision(at))).await
    };
    assert!(matches!(then(40).await, Err(ServiceError::Compacted { oldest: Revision(41) })));
    for at in 41..=51 {
        let requests = then(at).await.unwrap().log(&LogName::Requests).unwrap().len();
        assert_eq!(requests as u64, at.min(50));
    }
    fill(&service, 3).await;
    let live = board(&service, "s");
    stop(service).await;
    let again = start(dir.path());
    assert_eq!(board(&again, "s"), live);
    stop(again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_bytes_are_kept_and_what_is_younger() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    set(&service, History::Bytes(4096)).await;
    fill(&service, 60).await;
    cut(&service, 0).await;
    let kept = service.published_here(&name("s")).unwrap().unwrap().history_bytes;
    assert!(kept >= 4096, "{kept}");
    stop(service).await;

    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    fill(&service, 20).await;
    set(&service, History::Age("1ms".parse().unwrap())).await;
    assert!(cut(&service, 0).await >= 20);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_leaves_the_board_and_nothing_of_its_past() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    fill(&service, 20).await;
    let before = board(&service, "s");
    assert_eq!(service.at("s").purge(None).await.unwrap(), Revision(20));
    let published = service.published_here(&name("s")).unwrap().unwrap();
    assert_eq!((published.board.oldest(), published.history_bytes), (Revision(20), 0));
    assert_eq!(published.board.version(), before.version());
    let then = service.at("s").board_at(&published, &At::Revision(Revision(19))).await;
    assert!(matches!(then, Err(ServiceError::Compacted { .. })));
    assert_eq!(service.at("s").purge(None).await.unwrap(), Revision(20));
    fill(&service, 1).await;
    let live = board(&service, "s");
    stop(service).await;
    let again = start(dir.path());
    assert_eq!(board(&again, "s"), live);
    stop(again).await;
}
