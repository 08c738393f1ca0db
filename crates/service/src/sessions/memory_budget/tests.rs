//! Tests of eviction: freeing and counting of boards.

use tempfile::TempDir;

use crate::tests::service::*;

use super::*;
use blackboard_board::SessionCommand;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_board_that_was_deleted_is_freed_beside_the_writer() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let inner = &service.inner;
    // Nobody frees anything before this test does.
    inner.sessions.memory.signal.stop();

    let bytes = usize::try_from(2 * FREED_AT_ONCE_MAX).unwrap();
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    service.receipt(request("s", &large), vec![]).await.unwrap();
    let former = Arc::downgrade(&board(&service, "s"));
    service.receipt(write_to("s", Command::Session(SessionCommand::Delete)), vec![]).await.unwrap();
    let left = inner.sessions.memory.held();
    assert!(former.upgrade().is_some(), "it was freed at once");
    inner.sessions.memory.free_leaving();
    assert!(former.upgrade().is_none());
    assert!(left - inner.sessions.memory.held() >= large.len(), "it counts until it is freed");
    stop(service).await;
}
