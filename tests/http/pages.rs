//! Changed bits at the beginning of database pages: every command ends, and agrees with `serve`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::answer::ask;
use crate::harness::{Server, blackboard, finished};
use crate::images::noise;

const PAGE: usize = 4096;

/// Where SQLite's header of the first page ends, and that of its b-tree begins.
const HEADER: usize = 100;

/// How many look at pages at once.
const LOOKERS: usize = 4;

/// A store of one run that stopped.
async fn stopped() -> Server {
    let mut server = Server::start();
    for session in ["one", "two", "three"] {
        let board = server.board(session);
        for n in 0..20 {
            let text = "text ".repeat(20);
            board.post("requests", &format!("{{\"n\":{n},\"text\":\"{text}\"}}")).await.is(201);
        }
        let image = board.typed(reqwest::Method::POST, "screenshots", "image/png", noise(4, 4));
        ask(image).await.is(201);
    }
    assert!(server.stop().success());
    server
}

/// All files below a directory, with their bytes.
pub(crate) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else if path.is_file() {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn copied(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let copy = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
}

fn run(command: &[&str], data: &Path) -> (bool, String) {
    let out = finished(&[command, &["--data", data.to_str().unwrap()]].concat());
    (out.status.success(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

/// Whether a server starts, which is killed then.
fn starts(data: &Path) -> bool {
    let mut child = blackboard(&["serve", "--listen", "127.0.0.1:0", "--log", "info", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_up = lines.map_while(Result::ok).any(|line| line.contains("listening"));
    child.kill().ok();
    child.wait().unwrap();
    is_up
}

/// Changes the bit, and tells what is wrong with what is said of it.
fn meet(whole: &Path, at: usize) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("salvaged"));
    copied(whole, &data);
    let database = data.join("blackboard.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[at] ^= 4;
    fs::write(&database, bytes).unwrap();
    let (before, mut wrong) = (contents(&data), Vec::new());
    let mut check = |is_so: bool, what: &str| {
        if !is_so {
            wrong.push(format!("byte {at}: {what}"));
        }
    };
    let (is_sound, told) = run(&["check"], &data);
    check(!is_sound && !told.contains("\nsound:"), &told);
    check(told.contains("blackboard salvage") || told.contains("a backup"), &told);
    let (_, said) = run(&["salvage", "--to", to.to_str().unwrap()], &data);
    check(to.exists() || said.contains("restore a backup"), &said);
    if to.exists() {
        let (is_sound, told) = run(&["check"], &to);
        check(is_sound, &format!("what was salvaged: {told}"));
    }
    check(contents(&data) == before, "a look has changed something");
    if !starts(&data) {
        check(contents(&data) == before, "a refused start has changed something");
    }
    wrong
}

#[tokio::test]
async fn a_changed_bit_where_a_page_begins_is_found_by_every_command() {
    let server = stopped().await;
    let data = server.data();
    let pages = fs::read(data.join("blackboard.db")).unwrap().len() / PAGE;
    assert!(pages > 10, "{pages} pages");
    let places = (0..pages).map(|page| if page == 0 { HEADER } else { page * PAGE });
    let places: Vec<usize> = places.collect();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let share = places.len().div_ceil(LOOKERS);
        let data = &data;
        let lookers: Vec<_> = places
            .chunks(share)
            .map(|some| {
                scope.spawn(move || some.iter().flat_map(|at| meet(data, *at)).collect::<Vec<_>>())
            })
            .collect();
        lookers.into_iter().flat_map(|looker| looker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
