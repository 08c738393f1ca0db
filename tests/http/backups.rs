//! Backups and checks beside a running server: sound, complete, and never half visible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use reqwest::Method;
use tokio::task::JoinHandle;

use crate::answer::ask;
use crate::crash_load::picture;
use crate::harness::{Board, DEADLINE, Server, blackboard, finished};
use crate::images::noise;

fn run(command: &str, data: &Path, arguments: &[&str]) -> Output {
    let data = data.to_str().expect("a path");
    finished(&[&[command, "--data", data], arguments].concat())
}

fn back_up(data: &Path, to: &Path) -> Output {
    run("backup", data, &["--to", to.to_str().expect("a path")])
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// A server on a copy of that directory.
fn served(data: &Path) -> Server {
    let mut server = Server::start();
    assert!(server.stop().success());
    fs::remove_dir_all(server.data()).expect("removed");
    fs::create_dir_all(server.data().join("blobs")).expect("made");
    fs::copy(data.join("blackboard.db"), server.data().join("blackboard.db")).expect("copied");
    for home in fs::read_dir(data.join("blobs")).expect("a directory") {
        let home = home.expect("an entry").path();
        let to = server.data().join("blobs").join(home.file_name().expect("a name"));
        fs::create_dir(&to).expect("made");
        for blob in fs::read_dir(&home).expect("a directory") {
            let blob = blob.expect("an entry").path();
            fs::copy(&blob, to.join(blob.file_name().expect("a name"))).expect("copied");
        }
    }
    server.start_again();
    server
}

fn beside(server: &Server, name: &str) -> PathBuf {
    server.data().with_file_name(name)
}

/// Writers of which each counts what was acknowledged.
struct Writers {
    acknowledged: Arc<[AtomicUsize; 8]>,
    ended: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(server: &Server) -> Self {
        let acknowledged: Arc<[AtomicUsize; 8]> = Arc::default();
        let ended = Arc::new(AtomicBool::new(false));
        let tasks = (0..8).map(|writer| {
            let (board, counts) = (server.board(&format!("w{writer}")), Arc::clone(&acknowledged));
            let ended = Arc::clone(&ended);
            tokio::spawn(async move {
                for n in 0.. {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    write(&board, writer, n).await;
                    counts[writer].store(n + 1, Ordering::SeqCst);
                }
            })
        });
        let tasks = tasks.collect();
        Self { acknowledged, ended, tasks }
    }

    fn acknowledged(&self) -> Vec<usize> {
        self.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    async fn busy(&self) {
        while self.acknowledged().iter().any(|count| *count < 20) {
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        self.ended.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.expect("a writer ends well");
        }
    }
}

/// Four append items, two screenshots, and two screenshots whose session they then delete.
async fn write(board: &Board, writer: usize, n: usize) {
    if writer < 4 {
        board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
        return;
    }
    let image = if writer < 6 { picture(n as u64) } else { noise(20, 10) };
    ask(board.typed(Method::POST, "screenshots", "image/png", image)).await.is(201);
    if writer >= 6 {
        board.delete("").await.is(200);
    } else if n % 10 == 9 {
        ask(board.to(Method::POST, "purge")).await.is(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_load_have_all_that_was_acknowledged_before() {
    let server = Server::start();
    let writers = Writers::start(&server);
    writers.busy().await;
    let mut made = Vec::new();
    for n in 0..4 {
        let before = writers.acknowledged();
        let to = beside(&server, &format!("backup-{n}"));
        let data = server.data();
        let (output, to) =
            tokio::task::spawn_blocking(move || (back_up(&data, &to), to)).await.expect("it ran");
        succeeds(&output);
        made.push((to, before));
    }
    let data = server.data();
    let checked = tokio::task::spawn_blocking(move || run("check", &data, &[])).await;
    succeeds(&checked.expect("it ran"));
    writers.end().await;
    for (to, before) in &made {
        succeeds(&run("check", to, &[]));
        let restored = served(to);
        for (writer, least) in before.iter().enumerate().take(6) {
            let log = if writer < 4 { "requests" } else { "screenshots" };
            let page = restored.board(&format!("w{writer}")).get(&format!("{log}?limit=1")).await;
            let count = page.is(200).json()["count"].as_u64().expect("a count");
            assert!(count >= *least as u64, "{log} of {writer}: {count} < {least}");
        }
    }
    succeeds(&run("check", &server.data(), &[]));
}

#[tokio::test]
async fn a_backup_without_a_server_has_equal_boards_and_new_tags() {
    let mut server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    ask(board.typed(Method::POST, "screenshots", "image/png", noise(20, 10))).await.is(201);
    let before = board.get("requests").await;
    let whole = board.dictionary().await;
    assert!(server.stop().success());
    let to = beside(&server, "backup");
    succeeds(&back_up(&server.data(), &to));
    succeeds(&run("check", &to, &[]));
    let (one, two) = (served(&to), served(&to));
    let mut tags = vec![before.etag()];
    for restored in [one, two] {
        let board = restored.board("s");
        assert_eq!(board.dictionary().await, whole);
        let known = board.to(Method::GET, "requests").header("if-none-match", before.etag());
        tags.push(ask(known).await.is(200).etag());
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
    server.start_again();
    assert_eq!(server.board("s").get("requests").await.etag(), before.etag());
}

#[tokio::test]
async fn a_backup_has_no_more_than_database_and_images() {
    let server = Server::start();
    server.made("s").await;
    fs::write(server.data().join("admin-token"), "bb_canary").expect("written");
    let to = beside(&server, "backup");
    succeeds(&back_up(&server.data(), &to));
    let mut names: Vec<_> = fs::read_dir(&to)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["blackboard.db", "blobs"]);
    // Once more would write over it.
    let again = back_up(&server.data(), &to);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(said(&again), occupied(&to));
    let within = back_up(&server.data(), &server.data().join("backup"));
    assert!(said(&within).contains("is inside the data directory"), "{}", said(&within));
    assert_eq!(within.status.code(), Some(1));
}

/// The refusal of a path that exists.
fn occupied(to: &Path) -> String {
    format!("error: {} already exists; choose another path or remove it\n", to.display())
}

#[tokio::test]
async fn an_existing_destination_is_refused_in_the_same_words() {
    let mut server = Server::start();
    server.made("s").await;
    let (file, full, empty) = (beside(&server, "f"), beside(&server, "d"), beside(&server, "e"));
    fs::write(&file, "kept").expect("written");
    fs::create_dir(&full).expect("made");
    fs::write(full.join("s.ndjson"), "kept").expect("written");
    let writers: [&[&str]; 3] = [&["backup"], &["export", "s"], &["export", "--all"]];
    let run = |server: &Server, writer: &[&str], to: &Path| {
        let (data, to) = (server.data(), to.to_str().expect("a path"));
        finished(&[writer, &["--to", to, "--data", data.to_str().expect("a path")]].concat())
    };
    for is_served in [true, false] {
        if !is_served {
            assert!(server.stop().success());
        }
        for (writer, to) in
            writers.into_iter().flat_map(|writer| [(writer, &file), (writer, &full)])
        {
            let refused = run(&server, writer, to);
            assert_eq!(refused.status.code(), Some(1), "{writer:?}");
            assert_eq!(said(&refused), occupied(to), "{writer:?}, served: {is_served}");
        }
        for writer in [&["backup"] as &[&str], &["export", "--all"]] {
            fs::create_dir(&empty).expect("made");
            succeeds(&run(&server, writer, &empty));
            fs::remove_dir_all(&empty).expect("removed");
        }
    }
    for kept in [file, full.join("s.ndjson")] {
        assert_eq!(fs::read_to_string(kept).expect("a file"), "kept");
    }
    let salvage = run(&server, &["salvage"], &full);
    assert_eq!(said(&salvage), occupied(&full));
}

/// A server whose database takes a moment to be copied.
async fn large() -> Server {
    let server = Server::start();
    let item = format!("{{\"x\":\"{}\"}}", "x".repeat(900_000));
    for _ in 0..30 {
        server.board("s").post("requests", &item).await.is(201);
    }
    server
}

/// The backups beside a directory that are not whole.
fn unfinished(to: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(to.parent().expect("a parent")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "partial")).collect()
}

/// Asks for a backup; there is something of it when this returns.
fn begin_backup(server: &Server, to: &Path) -> Child {
    let client = blackboard(&["backup", "--data"])
        .arg(server.data())
        .arg("--to")
        .arg(to)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    until(|| !unfinished(to).is_empty() || to.exists());
    client
}

fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "it does not come to that");
        thread::yield_now();
    }
}

#[tokio::test]
async fn a_backup_cut_short_by_a_kill_does_not_open() {
    let mut server = large().await;
    for n in 0..4 {
        let to = beside(&server, &format!("backup-{n}"));
        let mut client = begin_backup(&server, &to);
        if n == 3 {
            until(|| to.exists());
        }
        server.kill();
        let is_done = client.wait().expect("an end").success();
        assert!(!is_done || to.exists());
        for path in unfinished(&to) {
            // An empty directory is one like any other.
            if fs::read_dir(&path).expect("a directory").next().is_some() {
                assert_eq!(run("check", &path, &[]).status.code(), Some(1));
                let served = run("serve", &path, &["--listen", "127.0.0.1:0"]);
                assert_eq!(served.status.code(), Some(1), "a broken backup is served");
            }
            fs::remove_dir_all(path).expect("removed");
        }
        if to.exists() {
            succeeds(&run("check", &to, &[]));
        }
        server.start_again();
    }
    assert_eq!(server.board("s").get("requests?limit=1").await.json()["count"], 30);
}

#[tokio::test]
async fn a_backup_ends_with_its_server_or_its_client() {
    let mut server = large().await;
    let to = beside(&server, "nobody-waits");
    let mut client = begin_backup(&server, &to);
    client.kill().expect("killed");
    client.wait().expect("an end");
    until(|| unfinished(&to).is_empty());
    let to = beside(&server, "the-server-ends");
    let mut client = begin_backup(&server, &to);
    assert!(server.stop().success());
    let is_done = client.wait().expect("an end").success();
    assert!(!is_done || to.exists());
    assert_eq!(unfinished(&to), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn check_beside_a_server_finds_damage_and_leaves_nothing() {
    let server = Server::start();
    let board = server.board("s");
    let image = noise(60, 50);
    ask(board.typed(Method::POST, "screenshots", "image/png", image)).await.is(201);
    let sound = run("check", &server.data(), &[]);
    succeeds(&sound);
    assert_eq!(said(&sound), "sound: 1 commits, 1 sessions, 1 images\n");
    let home = fs::read_dir(server.data().join("blobs")).expect("blobs").next();
    let home = home.expect("a session").expect("an entry").path();
    let blob = fs::read_dir(home).expect("a directory").next().expect("a blob").unwrap().path();
    let mut bytes = fs::read(&blob).expect("bytes");
    bytes[100] ^= 1;
    fs::write(&blob, bytes).expect("written");
    let found = run("check", &server.data(), &[]);
    assert_eq!(found.status.code(), Some(1));
    assert!(said(&found).contains("damaged: image "), "{}", said(&found));
    assert!(said(&found).contains("is damaged in 1 places"), "{}", said(&found));
    board.post("requests", "{}").await.is(201);
}
