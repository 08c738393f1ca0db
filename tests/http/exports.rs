//! `export` and `import`: through a running server and without one.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::answer::ask;
use crate::harness::{Board, Server, blackboard, client, finished};
use crate::matrix::token;

fn run(data: &Path, arguments: &[&str]) -> Output {
    let data = data.to_str().expect("a path");
    finished(&[arguments, &["--data", data]].concat())
}

/// Runs a command on a server's store.
fn on(server: &Server, arguments: &[&str]) -> Output {
    let [flag, place] = server.place();
    let output = finished(&[arguments, &[&*flag, &*place]].concat());
    server.settle();
    output
}

fn done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// What a command that is to fail says, which is one line for a person.
fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error: ") && !said.contains("panicked"), "{said}");
    said
}

/// A session with a bit of everything, and its archive by HTTP.
async fn archived(board: &Board) -> String {
    board.post("requests", r#"[{"n":1E5},{"text" : "é"}]"#).await.is(201);
    board.post("screenshots", r#"{"image_str":"data:image/png;base64,YWJj"}"#).await.is(201);
    board.post("agents/A/memory", r#"{"cost":0.5}"#).await.is(201);
    board.get("archive").await.is(200).text().to_owned()
}

#[tokio::test]
async fn a_session_goes_out_and_in_by_the_running_server() {
    let server = Server::start();
    let archive = archived(&server.board("a é")).await;
    let output = on(&server, &["export", "a é"]);
    done(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), archive);

    let file = server.data().with_file_name("a.ndjson");
    let to = file.to_str().expect("a path");
    assert!(on(&server, &["export", "a é", "--to", to]).stdout.is_empty());
    assert_eq!(fs::read_to_string(&file).expect("a file"), archive);
    let said = done(&on(&server, &["import", "copy", "--from", to]));
    assert_eq!(said, "imported copy at revision 4\n");
    let copy = server.board("copy");
    assert_eq!(copy.get("archive").await.is(200).text(), archive);
    copy.get("screenshots/1/image").await.is(200);
}

#[tokio::test]
async fn commands_show_names_as_the_log_does() {
    const NAME: &str = "s\u{202e}\u{200b}\u{2066}e";
    const SHOWN: &str = "s\\u202e\\u200b\\u2066e";
    let server = Server::start();
    server.board(NAME).post("requests", "{}").await.is(201);
    let dir = server.data().with_file_name("out");
    let to = dir.to_str().expect("a path");
    let shows = |arguments: &[&str]| {
        let output = on(&server, arguments);
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        let said = said.concat();
        assert!(said.contains(SHOWN) && said.is_ascii(), "{arguments:?}: {said}");
    };
    shows(&["export", "--all", "--to", to]);
    shows(&["import", "--all", "--from", to]);
    shows(&[
        "import",
        &format!("{NAME}2"),
        "--from",
        &format!("{to}/s%E2%80%AE%E2%80%8B%E2%81%A6e.ndjson"),
    ]);
    shows(&["export", &format!("{NAME}3")]);
    shows(&["token", "create", "--name", NAME, "--agent", NAME, "--sessions", NAME, "--anyway"]);
    shows(&["token", "list"]);
    shows(&["token", "list", "--json"]);
    shows(&["token", "revoke", NAME]);
}

#[tokio::test]
async fn a_session_goes_out_and_in_without_a_server() {
    let mut server = Server::start();
    let archive = archived(&server.board("s")).await;
    assert!(server.stop().success());
    let output = on(&server, &["export", "s"]);
    done(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), archive);

    let elsewhere = server.data().with_file_name("elsewhere");
    let mut import =
        blackboard(&["import", "s", "--create", "--data", elsewhere.to_str().expect("a path")])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the binary runs");
    import.stdin.take().expect("its input").write_all(archive.as_bytes()).expect("written");
    assert!(import.wait().expect("an end").success());
    let output = run(&elsewhere, &["export", "s"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), archive);
    done(&run(&elsewhere, &["check"]));
}

#[tokio::test]
async fn only_serve_makes_a_data_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("s.ndjson");
    fs::write(&archive, "").expect("written");
    let absent = dir.path().join("absent");
    let name = ["--name", "a", "--scopes", "admin"];
    let create = [&["token", "create"], &name[..]].concat();
    let import = ["import", "s", "--from", archive.to_str().expect("a path")];
    for command in [&create[..], &import] {
        let said = failed(&run(&absent, command));
        assert!(said.contains("is not a data directory") && said.contains("--create"), "{said}");
        assert!(!absent.exists(), "{command:?}");
    }
    done(&run(&absent, &[&create[..], &["--create"]].concat()));
    assert!(absent.join("blackboard.db").is_file());
}

#[tokio::test]
async fn a_start_on_a_busy_port_leaves_no_data_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = taken.local_addr().expect("an address").to_string();
    for option in ["--listen", "--metrics-listen"] {
        let absent = dir.path().join("absent");
        let mut arguments = vec!["serve", option, &listen];
        if option != "--listen" {
            arguments.extend(["--listen", "127.0.0.1:0"]);
        }
        let said = failed(&run(&absent, &arguments));
        assert!(said.contains(&format!("cannot listen on {listen}")), "{said}");
        assert!(!absent.exists(), "{option}");
    }
}

#[tokio::test]
async fn no_permission_is_not_no_data_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    // A file in place of a parent directory is absence; a name that is too long cannot be looked up at all.
    let long = dir.path().join("x".repeat(300));
    let said = failed(&run(&long, &["export", "s"]));
    assert!(said.contains("cannot read the data directory"), "{said}");
    let said = failed(&run(&long, &["serve", "--listen", "127.0.0.1:0"]));
    assert!(said.contains("cannot read the data directory"), "{said}");
}

#[tokio::test]
async fn all_sessions_go_out_and_in() {
    let server = Server::start();
    let names = ["a é", ".hidden", "100%", "demo"];
    for name in names {
        server.board(name).post("requests", "{}").await.is(201);
    }
    let dir = server.data().with_file_name("archives");
    let dir = dir.to_str().expect("a path");
    done(&on(&server, &["export", "--all", "--to", dir]));
    let mut files: Vec<String> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    files.sort();
    assert_eq!(files, [".hidden.ndjson", "100%25.ndjson", "a%20%C3%A9.ndjson", "demo.ndjson"]);

    let other = Server::start();
    done(&on(&other, &["import", "--all", "--from", dir]));
    for name in names {
        let (one, two) = (server.board(name), other.board(name));
        assert_eq!(one.get("archive").await.text(), two.get("archive").await.is(200).text());
    }
    // They are there already: each is told, and nothing changed.
    let said = failed(&on(&other, &["import", "--all", "--from", dir]));
    assert_eq!(said.lines().count(), names.len() + 1, "{said}");
    assert!(said.ends_with("error: 4 files were not imported\n"), "{said}");
}

#[tokio::test]
async fn tokens_go_out_and_in_with_all_sessions() {
    let server = Server::start();
    let secret = token(&server, &["create", "--name", "admin", "--scopes", "admin"]);
    let revoked = token(&server, &["create", "--name", "gone", "--scopes", "read"]);
    done(&on(&server, &["token", "revoke", "gone"]));
    let dir = server.data().with_file_name("moved");
    let dir = dir.to_str().expect("a path");
    done(&on(&server, &["export", "--all", "--to", dir]));
    let file = fs::read_to_string(format!("{dir}/tokens.jsonl")).expect("a file");
    assert!(!file.contains(&secret) && file.lines().count() == 2, "{file}");

    let other = Server::start();
    other.get("/v1/sessions").await.is(200);
    done(&on(&other, &["import", "--all", "--from", dir]));
    let with = |secret: &str| {
        let url = format!("http://{}/v1/sessions", other.authority());
        ask(client().get(url).bearer_auth(secret.to_owned()))
    };
    with(&secret).await.is(200);
    with(&revoked).await.problem(401, "unauthorized");
    let bare = client().get(format!("http://{}/v1/sessions", other.authority()));
    ask(bare).await.problem(401, "unauthorized");
    // Again: they are there already.
    done(&on(&other, &["import", "--all", "--from", dir]));
    fs::write(format!("{dir}/tokens.jsonl"), "{}\n").expect("written");
    let said = failed(&on(&other, &["import", "--all", "--from", dir]));
    assert!(said.contains("tokens.jsonl, line 1: the line is not a token"), "{said}");
}

#[tokio::test]
async fn what_cannot_be_done_is_one_line_and_leaves_nothing() {
    let server = Server::start();
    let archive = archived(&server.board("s")).await;
    let dir = server.data().with_file_name("out");
    fs::create_dir(&dir).expect("made");
    let file = dir.join("x.ndjson");
    let path = file.to_str().expect("a path");

    let said = failed(&on(&server, &["export", "absent", "--to", path]));
    assert_eq!(said, "error: session 'absent' does not exist\n");
    assert_eq!(fs::read_dir(&dir).expect("a directory").count(), 0, "something is left");

    fs::write(&file, archive.replacen("\"n\":1E5", "\"n\":1E6", 1)).expect("written");
    let said = failed(&on(&server, &["import", "t", "--from", path]));
    assert!(said.starts_with("error: line 3: the checksum is "), "{said}");
    let (cut, _) = archive.trim_end().rsplit_once('\n').expect("lines");
    fs::write(&file, cut).expect("written");
    let said = failed(&on(&server, &["import", "t", "--from", path]));
    assert!(said.ends_with(": the archive is truncated\n"), "{said}");
    server.board("t").get("").await.problem(404, "session-not-found");

    fs::write(&file, &archive).expect("written");
    let said = failed(&on(&server, &["import", "s", "--from", path]));
    assert_eq!(said, "error: session 's' already exists\n");
    let nowhere = dir.join("nowhere");
    let said = failed(&run(&nowhere, &["export", "s"]));
    assert!(said.contains("is not a data directory"), "{said}");
    assert!(!nowhere.exists());
}
