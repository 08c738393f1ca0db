//! Refusals of every class: one clear line, an exit code, and never a token.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use crate::server::{Done, Server, blackboard, finished};

const SECRET: &str = "bb_0123456789secret";

/// Whether a command changes a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reads,
    Writes,
    /// Writes, and makes the session if it does not exist.
    Makes,
}
use Kind::{Makes, Reads, Writes};

/// Each command on a server, in each form that sends another request, with arguments that are valid.
const COMMANDS: [(Kind, &[&str]); 45] = [
    (Reads, &["tail", "demo"]),
    (Reads, &["sessions"]),
    (Reads, &["show", "demo"]),
    (Reads, &["show", "demo/requests"]),
    (Reads, &["show", "demo/requests/1"]),
    (Makes, &["post", "demo/requests", "text"]),
    (Reads, &["state", "get", "demo"]),
    (Makes, &["state", "set", "demo/a", "1"]),
    (Makes, &["state", "add", "demo/a", "1"]),
    (Writes, &["state", "rm", "demo/a"]),
    (Makes, &["ask", "demo", "q?"]),
    (Makes, &["ask", "demo", "q?", "--no-wait"]),
    (Writes, &["answer", "demo/1", "a"]),
    (Writes, &["answer", "demo/1", "--skip"]),
    (Reads, &["inbox"]),
    (Reads, &["inbox", "--requests"]),
    (Makes, &["send", "demo", "A", "text"]),
    (Reads, &["messages", "demo", "A"]),
    (Writes, &["messages", "demo", "A", "--ack", "1"]),
    (Reads, &["attention", "demo", "--agent", "A"]),
    (Writes, &["claim", "demo", "--agent", "A"]),
    (Writes, &["claim", "demo/1", "--agent", "A"]),
    (Writes, &["finish", "demo/1", "--agent", "A", "--unclaimed"]),
    (Writes, &["fail", "demo/1", "--agent", "A"]),
    (Writes, &["release", "demo/1", "--agent", "A"]),
    (Reads, &["prompt", "demo"]),
    (Reads, &["search", "a"]),
    (Reads, &["diff", "demo", "1"]),
    (Reads, &["diff", "demo", "1", "2"]),
    (Reads, &["checkpoint", "demo"]),
    (Writes, &["checkpoint", "demo", "v1"]),
    (Writes, &["checkpoint", "demo", "v1", "--delete"]),
    (Writes, &["fork", "demo", "copy"]),
    (Writes, &["restore", "demo", "1"]),
    (Makes, &["pause", "demo", "A"]),
    (Writes, &["resume", "demo", "A"]),
    (Reads, &["state", "get", "demo/a", "--at", "1"]),
    (Reads, &["agents", "demo"]),
    (Reads, &["wait", "demo/1"]),
    (Writes, &["retry", "demo/1"]),
    (Writes, &["cancel", "demo/1"]),
    (Writes, &["review", "demo/1", "--accept", "--fence", "1", "--agent", "A"]),
    (Reads, &["blob", "get", "demo", DIGEST]),
    (Makes, &["blob", "put", "demo", "-"]),
    (Writes, &["delete", "demo", "--yes"]),
];

/// Commands on a server whose refusals have tests of their own.
const TESTED_ELSEWHERE: [&str; 4] = ["mcp", "forward", "demo", "work"];

/// The digest of a blob that no session has.
const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The classes of refusal: the answer's status, headers and code, and the exit code.
const CLASSES: [(&str, &str, &str, i32); 15] = [
    ("400 Bad Request", "", "invalid-parameter", 8),
    ("401 Unauthorized", "", "unauthorized", 4),
    ("403 Forbidden", "", "forbidden", 4),
    ("404 Not Found", "", "session-not-found", 5),
    ("408 Request Timeout", "", "request-timeout", 9),
    ("409 Conflict", "", "some-conflict", 6),
    ("410 Gone", "", "history-compacted", 5),
    ("412 Precondition Failed", "", "precondition-failed", 7),
    ("413 Content Too Large", "", "body-too-large", 8),
    ("422 Unprocessable", "", "unsupported-value", 8),
    ("429 Too Many", "Retry-After: 3600\r\n", "rate-limited\",\"x\":\"", 9),
    ("500 Internal", "", "internal", 11),
    ("503 Unavailable", "Retry-After: 3600\r\n", "overloaded", 9),
    ("503 Unavailable", "", "stopping", 9),
    ("507 Full", "", "session-full", 10),
];

/// Runs each command at the same time; most of them wait.
fn of_each(check: impl Fn(Kind, &'static [&'static str]) + Sync) {
    thread::scope(|scope| {
        for (kind, arguments) in COMMANDS {
            let check = &check;
            scope.spawn(move || check(kind, arguments));
        }
    });
}

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

/// The names in a list of commands of a `--help`.
fn listed(path: &[&str]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let mut command = blackboard(&home);
    command.args(path).arg("--help");
    let help = finished(command, "").text();
    let lists = help.split("\n\n").filter(|block| {
        let title = block.lines().next().unwrap_or_default();
        let is_title = title.ends_with(':') && !title.starts_with(' ');
        is_title
            && !["Options:", "Arguments:", "Examples:", "Output:", "Connection:"].contains(&title)
    });
    let rows = lists.flat_map(|list| list.lines().skip(1));
    let names = rows.filter_map(|row| row.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_on_a_server_has_a_row() {
    let has_row = |path: &[&str]| COMMANDS.iter().any(|(_, arguments)| arguments.starts_with(path));
    let top = listed(&[]);
    assert!(top.len() >= 30 && top.contains(&"tail".to_owned()), "{top:?}");
    let mut found = 0;
    for name in top.iter().filter(|name| !TESTED_ELSEWHERE.contains(&name.as_str())) {
        let help = |path: &[&str]| {
            let home = tempfile::tempdir().unwrap();
            let mut command = blackboard(&home);
            command.args(path).arg("--help");
            finished(command, "").text()
        };
        let nested = listed(&[name]);
        let paths: Vec<Vec<&str>> = match nested.is_empty() {
            true => vec![vec![name]],
            false => nested.iter().map(|nested| vec![name.as_str(), nested]).collect(),
        };
        for path in paths.iter().filter(|path| help(path).contains("BLACKBOARD_TOKEN_FILE")) {
            assert!(has_row(path), "{path:?} has no row in COMMANDS");
            found += 1;
        }
    }
    assert_eq!(found, 34);
}

#[test]
fn every_exit_code_is_documented_as_it_is() {
    const PAGE: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/exit-codes.md"));
    for (status, _, _, exit) in CLASSES {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| {exit} |"))).unwrap();
        assert!(row.contains(&status[..3]), "{status}: {row}");
    }
}

#[test]
fn every_command_says_what_each_class_of_refusal_is() {
    let problem = |code: &str| {
        format!(r#"{{"code":"{code}","detail":"the reason\n\u001b[2J {SECRET}","status":0}}"#)
    };
    let kind = "Content-Type: application/problem+json";
    for (status, headers, code, expected) in CLASSES {
        let url = scripted(&format!("{status}\r\n{headers}{kind}"), &problem(code));
        of_each(|_, arguments| {
            let line = run(&url, arguments).refusal(expected);
            assert!(line.starts_with("the reason\\u000a\\u001b[2J ***"), "{arguments:?}: {line}");
            let code = code.split('"').next().unwrap();
            assert!(line.contains(&format!("({code})")), "{arguments:?}: {line}");
        });
    }
}

#[test]
fn a_foreign_answer_and_no_server_have_their_codes() {
    let page = scripted("200 OK\r\nContent-Type: text/html", "<html>Log in</html>");
    let gateway = scripted("502 Bad Gateway\r\nContent-Type: text/html", "<html>");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nothing = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    of_each(|_, arguments| {
        for url in [&page, &gateway] {
            let line = run(url, arguments).refusal(11);
            assert!(line.contains("check --url"), "{arguments:?}: {line}");
        }
        let line = run(&nothing, arguments).refusal(3);
        let expected = "the connection was refused; is the server running";
        assert!(line.contains(expected), "{arguments:?}: {line}");
    });
}

/// The sentence on a write without an answer, in a line that has it for a write only.
fn says_how_to_repeat(kind: Kind, arguments: &[&str], line: &str) {
    let says = line
        .contains("the write may have been done; to be sure, repeat it with --idempotency-key ");
    assert_eq!(says, kind != Reads, "{arguments:?}: {line}");
}

#[test]
fn a_connection_that_breaks_off_has_its_code() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || while listener.accept().is_ok() {});
    of_each(|kind, arguments| {
        let line = run(&url, arguments).refusal(3);
        assert!(line.contains("the connection broke off"), "{arguments:?}: {line}");
        says_how_to_repeat(kind, arguments, &line);
    });
}

/// A host that takes no connection, as one behind a firewall: its queue of connections is full.
#[test]
fn a_host_that_does_not_answer_has_its_code() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let second = std::time::Duration::from_secs(1);
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, second) {
        queued.push(stream);
    }
    let url = format!("http://{address}");
    of_each(|_, arguments| {
        let line = run(&url, arguments).refusal(3);
        let expected = "no connection within 10 s; check --url (BLACKBOARD_URL) and the network";
        assert!(line.contains(expected), "{arguments:?}: {line}");
    });
}

/// This takes as long as the commands wait, which is longer than a read may wait in a server.
#[test]
fn a_server_that_says_nothing_has_its_code() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            held.push(stream);
        }
    });
    of_each(|kind, arguments| {
        let line = run(&url, arguments).refusal(3);
        assert!(line.contains("75"), "{arguments:?}: {line}");
        says_how_to_repeat(kind, arguments, &line);
    });
}

#[test]
fn a_token_without_the_right_is_refused_by_every_command() {
    let server = Server::start();
    let admin = server.token("admin", &["--scopes", "admin", "--create"]);
    server.json(&["post", "demo/requests", "a", "--token-file", &admin]);
    let reader = server.token("reader", &["--scopes", "read"]);
    let writer = server.token("writer", &["--scopes", "write"]);
    let nobody = server.token("nobody", &["--sessions", "other", "--scopes", "read,write"]);
    for (kind, arguments) in COMMANDS {
        let run = |token: &str| server.run(&[arguments, &["--token-file", token]].concat());
        let token = if kind == Reads { &writer } else { &reader };
        let line = run(token).refusal(4);
        assert!(line.contains("(forbidden)"), "{arguments:?}: {line}");
        let line = server.run(arguments).refusal(4);
        assert!(line.contains("(unauthorized)"), "{arguments:?}: {line}");
        if arguments.iter().any(|argument| argument.starts_with("demo")) && arguments[0] != "tail" {
            run(&nobody).refusal(5);
        }
    }
}

#[test]
fn every_command_that_makes_no_session_needs_one() {
    let server = Server::start();
    for (kind, arguments) in COMMANDS {
        let names_one = arguments.iter().any(|argument| argument.starts_with("demo"));
        // A tail waits for its session.
        if kind != Makes && names_one && arguments[0] != "tail" {
            let line = server.run(arguments).refusal(5);
            assert!(line.contains("(session-not-found)"), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_conflict_has_its_code_in_every_command_that_can_meet_one() {
    let server = Server::start();
    for item in ["first", "second"] {
        server.json(&["post", "demo/requests", item]);
        server.json(&["post", "demo/questions", item]);
    }
    server.json(&["claim", "demo/1", "--agent", "A"]);
    server.json(&["answer", "demo/1", "yes"]);
    server.json(&["state", "set", "demo/text", "--string", "x"]);
    server.json(&["fork", "demo", "copy"]);
    for (code, arguments) in [
        ("already-answered", vec!["answer", "demo/1", "no"]),
        ("already-answered", vec!["answer", "demo/1", "--skip"]),
        ("already-claimed", vec!["claim", "demo/1", "--agent", "B"]),
        ("stale-fence", vec!["finish", "demo/1", "--agent", "A", "--fence", "1"]),
        ("stale-fence", vec!["fail", "demo/1", "--agent", "A", "--fence", "1"]),
        ("session-exists", vec!["fork", "demo", "copy"]),
        ("not-a-number", vec!["state", "add", "demo/text", "1"]),
        ("", vec!["state", "set", "demo/text/a", "1"]),
        ("", vec!["finish", "demo/1", "--agent", "B"]),
        ("", vec!["fail", "demo/1", "--agent", "B"]),
        ("", vec!["release", "demo/1", "--agent", "B"]),
    ] {
        let done = server.run(&arguments);
        assert_eq!(done.status.code(), Some(6), "{arguments:?}: {}", done.error);
        let line = done.refusal(6);
        assert!(line.contains(&format!("({code}")) || code.is_empty(), "{arguments:?}: {line}");
    }
    server.json(&["claim", "demo", "--agent", "B"]);
    server.run(&["claim", "demo", "--agent", "C"]).refusal(7);
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
        (vec!["show", "demo/logs"], "is not a log"),
        (vec!["show", "demo/requests/0"], "is not a seq"),
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
