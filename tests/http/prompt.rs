//! Prompts: parts, order, and the query's effect; the vectors check the text.

use serde_json::{Value, json};

use crate::harness::{Board, Server};
use crate::images::{data_url, png};

async fn filled(server: &Server) -> Board {
    let board = server.board("s");
    board.post("questions", r#"[{"question":"q","answer":"a"},{"question":"r"}]"#).await.is(201);
    board.post("requests", r#"["one","two"]"#).await.is(201);
    board.post("trajectories", r#"[{"step":1,"x":1e5},{"step":2,"x":"é"}]"#).await.is(201);
    let url = data_url("image/png", &png(2, 2, 1));
    let item = json!({"metadata":{"why":"看"},"image_path":"a.png","image_str":url});
    board.post("screenshots", &item.to_string()).await.is(201);
    board
}

fn texts(parts: &Value) -> Vec<&str> {
    let parts = parts.as_array().expect("parts").iter();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

const QUESTIONS: &str =
    "[Questions & Answers:]\n [{\"question\": \"q\", \"answer\": \"a\"}, {\"question\": \"r\"}]";
const REQUESTS: &str = "[Request History:]\n [{\"text\": \"one\"}, {\"text\": \"two\"}]";
const TRAJECTORIES: &str = "[Step Trajectories Completed Previously:]\n \
    [{\"step\": 1, \"x\": 100000.0}, {\"step\": 2, \"x\": \"\\u00e9\"}]";
const METADATA: &str = "{\"why\": \"\\u770b\"}";

#[tokio::test]
async fn the_prompt_has_the_originals_parts() {
    let server = Server::start();
    let board = filled(&server).await;
    let answer = board.get("prompt").await;
    assert!(answer.header("content-type").starts_with("application/json"), "{answer}");
    let parts = answer.is(200).json();
    let expected = ["[Blackboard:]", QUESTIONS, REQUESTS, TRAJECTORIES, METADATA];
    assert_eq!(texts(&parts), expected);
    let url = data_url("image/png", &png(2, 2, 1));
    assert_eq!(parts[5], json!({"type":"image_url","image_url":{"url":url}}));
    assert_eq!(parts.as_array().unwrap().len(), 6);
    assert_eq!(parts[0], json!({"type":"text","text":"[Blackboard:]"}));
}

#[tokio::test]
async fn an_empty_board_says_so() {
    let server = Server::start();
    let board = server.board("s");
    board.post("agents/A/memory", "{}").await.is(201);
    for tail in ["prompt", "prompt?include=memory:A", "blackboard"] {
        assert_eq!(board.get(tail).await.is(200).header("blackboard-empty"), "true", "{tail}");
    }
    board.post("requests", "{}").await.is(201);
    for tail in ["prompt", "blackboard"] {
        assert_eq!(board.get(tail).await.is(200).header("blackboard-empty"), "false", "{tail}");
    }
}

#[tokio::test]
async fn include_picks_parts_and_never_their_order() {
    let server = Server::start();
    let board = filled(&server).await;
    board.post("agents/Host%2CA/memory", r#"{"step":1.0}"#).await.is(201);
    let parts = board.get("prompt?include=trajectories,questions").await.is(200).json();
    assert_eq!(texts(&parts), ["[Blackboard:]", QUESTIONS, TRAJECTORIES]);
    let tail = "prompt?include=screenshots,requests&include=%5B%22memory:Host,A%22%5D&images=none";
    let parts = board.get(tail).await.is(200).json();
    let shown = texts(&parts);
    assert_eq!(&shown[..3], ["[Blackboard:]", REQUESTS, METADATA]);
    assert_eq!(shown.last(), Some(&"[Memory of Host,A:]\n [{\"step\": 1.0}]"));
    for include in ["nothing", "memory:", "requests,,questions", ""] {
        let tail = format!("prompt?include={include}");
        board.get(&tail).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn keys_and_latest_shorten_the_prompt() {
    let server = Server::start();
    let board = filled(&server).await;
    let parts = board.get("prompt?keys=x&latest=1").await.is(200).json();
    let expected = [
        "[Blackboard:]",
        "[Questions & Answers:]\n [{\"question\": \"r\"}]",
        "[Request History:]\n [{\"text\": \"two\"}]",
        "[Step Trajectories Completed Previously:]\n [{\"x\": \"\\u00e9\"}]",
        METADATA,
    ];
    assert_eq!(texts(&parts), expected);
    board.get("prompt?latest=x").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn images_may_be_addresses_or_left_out() {
    let server = Server::start();
    let board = filled(&server).await;
    let inline = board.get("prompt?images=inline").await.json();
    assert_eq!(inline, board.get("prompt").await.json());
    let parts = board.get("prompt?images=url").await.is(200).json();
    let url = parts[5]["image_url"]["url"].as_str().unwrap();
    assert!(url.ends_with("/v1/sessions/s/screenshots/1/image"), "{url}");
    let parts = board.get("prompt?images=none").await.is(200).json();
    assert!(!parts.to_string().contains("image_url"), "{parts}");
    board.get("prompt?images=all").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn the_dictionary_goes_out_and_in_unchanged() {
    let server = Server::start();
    let board = filled(&server).await;
    let dictionary = board.dictionary().await;
    let copy = server.board("copy");
    copy.put("blackboard", &dictionary).await.succeeded();
    assert_eq!(copy.dictionary().await, dictionary);
    assert_eq!(copy.get("prompt").await.json(), board.get("prompt").await.json());
    let other = board.put("blackboard", r#"{"requests":[],"others":[]}"#).await;
    let problem = other.problem(422, "unknown-field");
    assert!(problem.to_string().contains("others"), "{problem}");
    assert_eq!(board.dictionary().await, dictionary);
}
