//! Images without known sessions: quarantined after a lost log, never taken for a new store.

use std::fs;
use std::path::Path;

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Server, finished};
use crate::images::noise;
use crate::pages::contents;

async fn with_image(server: &Server, session: &str) {
    let image = server.board(session).typed(Method::POST, "screenshots", "image/png", noise(4, 4));
    ask(image).await.is(201);
}

fn lose_log(data: &Path) {
    fs::remove_file(data.join("blackboard.db-shm")).ok();
    fs::remove_file(data.join("blackboard.db-wal")).unwrap();
}

fn refused(arguments: &[&str]) -> String {
    let refused = finished(arguments);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap()
}

#[tokio::test]
async fn images_beside_a_lost_log_and_no_sessions_make_no_new_store() {
    let mut server = Server::start();
    with_image(&server, "s").await;
    server.kill();
    let data = server.data();
    fs::remove_file(data.join("control.sock")).ok();
    let log = fs::read(data.join("blackboard.db-wal")).unwrap();
    lose_log(&data);
    for is_empty in [false, true] {
        if is_empty {
            fs::write(data.join("blackboard.db-wal"), "").unwrap();
        }
        let left = contents(&data);
        let path = data.to_str().unwrap();
        let told = refused(&["check", "--data", path]);
        assert!(told.contains("blackboard.db-wal is missing or empty"), "{told}");
        let told = refused(&["serve", "--listen", "127.0.0.1:0", "--data", path]);
        assert!(told.contains("nothing was changed"), "{told}");
        assert_eq!(contents(&data), left);
    }
    fs::write(data.join("blackboard.db-wal"), log).unwrap();
    server.start_again();
    server.board("s").get("").await.is(200);
}

#[tokio::test]
async fn an_image_of_a_killed_write_does_not_stop_a_start() {
    let mut server = Server::start();
    server.kill();
    let home = server.data().join("blobs/0123456789abcdef0123456789abcdef");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("ab".repeat(32)), "an image").unwrap();
    server.start_again();
    server.board("s").post("requests", "{}").await.is(201);
    assert!(!server.data().join("lost-images").exists());
}

#[tokio::test]
async fn images_of_sessions_that_went_with_the_log_are_kept() {
    // With a sync of each commit a lost log refuses the start.
    let mut server = Server::start_with(&["--sync", "normal"]);
    server.board("known").post("requests", "{}").await.is(201);
    assert!(server.stop().success());
    server.start_again();
    server.board("known").post("requests", "{}").await.is(201);
    with_image(&server, "unknown").await;
    server.kill();
    let data = server.data();
    lose_log(&data);
    server.start_again();
    server.board("known").get("").await.is(200);
    server.board("unknown").get("").await.is(404);
    let kept = contents(&data.join("lost-images"));
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].1, noise(4, 4));
}
