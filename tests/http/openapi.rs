//! OpenAPI document: equal as file, command and route; its page needs no network.

use std::collections::BTreeSet;
use std::fs;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::answer::ask;
use crate::claims::won;
use crate::harness::{Server, finished};

fn document() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.yaml"))
        .expect("openapi/openapi.yaml")
}

#[test]
fn the_command_prints_the_file() {
    let output = finished(&["openapi"]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let hint = "openapi/openapi.yaml is old: `cargo run -- openapi > openapi/openapi.yaml`";
    assert!(printed == document(), "{hint}");
}

#[tokio::test]
async fn the_root_has_the_doors_and_sends_a_browser_to_the_page() {
    let server = Server::start();
    let doors = server.get("/").await.is(200).json();
    assert_eq!(doors["name"], "blackboard");
    assert_eq!(doors["version"], env!("CARGO_PKG_VERSION"));
    for door in ["docs", "openapi", "ui"] {
        server.get(doors[door].as_str().unwrap()).await.is(200);
    }
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let shown = ask(server.to(Method::GET, "/").header("accept", accept)).await;
    assert_eq!(shown.is(303).header("location"), "/ui/");
}

#[tokio::test]
async fn the_server_serves_the_document_in_both_forms() {
    let server = Server::start();
    let yaml = server.get("/openapi.yaml").await;
    assert!(yaml.is(200).header("content-type").contains("yaml"), "{yaml}");
    assert!(yaml.text() == document(), "/openapi.yaml is not openapi/openapi.yaml");
    let json = server.get("/openapi.json").await;
    assert!(json.is(200).header("content-type").contains("json"), "{json}");
    let json = json.json();
    assert!(json["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{json}");
    let mut missing: BTreeSet<&str> = [
        "/v1/sessions",
        "/v1/sessions/{session}",
        "/v1/sessions/{session}/blackboard",
        "/v1/sessions/{session}/prompt",
        "/healthz",
        "/readyz",
    ]
    .into();
    let paths = json["paths"].as_object().expect("paths");
    missing.retain(|wanted| !paths.keys().any(|path| bare(path) == bare(wanted)));
    assert!(missing.is_empty(), "{missing:?} of {:?}", paths.keys());
    every_operation_is_whole(paths);
}

/// A path without the names of its parameters.
fn bare(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn every_operation_is_whole(paths: &serde_json::Map<String, Value>) {
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        for method in ["get", "put", "post", "patch", "delete"] {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let place = format!("{method} {path}");
            let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{place}: no id"));
            assert!(ids.insert(id.to_owned()), "{place}: {id} twice");
            let told = operation.get("summary").or(operation.get("description"));
            assert!(told.is_some(), "{place}: no word on what it does");
            let responses = operation["responses"].as_object().expect("responses");
            // A redirect is a success as well; a 304 alone would not be.
            let succeeds = |status: &String| status.starts_with('2') || status == "308";
            assert!(responses.keys().any(succeeds), "{place}");
            for (status, response) in responses {
                let told = response.get("$ref").or(response.get("description"));
                assert!(told.is_some_and(|text| text != ""), "{place} {status}");
            }
        }
    }
}

/// What the page loads: the values of its `src` and `href`.
fn links(html: &str) -> Vec<String> {
    let pieces = ["src=", "href="].into_iter().flat_map(|name| html.split(name).skip(1));
    pieces
        .filter_map(|piece| {
            let quote = piece.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            piece[1..].split(quote).next().map(str::to_owned)
        })
        .collect()
}

#[tokio::test]
async fn the_docs_page_loads_from_this_server_alone() {
    let server = Server::start();
    let mut path = "/docs".to_owned();
    let mut page = server.get(&path).await;
    for _ in 0..3 {
        if !(300..400).contains(&page.status()) {
            break;
        }
        path = page.header("location").to_owned();
        page = server.get(&path).await;
    }
    let html = page.is(200).text();
    assert!(page.header("content-type").starts_with("text/html"), "{page}");
    let links = links(html);
    assert!(!links.is_empty(), "{html}");
    for link in &links {
        let foreign = link.contains("://") || link.starts_with("//");
        assert!(!foreign, "the page loads {link}");
        if link.starts_with(['#', 'd']) && (link.starts_with('#') || link.starts_with("data:")) {
            continue;
        }
        let base = server.to(Method::GET, &path).build().unwrap().url().clone();
        let target = base.join(link).unwrap();
        server.get(target.path()).await.is(200);
    }
    for scheme in ["http://", "https://"] {
        let foreign = html.split(scheme).skip(1).find(|rest| !rest.starts_with("www.w3.org/"));
        assert!(
            foreign.is_none(),
            "the page names another host: {scheme}{}",
            foreign.unwrap_or("")
        );
    }
}

/// The answers of the server have no member that the document lacks: entries, pages and problems are
/// written as text, and their schemas beside them by hand.
#[tokio::test]
async fn answers_have_no_member_that_the_document_lacks() {
    const GIF: &str =
        "data:image/gif;base64,R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7";
    let server = Server::start();
    let document = server.get("/openapi.json").await.json();
    let board = server.board("drift");
    let post = board.json(Method::POST, "screenshots", &format!("{{\"image_str\":\"{GIF}\"}}"));
    let made = ask(post.header("X-Agent-ID", "HostAgent")).await;
    undeclared(&document, "WrittenBody", &made.is(201).json());
    let put = board.json(Method::PUT, "trajectories", "[{\"step\":1},{\"step\":2}]");
    ask(put.header("X-Agent-ID", "HostAgent")).await.succeeded();
    let patch = board.typed(
        Method::PATCH,
        "trajectories/1",
        "application/merge-patch+json",
        "{\"step\":3}".to_owned(),
    );
    ask(patch.header("X-Agent-ID", "AppAgent")).await.succeeded();
    let lenient = board.typed(
        Method::POST,
        "questions?lenient=true",
        "application/jsonl",
        "{}\nno".to_owned(),
    );
    undeclared(&document, "WrittenBody", &ask(lenient).await.is(201).json());
    for log in ["screenshots", "trajectories"] {
        undeclared(&document, "EntryPage", &board.get(log).await.is(200).json());
        undeclared(&document, "EntryBody", &board.get(&format!("{log}/1")).await.is(200).json());
    }
    undeclared(&document, "BoardBody", &board.get("blackboard").await.is(200).json());
    undeclared(&document, "SessionPage", &server.get("/v1/sessions").await.is(200).json());
    undeclared(&document, "WrittenBody", &board.delete("trajectories").await.is(200).json());
    let refused = board.put("questions", "[{},1]").await;
    undeclared(&document, "ProblemBody", &refused.is(422).json());
    undeclared(&document, "ProblemBody", &server.get("/v1/sessions?x=1").await.is(400).json());
}

fn undeclared(document: &Value, name: &str, answer: &Value) {
    let schema = &document["components"]["schemas"][name];
    assert!(schema.is_object(), "the document has no {name}");
    compare(document, schema, answer, name);
}

fn compare(document: &Value, schema: &Value, answer: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return undeclared(document, name, answer);
    }
    if let Value::Array(items) = answer {
        return items.iter().for_each(|item| compare(document, &schema["items"], item, place));
    }
    let (Some(members), Some(known)) = (answer.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    for (member, value) in members {
        let place = format!("{place}/{member}");
        let schema = known.get(member).unwrap_or_else(|| panic!("{place} is not in the document"));
        compare(document, schema, value, &place);
    }
}

#[tokio::test]
async fn who_has_the_document_is_not_sent_it_again() {
    let server = Server::start();
    let mut tags = Vec::new();
    for path in ["/openapi.yaml", "/openapi.json"] {
        let tag = server.get(path).await.is(200).etag();
        let again = ask(server.to(Method::GET, path).header("if-none-match", &tag)).await;
        assert!(again.is(304).body().is_empty(), "{again}");
        assert_eq!(again.etag(), tag);
        ask(server.to(Method::GET, path).header("if-none-match", "\"other\"")).await.is(200);
        tags.push(tag);
    }
    assert_ne!(tags[0], tags[1]);
}

/// A session with one entry in each log, an agent and a value in the state.
async fn prepared(server: &Server, session: &str) {
    let board = server.board(session);
    let owned = ["agents/AppAgent/memory", "agents/AppAgent/messages"];
    for log in ["questions", "requests", "trajectories", "screenshots"].into_iter().chain(owned) {
        board.post(log, "{\"n\":1}").await.is(201);
    }
    board.put("state", r#"{"tasks":{"t1":{"status":"ready"}}}"#).await.is(200);
}

/// The operations with a body of JSON: method, path and description. An archive has no example.
fn with_json(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let operations = paths.flat_map(|(path, item)| {
        let operations = item.as_object().expect("operations").iter();
        operations.map(move |(method, operation)| (method, path, operation))
    });
    operations.filter(|(_, path, operation)| {
        let contents = operation["requestBody"]["content"].as_object();
        let mut types = contents.into_iter().flat_map(|contents| contents.keys());
        types.any(|media_type| media_type.contains("json")) && !path.ends_with("/archive")
    })
}

/// The request of an operation with the examples of its parameters, on a prepared board.
async fn prepared_request(
    server: &Server,
    session: &str,
    (method, path, operation): (&String, &String, &Value),
) -> RequestBuilder {
    prepared(server, session).await;
    if path.ends_with("/failed") {
        won(&server.board(session), "AppAgent", 1).await;
    }
    if path.ends_with("/verdict") {
        let board = server.board(session);
        board.delete("requests/1").await.is(200);
        board.post("requests?review=true", "{}").await.is(201);
        board.put("requests/2/done", "{}").await.is(200);
    }
    let mut path = path.clone();
    let mut agent = None;
    for parameter in operation["parameters"].as_array().expect("parameters") {
        let (name, example) = (&parameter["name"], &parameter["example"]);
        let (name, example) = (name.as_str().expect("a name"), example.clone());
        let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        match name {
            "session" => path = path.replace("{session}", session),
            "X-Agent-ID" if example != "null" => agent = Some(example),
            "seq" if path.ends_with("/verdict") => path = path.replace("{seq}", "2"),
            _ => {
                let example = example.replace('/', "%2F");
                path = path.replace(&format!("{{{name}}}"), &example);
            }
        }
    }
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    let request = server.to(method, &path);
    match agent {
        Some(agent) => request.header("x-agent-id", agent),
        None => request,
    }
}

#[tokio::test]
async fn a_body_is_required_where_it_is_described_so() {
    let server = Server::start();
    let document = server.get("/openapi.json").await.json();
    let mut omitted = 0;
    for (index, operation) in with_json(&document).enumerate() {
        let (method, path, described) = operation;
        let request = prepared_request(&server, &format!("demo-{index}"), operation).await;
        let answer = ask(request).await;
        let is_required = described["requestBody"]["required"] == true;
        let is_taken = (200..300).contains(&answer.status());
        assert_eq!(is_taken, !is_required, "{method} {path}: {answer}");
        omitted += usize::from(is_taken);
    }
    assert_eq!(omitted, 7);
}

#[tokio::test]
async fn every_example_of_a_json_body_is_accepted() {
    let server = Server::start();
    let document = server.get("/openapi.json").await.json();
    let mut sent = 0;
    for operation in with_json(&document) {
        let (method, path, described) = operation;
        let contents = described["requestBody"]["content"].as_object().expect("contents");
        for (media_type, content) in contents.iter().filter(|(name, _)| name.contains("json")) {
            let what = format!("{method} {path} {media_type}");
            let example = content.get("example").unwrap_or_else(|| panic!("none: {what}"));
            let body = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            let request = prepared_request(&server, &format!("demo-{sent}"), operation).await;
            let request = request.header("content-type", media_type);
            let answer = ask(request.body(body.replace("demo-2", "forked"))).await;
            assert!((200..300).contains(&answer.status()), "{what}: {answer}");
            sent += 1;
        }
    }
    assert!(sent > 50, "{sent}");
    let prompt = &document["paths"]["/v1/sessions/{session}/prompt"]["get"]["responses"]["200"];
    let formats = &prompt["content"]["application/json"]["examples"];
    let formats: Vec<&String> = formats.as_object().expect("examples").keys().collect();
    assert_eq!(formats, ["anthropic", "gemini", "parts", "responses"]);
    assert!(prompt["content"]["text/markdown"]["examples"]["markdown"].is_object());
}
