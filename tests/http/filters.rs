//! Filters: selected entries and members.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::{Server, encoded};
use crate::logs::LOGS;

#[tokio::test]
async fn steps_are_compared_as_exact_numbers() {
    let server = Server::start();
    let items = r#"[{"step":1},{"step":2},{"step":2.0},{"step":20e-1},{"step":"2"},{"step":null},
        {"step":9007199254740993},{"step":9007199254740992},{"step":true},{"no":1},{"step":-0.0}]"#;
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("steps-{index}"));
        board.post(log, items).await.is(201);
        let cases: [(&str, &[u64]); 7] = [
            ("2", &[2, 3, 4]),
            ("2.0", &[2, 3, 4]),
            ("0.2e1,1", &[1, 2, 3, 4]),
            ("9007199254740993", &[7]),
            ("9007199254740992.0", &[8]),
            ("0", &[11]),
            ("99", &[]),
        ];
        for (steps, seqs) in cases {
            let answer = board.get(&format!("{log}?steps={steps}")).await;
            assert_eq!(answer.is(200).seqs(), seqs, "steps={steps}");
        }
        for steps in ["true", "two", "", "%222%22", "%5B1%5D", "01", "NaN"] {
            let answer = board.get(&format!("{log}?steps={steps}")).await;
            answer.problem(400, "invalid-parameter");
        }
    }
}

#[tokio::test]
async fn status_is_the_items_or_that_of_any_of_its_results() {
    let server = Server::start();
    let items = r#"[{"status":"FAIL"},{"status":"FINISH"},{"results":[{"status":"OK"},{"status":"FAIL"}]},
        {"results":{"status":"FAIL"}},{"results":[5,"FAIL"]},{"status":["FAIL"]},{"status":"fail"},
        {"status":"OK","results":[{"status":"FAIL"}]}]"#;
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("status-{index}"));
        board.post(log, items).await.is(201);
        assert_eq!(board.get(&format!("{log}?status=FAIL")).await.is(200).seqs(), [1, 3, 8]);
        assert_eq!(board.get(&format!("{log}?status=NONE")).await.is(200).seqs().len(), 0);
    }
}

#[tokio::test]
async fn agent_is_the_envelopes_or_the_items_where_it_has_none() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("agent-{index}"));
        board.post(log, r#"[{"agent":"A"},{"agent":"B"},{}]"#).await.is(201);
        let named = board.json(Method::POST, log, r#"[{"agent":"A"},{}]"#);
        ask(named.header("x-agent-id", "B")).await.is(201);
        assert_eq!(board.get(&format!("{log}?agent=A")).await.is(200).seqs(), [1]);
        assert_eq!(board.get(&format!("{log}?agent=B")).await.is(200).seqs(), [2, 4, 5]);
    }
}

#[tokio::test]
async fn trajectory_key_is_the_items_key() {
    let server = Server::start();
    let board = server.board("s");
    let items = r#"[{"key":"open, file"},{"key":"save"},{"key":1},{"value":"save"}]"#;
    for log in LOGS {
        board.post(log, items).await.is(201);
        let key = encoded("open, file");
        let answer = board.get(&format!("{log}?trajectory_key={key}")).await;
        assert_eq!(answer.is(200).seqs(), [1]);
        assert_eq!(board.get(&format!("{log}?trajectory_key=save")).await.seqs(), [2]);
    }
}

#[tokio::test]
async fn contains_looks_into_string_values_with_unicode_case_folded() {
    let server = Server::start();
    let items = json!([
        {"a":"Die Straße nach ÅNGSTRÖM"},
        {"straße":"a name is not looked at"},
        {"deep":[{"er":["nothing",{"x":"STRASSE"}]}]},
        {"n":1234},
        {"a":"Ὀδυσσεύς"},
        {"a":"tab\tand \"quote\""}
    ]);
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("contains-{index}"));
        board.post(log, &items.to_string()).await.is(201);
        let cases: [(&str, &[u64]); 8] = [
            ("strasse", &[1, 3]),
            ("STRAẞE", &[1, 3]),
            ("ångström", &[1]),
            ("1234", &[]),
            ("ὀδυσσεύσ", &[5]),
            ("and \"QUOTE", &[6]),
            ("\tand", &[6]),
            ("nowhere", &[]),
        ];
        for (text, seqs) in cases {
            let answer = board.get(&format!("{log}?contains={}", encoded(text))).await;
            assert_eq!(answer.is(200).seqs(), seqs, "contains={text}");
        }
    }
}

#[tokio::test]
async fn contains_does_not_look_into_images() {
    let server = Server::start();
    let board = server.board("s");
    let image = crate::images::data_url("image/png", &crate::images::png(2, 2, 9));
    let item = json!({"metadata":"m","image_path":"p","image_str":image});
    board.post("screenshots", &item.to_string()).await.is(201);
    for text in ["iVBOR", "data:image", "base64"] {
        let answer = board.get(&format!("screenshots?images=inline&contains={text}")).await;
        assert_eq!(answer.is(200).seqs().len(), 0, "{text}");
    }
    assert_eq!(board.get("screenshots?contains=M").await.seqs(), [1]);
}

#[tokio::test]
async fn filters_hold_together() {
    let server = Server::start();
    let board = server.board("s");
    let items = r#"[{"step":1,"status":"FAIL","t":"x"},{"step":1,"status":"OK","t":"x"},{"step":2,"status":"FAIL","t":"x"}]"#;
    board.post("trajectories", items).await.is(201);
    let answer = board.get("trajectories?steps=1&status=FAIL&contains=X").await;
    assert_eq!(answer.is(200).seqs(), [1]);
}

#[tokio::test]
async fn keys_show_only_these_members_in_the_items_own_order() {
    let server = Server::start();
    for (index, log) in LOGS.into_iter().enumerate() {
        let board = server.board(&format!("keys-{index}"));
        board.post(log, r#"[{"b":1E2,"a":null,"c":3,"x,y":4},{"z":1}]"#).await.is(201);
        let cases = [
            ("a,b", [r#"{"b":1E2,"a":null}"#, "{}"]),
            ("a%2Cb", [r#"{"b":1E2,"a":null}"#, "{}"]),
            ("a&keys=b", [r#"{"b":1E2,"a":null}"#, "{}"]),
            ("%5B%22x,y%22%5D&keys=z", [r#"{"x,y":4}"#, r#"{"z":1}"#]),
            ("[]", ["{}", "{}"]),
            ("none", ["{}", "{}"]),
            ("z,c", [r#"{"c":3}"#, r#"{"z":1}"#]),
        ];
        for (keys, lines) in cases {
            assert_eq!(board.lines(&format!("{log}?keys={keys}")).await, lines, "{keys}");
            let entry = board.get(&format!("{log}/1?keys={keys}")).await;
            // An entry may take the parameter or not know it; it may not ignore it.
            if entry.status() == 200 {
                assert!(entry.text().contains(lines[0]), "{entry}");
            }
        }
    }
}

#[tokio::test]
async fn the_latest_that_match_are_looked_for_as_far_as_a_page_goes() {
    let server = Server::start();
    let board = server.board("s");
    let mut items = vec![json!({"text": "needle"})];
    items.resize(10_001, json!({"text": "hay"}));
    board.post("requests", &json!(items).to_string()).await.is(201);
    let page = board.get("requests?contains=needle&latest=1").await;
    let page = page.is(200).json();
    assert_eq!(
        (&page["entries"], &page["more"], &page["next"]),
        (&json!([]), &json!(true), &json!(2))
    );
    let older = board.get("requests?contains=needle&order=desc&before=2").await;
    assert_eq!((older.is(200).seqs(), &older.json()["more"]), (vec![1], &json!(false)));
    let found = board.get("requests?contains=hay&latest=2").await;
    assert_eq!(found.is(200).seqs(), [10_000, 10_001]);
    assert_eq!((&found.json()["more"], &found.json()["next"]), (&json!(false), &json!(10_001)));
    // Lines have no place to go on at, so there they are looked for everywhere.
    assert_eq!(board.lines("requests?contains=needle&latest=1").await.len(), 1);
}
