//! Failures of the server, of proxies and of the configuration, as a host and its user see them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Output;
use std::thread;

use crate::bridge::{Bridge, command};
use crate::server::{serve, serve_tls};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"ask"}}"#;
const SECRET: &str = "bb_0123456789secret";

/// A bridge that has the token from the environment.
fn with_token(url: &str) -> Bridge {
    let mut command = command(url);
    command.env("BLACKBOARD_TOKEN", SECRET);
    Bridge::start(command)
}

fn finished(url: &str, arguments: &[&str]) -> Output {
    command(url).args(arguments).output().expect("the binary runs")
}

#[test]
fn a_refusal_is_an_error_with_its_reason() {
    for (status, media_type, body, expected) in [
        (
            401,
            "application/problem+json",
            r#"{"detail":"no such token","code":"unauthorized"}"#,
            "401: no such token; set BLACKBOARD_TOKEN or --token-file",
        ),
        (
            403,
            "application/problem+json; charset=utf-8",
            r#"{"title":"Forbidden"}"#,
            "403: Forbidden; use a token",
        ),
        (404, "application/problem+json", "broken", "404; check --session"),
        (406, "text/plain", "no", "406; a proxy"),
        (413, "application/json", r#"{"detail":"x"}"#, "413; send less"),
        (500, "application/problem+json", r#"{"detail":"D"}"#, "500: D; the server"),
        (502, "text/html", "<html>Bad Gateway</html>", "502; the server or a proxy"),
        (200, "text/html", "<html>Log in</html>", "200 with text/html instead of a message"),
        (202, "", "", "202 with no type instead of a message"),
        (200, "application/json", "<html>", "sent something other than the answer"),
        (200, "application/json", r#"{"id":2,"result":1}"#, "sent something other than the answer"),
        (200, "text/event-stream", "data: {\"id\":2,\"result\":1}\n\n", "sent something other"),
        (200, "text/event-stream", "data: <html>\n\n", "sent something other"),
        (200, "text/event-stream", ": nothing\n\n", "the stream ended before the answer"),
    ] {
        let mut bridge = with_token(&serve(move |_, peer| peer.answer(status, media_type, body)));
        let message = bridge.refusal(CALL);
        assert!(message.starts_with("http://127.0.0.1:"), "{message}");
        assert!(message.contains(expected), "{message}");
        // It goes on.
        assert!(bridge.refusal(CALL).contains(expected));
        let ended = bridge.end();
        assert!(ended.log.contains(expected) && !ended.log.contains(SECRET), "{}", ended.log);
    }
}

#[test]
fn an_error_of_the_protocol_is_passed_on_whatever_the_status() {
    let body = r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}}"#;
    let mut bridge = Bridge::to(&serve(move |_, peer| peer.answer(400, "application/json", body)));
    assert_eq!(bridge.ask(CALL), body);
    bridge.end();
    for id in ["null", "\"server-error\""] {
        let body = r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32700, "message":"m"}}"#;
        let sent = body.replace("1.0", id);
        let mut bridge =
            Bridge::to(&serve(move |_, peer| peer.answer(400, "application/json", &sent)));
        assert_eq!(bridge.ask(CALL), body);
        bridge.end();
    }
}

#[test]
fn a_connection_that_breaks_off_is_an_error() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"id\":1.0",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: ",
        "SSH-2.0-OpenSSH_9.9\r\n",
    ] {
        let mut bridge = Bridge::to(&serve(move |_, peer| peer.put(answer)));
        let line = CALL.replace("tools/call", "last/call");
        let message = bridge.refusal(&line);
        assert!(message.contains("broke off"), "{answer:?}: {message}");
        assert!(message.contains("unknown"), "{message}");
        bridge.end();
    }
}

#[test]
fn an_unreachable_server_is_named_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut bridge = Bridge::to(&format!("http://{address}/team/"));
    let message = bridge.refusal(CALL);
    let expected = format!("http://{address}/team/mcp: the connection was refused; is the server");
    assert!(message.starts_with(&expected), "{message}");
    bridge.end();
}

#[test]
fn a_redirect_is_named_and_not_followed() {
    let mut bridge = with_token(&serve(|_, peer| {
        peer.put(
            "HTTP/1.1 308 \r\nLocation: https://b.example.org/mcp\r\nContent-Length: 0\r\n\r\n",
        );
    }));
    let message = bridge.refusal(CALL);
    assert!(message.contains("redirects to https://b.example.org/mcp"), "{message}");
    bridge.end();
}

#[test]
fn a_token_is_sent_and_never_shown() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("token");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    let repeating = || {
        serve(|request, peer| {
            let sent = request.header("authorization").unwrap_or("none");
            let body = format!(r#"{{"detail":"you sent {sent}!","code":"{sent}"}}"#);
            peer.answer(401, "application/problem+json", &body);
        })
    };
    let mut of_file = command(&repeating());
    of_file.arg("--token-file").arg(&path).env("BLACKBOARD_TOKEN", "bb_other");
    for bridge in [Bridge::start(of_file), with_token(&repeating())] {
        let mut bridge = bridge;
        let answer = bridge.ask(CALL);
        assert!(answer.contains("you sent Bearer ***!"), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
        assert!(!bridge.end().log.contains("secret"));
    }
    // Hosts set what has no value to nothing.
    let mut of_nothing = command(&repeating());
    of_nothing.env("BLACKBOARD_TOKEN", "");
    assert!(Bridge::start(of_nothing).ask(CALL).contains("you sent none!"));
}

/// A server that speaks no TLS and says so at once; returns its authority.
fn plain_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    address
}

#[test]
fn tls_trusts_the_given_root_and_no_other() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls/ca.pem");
    let url = serve_tls(|request, peer| peer.echo(request));
    for url in [url.clone(), url.replace("127.0.0.1", "localhost")] {
        let mut command = command(&url);
        command.arg("--ca").arg(&root);
        let mut bridge = Bridge::start(command);
        assert_eq!(bridge.ask(CALL), r#"{"jsonrpc":"2.0","id":1.0,"result":1.0}"#);
        bridge.end();
    }
    let other = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls/server.pem");
    let mut command = command(&url);
    command.arg("--ca").arg(&other);
    let mut bridge = Bridge::start(command);
    let message = bridge.refusal(CALL);
    assert!(message.contains("TLS failed") && message.contains("--ca"), "{message}");
    bridge.end();
    let plain = format!("https://{}", plain_server());
    let mut command = crate::bridge::command(&plain);
    command.arg("--ca").arg(&root);
    let mut bridge = Bridge::start(command);
    assert!(bridge.refusal(CALL).contains("TLS failed"));
    bridge.end();
}

#[test]
fn a_bad_setting_is_refused_at_the_start() {
    let url = "http://127.0.0.1:1";
    for (url, arguments, expected) in [
        ("http://user:secret@host", vec![], "must not contain a user name or a password"),
        ("ftp://host", vec![], "must begin with http:// or https://"),
        ("http://host/?a=b", vec![], "must not have a query"),
        (url, vec!["--token-file", "/absent/token"], "cannot read the token from /absent/token"),
        (
            "https://host",
            vec!["--ca", "/absent/ca"],
            "cannot read root certificates from /absent/ca",
        ),
        (url, vec!["--session", "a/b"], "--session"),
        (url, vec!["--tools", "some"], "worker, asker, all"),
        (url, vec!["--log", "=="], "is not a log filter"),
        (url, vec!["--channel", "--session", "s"], "--channel needs --session"),
        (url, vec!["--channel", "--agent", "A"], "--channel needs --session"),
        (url, vec!["--channel", "--include", "x"], "claimable"),
        (url, vec!["--include", "messages"], "--channel"),
    ] {
        let output = finished(url, &arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(log.contains(expected) && !log.contains("secret"), "{log}");
        assert!(output.stdout.is_empty());
    }
}
