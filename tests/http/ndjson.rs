//! NDJSON: strict and lenient, the last lines only, and bare items out.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::logs::LOGS;

async fn post_lines(board: &Board, tail: &str, lines: &'static str) -> Answer {
    ask(board.typed(Method::POST, tail, "application/x-ndjson", lines)).await
}

#[tokio::test]
async fn every_log_takes_an_item_a_line() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("lines-{index}"));
        for media_type in ["application/x-ndjson", "application/jsonl"] {
            let lines = "{\"n\":1}\r\n\"two\"\n{\"n\":3e0}";
            ask(board.typed(Method::POST, log, media_type, lines)).await.is(201);
        }
        let expected = [r#"{"n":1}"#, r#"{"text":"two"}"#, r#"{"n":3e0}"#];
        let shown = board.lines(log).await;
        let shown: Vec<String> = shown.iter().map(|line| line.replace(' ', "")).collect();
        assert_eq!(shown, [expected, expected].concat());
        assert_eq!(board.get(log).await.seqs(), [1, 2, 3, 4, 5, 6]);
    }
}

#[tokio::test]
async fn a_bad_line_is_named_and_nothing_is_written() {
    let server = Server::start();
    let board = server.made("s").await;
    for log in LOGS {
        let cases = [
            ("{\"n\":1}\n{\"n\":\n{\"n\":3}\n", 400, "invalid-json", 2),
            ("{\"n\":1}\n{\"n\":2}\n5\n", 422, "unsupported-item", 3),
            ("[]\n", 422, "unsupported-item", 1),
            ("{\"n\":1}\n{\"n\":NaN}\n", 400, "invalid-json", 2),
            ("{\"n\":1}\n{\"n\":1e400}\n", 422, "unsupported-value", 2),
        ];
        for (lines, status, code, line) in cases {
            let problem = post_lines(&board, log, lines).await.problem(status, code);
            assert_eq!(problem["errors"][0]["line"], line, "{problem}");
        }
        assert_eq!(board.get(log).await.is(200).json()["count"], 0);
    }
}

#[tokio::test]
async fn lenient_passes_over_bad_lines_and_lists_them() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("lenient-{index}"));
        let lines = "{\"n\":1}\n{bad\n\"two\"\nnull\n{\"n\":1e400}\n{\"n\":3}\n";
        let answer = post_lines(&board, &format!("{log}?lenient=true"), lines).await;
        assert_eq!(answer.is(201).seqs(), [1, 2, 3]);
        let skipped = answer.json()["skipped"].clone();
        let numbers: Vec<&Value> =
            skipped.as_array().expect("skipped").iter().map(|skip| &skip["line"]).collect();
        assert_eq!(numbers, [&json!(2), &json!(4), &json!(5)], "{skipped}");
        let items = board.get(log).await.items();
        assert_eq!(items, [json!({"n":1}), json!({"text":"two"}), json!({"n":3})]);
    }
}

#[tokio::test]
async fn lenient_with_no_good_line_changes_nothing() {
    let server = Server::start();
    let board = server.made("s").await;
    let answer = post_lines(&board, "questions?lenient=true", "{bad\nnull\n").await;
    assert_eq!(answer.is(200).json()["entries"], json!([]));
    assert_eq!(answer.json()["skipped"].as_array().map(Vec::len), Some(2));
    assert_eq!(board.get("").await.revision(), 1);
}

#[tokio::test]
async fn last_k_takes_only_the_last_lines() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let lines = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n";
        for (k, taken) in [("1", 1), ("2", 2), ("3", 3), ("9", 3), ("-1", 3)] {
            let board = server.board(&format!("last-{index}-{k}"));
            let answer = post_lines(&board, &format!("{log}?last_k={k}"), lines).await;
            assert_eq!(answer.is(201).seqs().len(), taken);
            let last = board.get(log).await.items();
            assert_eq!(last.last(), Some(&json!({"n":3})));
        }
        let board = server.board("never");
        for k in ["0", "-2", "x", "", "1.5"] {
            let answer = post_lines(&board, &format!("{log}?last_k={k}"), lines).await;
            answer.problem(400, "invalid-parameter");
        }
    }
    server.board("never").get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn ndjson_out_is_all_the_items_unless_a_limit_is_given() {
    let server = Server::start();
    let board = server.board("s");
    let items: Vec<Value> = (1..=130).map(|n| json!({"step":n,"text":"t"})).collect();
    for log in LOGS {
        board.post(log, &Value::from(items.clone()).to_string()).await.is(201);
        let lines = board.lines(log).await;
        let shown: Vec<Value> = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(shown, items);
        assert_eq!(board.lines(&format!("{log}?limit=7")).await.len(), 7);
        let last = board.lines(&format!("{log}?latest=2&keys=step")).await;
        assert_eq!(last, [r#"{"step":129}"#, r#"{"step":130}"#]);
    }
    let request = board.to(Method::GET, "requests");
    let answer = ask(request.header("accept", "application/x-ndjson")).await;
    assert!(answer.header("content-type").starts_with("application/x-ndjson"), "{answer}");
    assert_eq!(answer.body().last(), Some(&b'\n'));
}
