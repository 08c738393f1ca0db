//! Emptied or overwritten files of a data directory: rejected with a remedy, never called sound.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::Connection;

use crate::harness::{Server, finished};

/// Its name, what it does, and what is said of it.
type Ruin = (&'static str, fn(&Path), &'static str);

/// What is done to the database, and what a salvage says then: if nothing is readable, it makes nothing.
const RUINS: [Ruin; 8] = [
    ("a changed magic", |file| write(file, 0, b"x"), "salvaged: 3 sessions whole"),
    ("no page size", |file| write(file, 16, &[0; 8]), "salvaged: 3 sessions whole"),
    ("the last page is cut off", |file| cut(file, 4096), "damaged: the database is truncated"),
    ("two pages and a half are cut off", |file| cut(file, 10_240), "salvaged: "),
    ("nothing is left", |file| fs::write(file, []).unwrap(), "is readable; restore a backup"),
    ("no row of its own", |file| execute(file, "DELETE FROM meta"), "meta row is damaged"),
    ("a short epoch", |file| execute(file, "UPDATE meta SET epoch = x'01'"), "meta row is damaged"),
    ("a table is gone", |file| execute(file, "DROP TABLE journal"), "table journal is missing"),
];

fn write(file: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

fn cut(file: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

fn execute(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute(sql, []).unwrap();
}

fn run(command: &[&str], data: &Path) -> (bool, String) {
    let out = finished(&[command, &["--data", data.to_str().unwrap()]].concat());
    (out.status.success(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

#[tokio::test]
async fn a_ruined_database_is_never_called_sound_and_is_salvaged() {
    let mut server = Server::start();
    for session in ["one", "two", "three"] {
        server.board(session).post("requests", "{}").await.is(201);
        let image = server.board(session);
        let image = image.typed(
            reqwest::Method::POST,
            "screenshots",
            "image/png",
            crate::images::noise(4, 4),
        );
        crate::answer::ask(image).await.is(201);
    }
    assert!(server.stop().success());
    let (data, database) = (server.data(), server.data().join("blackboard.db"));
    let whole = fs::read(&database).unwrap();
    for (ruin, spoil, told) in RUINS {
        for left in ["blackboard.db-wal", "blackboard.db-shm"] {
            fs::remove_file(data.join(left)).ok();
        }
        fs::write(&database, &whole).unwrap();
        spoil(&database);
        let to = data.with_file_name(ruin.replace(' ', "-"));
        let (is_whole, said) = run(&["salvage", "--to", to.to_str().unwrap()], &data);
        assert!(!is_whole && said.contains(told), "{ruin}: {said}");
        assert_eq!(to.exists(), told != "is readable; restore a backup", "{ruin}: {said}");
        let (is_sound, said) = run(&["check"], &data);
        assert!(!is_sound, "{ruin}: {said}");
        let (_, said) = run(&["serve", "--listen", "127.0.0.1:0"], &data);
        assert!(said.contains("blackboard salvage") || said.contains("a backup"), "{ruin}: {said}");
        assert!(!said.contains("SQLite failed"), "{ruin}: {said}");
    }
}
