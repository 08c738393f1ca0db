//! Tests of hostile archives: each is rejected or becomes a valid session.

use tempfile::TempDir;

use super::archive::*;
use crate::tests::clock::open;
use crate::tests::cramped::Cramped;
use crate::tests::service::*;
use crate::*;
use blackboard_board::*;
use blackboard_clock::Clock;
use blackboard_store::Store;

/// Some of a rich archive's faults: a line left out, doubled, or in another one's place, a byte changed.
fn harmed(archive: &str) -> Vec<Vec<u8>> {
    let lines: Vec<&str> = archive.lines().collect();
    let joined = |lines: &[&str]| (lines.join("\n") + "\n").into_bytes();
    let mut all = Vec::new();
    for index in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(index);
        all.push(joined(&without));
        let mut twice = lines.clone();
        twice.insert(index, lines[index]);
        all.push(joined(&twice));
        if index > 0 {
            let mut swapped = lines.clone();
            swapped.swap(index - 1, index);
            all.push(joined(&swapped));
        }
        all.push(joined(&lines[..index]));
    }
    for at in (0..archive.len()).step_by(61) {
        let mut changed = archive.as_bytes().to_vec();
        changed[at] ^= 1 << (at % 8);
        all.push(changed);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_harmed_archive_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let store: Arc<dyn Store> = Arc::new(Cramped::uncompacted(dir.path()));
    let service = Service::start(Arc::clone(&store), POLICY, Clock::system()).unwrap();
    rich(&service, "s").await;
    let archive = out(&service, "s").await;
    service.at("f").fork(Terms::default(), board_of(&service, "s"), name("s"), None).await.unwrap();
    let forked = out(&service, "f").await;
    let mut before = left(&*store, dir.path());
    let mut equal = 0;
    for archive in [&archive, &forked] {
        for harmed in harmed(archive) {
            let shown = String::from_utf8_lossy(&harmed).into_owned();
            let Err(refused) = bring_in(&service, "t", &harmed, usize::MAX).await else {
                // The logs of a base may come in another order, which says the same.
                assert_eq!(out(&service, "t").await, *archive, "{shown}");
                delete(&service, "t").await;
                before = left(&*store, dir.path());
                equal += 1;
                continue;
            };
            assert!(matches!(refused, ServiceError::Archive { .. }), "{refused} {shown}");
            assert!(
                matches!(refused.code(), Code::InvalidJson | Code::InvalidField),
                "{refused} {shown}"
            );
            assert_eq!(service.status().sessions, 2, "{shown}");
        }
        assert_eq!(left(&*store, dir.path()), before);
    }
    assert!(equal < 10, "{equal}");
    assert_eq!(bring_in(&service, "t", forked.as_bytes(), 50).await.map(drop).ok(), Some(()));
    stop(service).await;
    drop(store);
    let soundness = check(&open(dir.path())).unwrap();
    assert!(soundness.is_sound(), "{soundness:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_line() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    rich(&service, "s").await;
    let archive = out(&service, "s").await;
    for (index, line) in archive.lines().enumerate().skip(1) {
        let harmed = archive.replacen(line, &line.replacen(':', ";", 1), 1);
        let refused = bring_in(&service, "t", harmed.as_bytes(), 33).await.unwrap_err();
        let ServiceError::Archive { line, .. } = refused else { panic!("{refused}") };
        assert_eq!(line, index + 1);
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let mut import = service.at("t").import().await.unwrap();
    let mut pushed = 0;
    while import.push(vec![b'x'; 1 << 20]).await {
        pushed += 1;
        assert!(pushed < 80, "more than a line may have");
    }
    let refused = import.finish().await.unwrap_err();
    assert_eq!(refused.code(), Code::CommitTooLarge, "{refused}");
    stop(service).await;
}
