//! The access log's client, token and reason of a 404.

use reqwest::Method;
use serde_json::Value;

use crate::answer::ask;
use crate::harness::Server;
use crate::matrix::token;

/// Sends a request, and returns its line of the log.
async fn line(server: &Server, request: reqwest::RequestBuilder) -> Value {
    let answer = ask(request).await;
    let id = answer.header("x-request-id").to_owned();
    let said = server.said(&id);
    let line = said.lines().rfind(|line| line.contains(&id)).expect("a line of the request");
    serde_json::from_str(line).expect("JSON")
}

#[tokio::test]
async fn the_log_names_the_clients_address() {
    for (proxies, expected) in [("", "127.0.0.1"), ("127.0.0.0/8", "198.51.100.7")] {
        let server = Server::start_with(&["--trusted-proxies", proxies]);
        let get = server.to(Method::GET, "/v1/sessions");
        let get = get.header("x-forwarded-for", "203.0.113.9, 198.51.100.7");
        assert_eq!(line(&server, get).await["client"], expected, "{proxies}");
    }
}

#[tokio::test]
async fn the_log_names_the_token_and_why_there_is_no_session() {
    let server = Server::start();
    let admin = token(&server, &["create", "--name", "root", "--scopes", "admin"]);
    let team = token(&server, &["create", "--name", "team", "--sessions", "team-*"]);
    let get = |name: &str, token: &str| {
        server.to(Method::GET, &format!("/v1/sessions/{name}")).bearer_auth(token)
    };
    let created = server.to(Method::PUT, "/v1/sessions/other").bearer_auth(&admin);
    ask(created.header("content-type", "application/json").body("{}")).await.is(201);
    for (name, by, whose, reason) in [
        ("team-1", &team, "team", "no such session"),
        ("other", &team, "team", "the token does not reach the session"),
        ("another", &admin, "root", "no such session"),
    ] {
        let line = line(&server, get(name, by)).await;
        assert_eq!((&line["token"], &line["reason"]), (&whose.into(), &reason.into()), "{line}");
        assert!(!ask(get(name, by)).await.text().contains(reason), "only the log tells it");
    }
    let said = server.said("created a token");
    assert!(said.contains("\"token\":\"root\"") && !said.contains(&admin), "{said}");
    token(&server, &["revoke", "team"]);
    server.said("revoked a token");
}

#[tokio::test]
async fn the_first_line_tells_where_to_go() {
    let server = Server::start();
    let said = server.said("listening");
    let first: Value =
        serde_json::from_str(said.lines().find(|line| line.contains("listening")).expect("a line"))
            .expect("JSON");
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(first["docs"], format!("http://{}/docs", server.authority()));
    let [_, place] = server.place();
    let store = first["store"].as_str().expect("a place");
    assert!(store == place || store.starts_with("postgres://") && !store.contains('@'), "{store}");
    assert_eq!(first["tokens"], "not required");
}

#[tokio::test]
async fn a_server_open_on_purpose_warns() {
    let server = Server::start_with(&["--insecure"]);
    assert!(server.said("--insecure").contains("WARN"));
}
