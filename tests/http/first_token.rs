//! First token of a data directory, and the way back to none.

use std::fs;
use std::io::Write as _;
use std::process::{Output, Stdio};

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Server, blackboard, finished};
use crate::matrix::token;

/// Runs `blackboard token` on a running server's directory, with the lines that a person types.
fn typed(server: &Server, arguments: &[&str], input: &str) -> Output {
    let mut child = blackboard(&[&["token"], arguments].concat())
        .args(server.place())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A command that asks nothing may have ended before.
    child.stdin.take().expect("its input").write_all(input.as_bytes()).ok();
    let output = child.wait_with_output().expect("an end");
    server.settle();
    output
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn status(server: &Server, token: Option<&str>) -> u16 {
    let mut request = server.to(Method::GET, "/v1/sessions");
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    ask(request).await.status()
}

#[tokio::test]
async fn a_first_token_without_admin_is_refused() {
    let server = Server::start();
    let limited = ["create", "--name", "app", "--agent", "AppAgent", "--sessions", "team-*"];
    let output = typed(&server, &limited, "");
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let said = told(&output);
    assert!(said.contains("--scopes admin") && said.contains("--anyway"), "{said}");
    assert_eq!(status(&server, None).await, 200);

    let output = typed(&server, &["create", "--name", "root", "--scopes", "admin"], "");
    assert!(told(&output).contains("first token"), "{output:?}");
    let admin = String::from_utf8(output.stdout).expect("a token");
    assert_eq!(status(&server, None).await, 401);
    assert_eq!(status(&server, Some(admin.trim())).await, 200);
    let output = typed(&server, &limited, "");
    assert!(output.status.success() && !told(&output).contains("first token"), "{output:?}");
}

#[tokio::test]
async fn a_first_token_without_admin_is_made_anyway() {
    let server = Server::start();
    let output = typed(&server, &["create", "--name", "app", "--anyway"], "");
    assert!(told(&output).contains("first token"), "{output:?}");
    assert_eq!(status(&server, None).await, 401);
}

#[tokio::test]
async fn tokens_are_disabled_after_two_questions() {
    let mut server = Server::start();
    let made = token(&server, &["create", "--name", "root", "--scopes", "admin"]);
    for input in ["", "no\n", "yes\n", "yes\nno\n", "yes\nyess\n"] {
        let output = typed(&server, &["disable"], input);
        assert!(!output.status.success(), "{input:?}: {output:?}");
        assert_eq!(status(&server, None).await, 401, "{input:?}");
    }
    assert!(!typed(&server, &["disable", "--yes"], "").status.success());
    let output = typed(&server, &["disable"], "yes\nyes\n");
    assert!(output.status.success() && told(&output).contains("deleted 1 token"), "{output:?}");
    assert_eq!(status(&server, None).await, 200);
    assert_eq!(status(&server, Some(&made)).await, 200, "a token is not read");

    token(&server, &["create", "--name", "root", "--scopes", "admin"]);
    assert!(server.stop().success());
    assert!(typed(&server, &["disable", "--yes", "--yes"], "").status.success());
    server.start_again();
    assert_eq!(status(&server, None).await, 200);
}

#[tokio::test]
async fn a_server_told_to_require_tokens_keeps_them() {
    let server = Server::start_with(&["--require-token"]);
    let output = typed(&server, &["disable", "--yes", "--yes"], "");
    let said = told(&output);
    assert!(!output.status.success() && said.contains("tokens stay required"), "{said}");
    assert_eq!(status(&server, None).await, 401);
}

#[tokio::test]
async fn a_stale_token_file_revokes_nothing() {
    let [former, current] = ["former", "current"].map(|word| format!("bb_{word:A<43}"));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    let path = file.to_str().unwrap();
    fs::write(&file, &former).unwrap();
    let mut server = Server::start_with(&["--admin-token-file", path]);
    assert_eq!(status(&server, Some(&former)).await, 200);
    server.stop();
    fs::write(&file, &current).unwrap();
    server.start_again();
    assert_eq!(
        [status(&server, Some(&former)).await, status(&server, Some(&current)).await],
        [401, 200]
    );
    server.stop();
    fs::write(&file, &former).unwrap();
    let mut stale = vec!["serve", "--listen", "127.0.0.1:0", "--admin-token-file", path];
    let place = server.place();
    stale.extend(place.iter().map(String::as_str));
    let refused = finished(&stale);
    assert!(
        !refused.status.success() && told(&refused).contains("was revoked"),
        "{}",
        told(&refused)
    );
    fs::write(&file, &current).unwrap();
    server.start_again();
    assert_eq!(status(&server, Some(&current)).await, 200);
}
