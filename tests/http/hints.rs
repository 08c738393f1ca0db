//! Refusals with a remedy: known statuses, media types, parameters and routes.

use reqwest::Method;
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server, blackboard};
use crate::images::{data_url, png};
use crate::raw;

/// Checks that a refusal's sentence has these words.
fn hints(answer: &Answer, status: u16, code: &str, words: &[&str]) {
    let problem = answer.problem(status, code);
    let detail = problem["detail"].as_str().expect("a detail");
    for word in words {
        assert!(detail.contains(word), "{word:?} is not in {detail:?}");
    }
}

async fn posted(board: &Board, tail: &str, media_type: &str, bytes: Vec<u8>) -> Answer {
    ask(board.typed(Method::POST, tail, media_type, bytes)).await
}

#[tokio::test]
async fn an_unknown_route_leads_to_the_documentation() {
    let server = Server::start();
    let board = server.made("s").await;
    let code = "route-not-found";
    hints(&server.get("/v2/sessions").await, 404, code, &["/docs", "/openapi.json"]);
    hints(&server.get("/v1/sessions/").await, 404, code, &["slash"]);
    hints(&server.get("/sessions/s").await, 404, code, &["/v1/sessions"]);
    hints(&board.get("trajectory").await, 404, code, &["did you mean 'trajectories'?", "/docs"]);
}

#[tokio::test]
async fn an_unknown_status_is_told_the_known_ones() {
    let server = Server::start();
    let board = server.made("s").await;
    board
        .put("", r#"{"settings":{"agent_states":{"WAITING":{"from":["CONTINUE"],"to":[]}}}}"#)
        .await
        .is(200);
    let all = ["ERROR", "FINISH", "CONTINUE", "PENDING", "WAITING"];
    let done = board.put("agents/A", r#"{"status":"DONE"}"#).await;
    hints(&done, 422, "invalid-field", &all);
    let near = board.put("agents/A", r#"{"status":"finish"}"#).await;
    hints(&near, 422, "invalid-field", &["did you mean 'FINISH'?"]);
    let transacted = r#"{"then":[{"status":"A","value":"WAITNG"}]}"#;
    board.put("agents/A", "{}").await.is(201);
    let transacted = board.post("transactions", transacted).await;
    hints(&transacted, 422, "invalid-field", &["did you mean 'WAITING'?"]);
}

#[tokio::test]
async fn a_merge_sent_as_plain_json_is_told_its_media_type() {
    let server = Server::start();
    let board = server.board("s");
    let sent = ask(board.typed(Method::PATCH, "state", "application/json", r#"{"a":1}"#)).await;
    hints(
        &sent,
        422,
        "unknown-field",
        &["known here: add, append", "application/merge-patch+json"],
    );
    let sent = ask(board.typed(Method::PATCH, "state/a", "application/json", "{}")).await;
    hints(&sent, 422, "invalid-field", &["application/merge-patch+json"]);
}

#[tokio::test]
async fn an_item_put_to_a_log_is_told_to_post() {
    let server = Server::start();
    let board = server.made("s").await;
    let put = board.put("requests", "{\"request\":\"open\"}").await;
    hints(&put, 422, "array-required", &["POST"]);
}

#[tokio::test]
async fn images_are_told_their_media_type() {
    let server = Server::start();
    let board = server.made("s").await;
    let png = || png(2, 3, 1);
    let as_form = posted(&board, "screenshots", "application/x-www-form-urlencoded", png()).await;
    hints(&as_form, 415, "unsupported-media-type", &["Content-Type: image/png"]);
    let as_jpeg = posted(&board, "screenshots", "image/jpeg", png()).await;
    hints(&as_jpeg, 422, "not-an-image", &["'image/png', not 'image/jpeg'"]);
    let quoted = posted(&board, "screenshots?metadata=Print%20dialog", "image/png", png()).await;
    hints(&quoted, 400, "invalid-parameter", &["quotes"]);

    posted(&board, "screenshots", "application/octet-stream", png()).await.is(201);
    let entry = board.get("screenshots/1?images=inline").await.json();
    assert_eq!(entry["item"]["image_str"], data_url("image/png", &png()));
    let unknown = posted(&board, "screenshots", "application/octet-stream", vec![0; 20]).await;
    hints(
        &unknown,
        422,
        "not-an-image",
        &["image/png, image/jpeg, image/webp, image/gif, image/bmp"],
    );
    let as_jpg = posted(&board, "screenshots", "image/jpg", png()).await;
    hints(&as_jpg, 422, "not-an-image", &["not 'image/jpeg'"]);
}

#[tokio::test]
async fn every_parameter_of_a_prompt_is_suggested() {
    let server = Server::start();
    let board = server.made("s").await;
    for (wrong, right) in [("asci", "ascii"), ("cachemarks", "cache_marks")] {
        let answer = board.get(&format!("prompt?{wrong}=true")).await;
        answer.problem(400, "unknown-parameter");
        assert!(answer.json().to_string().contains(&format!("'{right}'")), "{answer}");
    }
}

#[tokio::test]
async fn an_image_str_that_is_no_image_is_kept_and_said() {
    let server = Server::start();
    let board = server.made("s").await;
    let warnings = |answer: &Answer| answer.json()["warnings"].clone();
    let kept = board.post("screenshots", "{\"image_str\":\"shot.png\"}").await;
    assert_eq!(warnings(kept.is(201))[0]["pointer"], "/image_str");
    assert_eq!(board.get("screenshots/1").await.json()["item"]["image_str"], "shot.png");
    let good = data_url("image/png", &png(2, 3, 1));
    let good = format!("{{\"image_str\":\"{good}\"}}");
    assert_eq!(warnings(board.post("screenshots", &good).await.is(201)), Value::Null);
    let array = format!("[{good},{{\"image_str\":\"\"}},{{\"image_str\":null}}]");
    for answer in [board.post("screenshots", &array).await, board.put("screenshots", &array).await]
    {
        let warnings = warnings(&answer);
        assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(warnings[0]["pointer"], "/1/image_str");
    }
    let lines = format!("{good}\n{{\"image_str\":\"x\"}}\n");
    let lines = posted(&board, "screenshots", "application/x-ndjson", lines.into_bytes()).await;
    assert_eq!(
        (&warnings(&lines)[0]["line"], &warnings(&lines)[0]["pointer"]),
        (&2.into(), &"/image_str".into())
    );
    let elsewhere = board.post("requests", "{\"image_str\":\"x\"}").await;
    assert_eq!(warnings(elsewhere.is(201)), Value::Null);
    let many = format!("[{}]", vec!["{\"image_str\":\"x\"}"; 200].join(","));
    let many = warnings(&board.post("screenshots", &many).await);
    assert_eq!(many.as_array().map(Vec::len), Some(100), "the list is bounded");
}

#[tokio::test]
async fn every_way_in_takes_the_data_urls_of_browsers() {
    const GIF: &str = "R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7";
    const HEIC: &str = "data:image/heic; base64,AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWlj";
    let server = Server::start();
    let board = server.made("s").await;
    let warnings = |answer: &Answer| answer.json()["warnings"].clone();
    for url in [
        format!("data:image/gif;BASE64,{GIF}"),
        format!("data:image/gif; base64,{GIF}"),
        format!("data:IMAGE/GIF;base64,{GIF}"),
        format!("data:image/gif;base64,{}\n{}", &GIF[..20], &GIF[20..]),
    ] {
        let item = |url: &str| serde_json::json!({ "metadata": null, "image_str": url });
        let lines = format!("{}\n{}\n", item(&url), item(HEIC));
        let both = serde_json::json!([item(&url), item(HEIC)]).to_string();
        let append = serde_json::json!({ "append": "screenshots", "item": item(&url) });
        let append = serde_json::json!({ "then": [append] }).to_string();
        let whole = serde_json::json!({ "screenshots": [item(&url), item(HEIC)] }).to_string();
        for (answer, warned) in [
            (board.post("screenshots", &both).await, 1),
            (posted(&board, "screenshots", "application/x-ndjson", lines.into_bytes()).await, 1),
            (board.put("screenshots", &both).await, 1),
            (board.post("transactions", &append).await, 0),
            (board.put("blackboard", &whole).await, 0),
        ] {
            let warnings = warnings(answer.succeeded());
            assert_eq!(warnings.as_array().map_or(0, Vec::len), warned, "{answer}");
        }
        let read = board.get("screenshots?images=inline").await.json();
        assert_eq!(read["entries"][0]["item"]["image_str"], url, "it stays the string it was");
    }
    let large = format!("data:image/gif;base64,\\n{}", "A".repeat(1 << 20));
    let large = format!("{{\"image_str\":\"{large}\"}}");
    let refused = board.post("screenshots", &large).await;
    let detail = refused.problem(413, "item-too-large")["detail"].clone();
    assert!(detail.as_str().unwrap().contains("counts as text"), "{detail}");
}

#[test]
fn a_malformed_url_gets_a_problem() {
    let server = Server::start();
    for target in ["/v1/sessions?label={\"a\":1}", "/v1/sessions/a b", "/v1/<sessions>?a=<b>"] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = raw::exchange(&server, &head, b"");
        answer.problem(400, "invalid-encoding");
        assert!(answer.body.contains("percent-encoded"), "{}", answer.body);
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(70_000));
    assert!(raw::exchange(&server, &long, b"").body.contains("too long"));
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let output = blackboard(&["openapi"]).env("BLACKBOARD_LISTN", "1").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("did you mean BLACKBOARD_LISTEN?"), "{said}");
}
