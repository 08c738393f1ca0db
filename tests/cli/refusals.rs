//! Every class of refusal: one clear line, its exit code, and never a token.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use crate::server::{Done, Server, blackboard, finished};

const SECRET: &str = "bb_0123456789secret";

/// Each command with arguments that are valid.
const COMMANDS: [&[&str]; 26] = [
    &["tail", "demo"],
    &["forward", "demo", "--to", "http://127.0.0.1:1"],
    &["forward", "--questions", "--to", "http://127.0.0.1:1"],
    &["sessions"],
    &["show", "demo"],
    &["show", "demo/requests"],
    &["show", "demo/requests/1"],
    &["post", "demo/requests", "text"],
    &["state", "get", "demo"],
    &["state", "set", "demo/a", "1"],
    &["state", "add", "demo/a", "1"],
    &["state", "rm", "demo/a"],
    &["ask", "demo", "q?"],
    &["answer", "demo/1", "a"],
    &["inbox"],
    &["claim", "demo"],
    &["finish", "demo/1"],
    &["fail", "demo/1"],
    &["release", "demo/1"],
    &["prompt", "demo"],
    &["search", "a"],
    &["diff", "demo", "1"],
    &["checkpoint", "demo", "v1"],
    &["fork", "demo", "copy"],
    &["restore", "demo", "1"],
    &["pause", "demo", "A"],
];

/// A server that gives every request this answer; returns its URL.
fn scripted(head: &str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bytes = body.len();
    let answer =
        format!("HTTP/1.1 {head}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n{body}");
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                let header = line.to_ascii_lowercase();
                let value = header.strip_prefix("content-length:").map(str::trim);
                length = value.map_or(length, |value| value.parse().unwrap());
                line.clear();
            }
            reader.by_ref().take(length).read_to_end(&mut Vec::new()).ok();
            reader.get_mut().write_all(answer.as_bytes()).ok();
        }
    });
    url
}

/// Runs a command on the server at a URL, with the token that nobody may see.
fn run(url: &str, arguments: &[&str]) -> Done {
    let home = tempfile::tempdir().unwrap();
    let mut command = blackboard(&home);
    command.args(arguments).env("BLACKBOARD_URL", url).env("BLACKBOARD_TOKEN", SECRET);
    command.env("BLACKBOARD_WEBHOOK_SECRET", format!("whsec_{}", "A".repeat(32)));
    let done = finished(command, "");
    assert!(!done.error.contains("secret") && !done.output.contains("secret"), "{}", done.error);
    done
}

#[test]
fn every_command_says_what_each_class_of_refusal_is() {
    let problem = |code: &str| {
        format!(r#"{{"code":"{code}","detail":"the reason\n\u001b[2J {SECRET}","status":0}}"#)
    };
    let kind = "Content-Type: application/problem+json";
    for (status, code, expected) in [
        ("401 Unauthorized", "unauthorized", 4),
        ("403 Forbidden", "forbidden", 4),
        ("404 Not Found", "session-not-found", 5),
        ("410 Gone", "history-compacted", 5),
        ("409 Conflict", "some-conflict", 6),
        ("412 Precondition Failed", "precondition-failed", 7),
        ("422 Unprocessable", "unsupported-value", 8),
        ("429 Too Many", "rate-limited\",\"x\":\"", 9),
        ("507 Full", "session-full", 10),
        ("500 Internal", "internal", 11),
    ] {
        let url = scripted(&format!("{status}\r\n{kind}"), &problem(code));
        for arguments in COMMANDS {
            let line = run(&url, arguments).refusal(expected);
            assert!(line.starts_with("the reason\\u000a\\u001b[2J ***"), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_foreign_answer_and_no_answer_have_their_codes() {
    let page = scripted("200 OK\r\nContent-Type: text/html", "<html>Log in</html>");
    let gateway = scripted("502 Bad Gateway\r\nContent-Type: text/html", "<html>");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nothing = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for arguments in COMMANDS.iter().copied().take(6) {
        for url in [&page, &gateway] {
            let line = run(url, arguments).refusal(11);
            assert!(line.contains("check --url"), "{line}");
        }
    }
    let line = run(&nothing, &["sessions"]).refusal(3);
    assert!(line.contains("the connection was refused; is the server running"), "{line}");
}

#[test]
fn a_write_whose_answer_is_lost_names_its_key() {
    let empty = scripted("200 OK\r\nContent-Type: application/json", "");
    run(&empty, &["post", "demo/requests", "a"]).refusal(11);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || while listener.accept().is_ok() {});
    let line = run(&url, &["post", "demo/requests", "a", "--idempotency-key", "k-7"]).refusal(3);
    assert!(line.contains("broke off") && line.contains("--idempotency-key k-7"), "{line}");
}

#[test]
fn a_wrong_argument_is_refused_before_anything_is_sent() {
    for (arguments, expected) in [
        (vec!["show", "demo/logs"], "is no log"),
        (vec!["show", "demo/requests/0"], "is no seq"),
        (vec!["post", "demo", "a"], "name a log"),
        (vec!["answer", "demo", "a"], "name an entry"),
        (vec!["answer", "demo/1"], "required"),
        (vec!["state", "get", "demo//a"], "segment 1 of the path is empty"),
        (vec!["post", "demo/requests", "a", "--idempotency-key", "a b"], "visible ASCII"),
        (vec!["claim", "demo", "--ttl", "soon"], "whole number followed by"),
        (vec!["sessions", "--url", "ftp://host"], "http:// or https://"),
        (vec!["sessions", "--url", "http://a:secret@host"], "user name or a password"),
        (vec!["sessions", "--token", SECRET], "unexpected argument"),
        (vec!["sessions", "--config", "/absent"], "cannot read the configuration /absent"),
        (vec!["claim", "demo", "--match", "{"], "--match is not JSON"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let mut command = blackboard(&home);
        command.args(&arguments).env("BLACKBOARD_URL", "http://127.0.0.1:1");
        let done = finished(command, "");
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {}", done.error);
        assert!(done.error.contains(expected), "{arguments:?}: {}", done.error);
        assert!(arguments.contains(&SECRET) || !done.error.contains("secret"), "{}", done.error);
    }
}

#[test]
fn a_token_is_needed_and_comes_from_a_file_or_the_configuration() {
    let server = Server::start();
    let admin = server.token("admin", &["--scopes", "admin", "--create"]);
    let reader = server.token("reader", &["--scopes", "read"]);
    let line = server.run(&["sessions"]).refusal(4);
    assert!(line.contains("(unauthorized)") && line.contains("--token-file"), "{line}");
    server.json(&["post", "demo/requests", "a", "--token-file", &admin]);
    let line = server.run(&["post", "demo/requests", "a", "--token-file", &reader]).refusal(4);
    assert!(line.contains("(forbidden)"), "{line}");
    let folder = server.home.path().join(".config/blackboard");
    fs::create_dir_all(&folder).unwrap();
    let token = fs::read_to_string(&admin).unwrap();
    let path = folder.join("config.json");
    let text = format!(r#"{{"url":"{}","token":"{token}","agent":"Me"}}"#, server.url);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let line = server.run(&["sessions"]).refusal(2);
    assert!(line.contains("chmod 600") && !line.contains(&token), "{line}");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let mut command = server.command(&["post", "demo/requests", "b"]);
    command.env_remove("BLACKBOARD_URL");
    finished(command, "").json();
    let shown = server.json(&["show", "demo/requests/2"]);
    assert_eq!(shown["agent"], "Me");
    // The token is for the URL of its file.
    let other = server.url.replace("127.0.0.1", "localhost");
    server.run(&["sessions", "--url", &other]).refusal(4);
}
