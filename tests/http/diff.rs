//! Diffs: added, changed and removed parts between two revisions.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};

async fn diff(board: &Board, query: &str) -> Value {
    board.get(&format!("diff?{query}")).await.is(200).json()
}

fn paths(list: &Value) -> Vec<&str> {
    let paths = list.as_array().expect("a list").iter();
    paths.map(|one| one["path"].as_str().expect("a path")).collect()
}

#[tokio::test]
async fn a_diff_tells_what_was_added_changed_and_removed() {
    let server = Server::start();
    let board = server.board("s");
    board.put("trajectories", r#"[{"n":1},{"n":2},{"n":3}]"#).await.is(201);
    board.put("state", r#"{"same":{"x":1},"a":{"b":1,"c":2},"gone":[1]}"#).await.succeeded();
    let from = board.put("agents/Z", r#"{"status":"CONTINUE","host":"H"}"#).await.revision();
    board.delete("trajectories/2").await.is(200);
    board.put("trajectories/3", r#"{ "n" : 3.5 }"#).await.is(200);
    board.post("trajectories", r#"{"n":4}"#).await.is(201);
    board.put("state/a/b", "5").await.succeeded();
    board.put("state/new~1key", r#"{"deep":true}"#).await.succeeded();
    board.delete("state/gone").await.is(200);
    board.merge("agents/Z", r#"{"status":"FINISH"}"#).await.is(200);
    let to = board.put("", r#"{"labels":{"k":"v"}}"#).await.revision();

    let found = board.get(&format!("diff?from={from}")).await;
    let text = format!(
        concat!(
            r#"{{"from":{from},"to":{to},"added":[{{"path":"trajectories/4","item":{{"n":4}}}},"#,
            r#"{{"path":"state/new~1key","value":{{"deep":true}}}},{{"path":"labels","value":{{"k":"v"}}}}],"#,
            r#""changed":[{{"path":"trajectories/3","before":{{"n":3}},"after":{{ "n" : 3.5 }}}},"#,
            r#"{{"path":"state/a/b","before":1,"after":5}},"#,
            r#"{{"path":"agents/Z","before":{{"status":"CONTINUE","host":"H"}},"#,
            r#""after":{{"status":"FINISH","host":"H"}}}}],"#,
            r#""removed":[{{"path":"trajectories/2","item":{{"n":2}}}},{{"path":"state/gone","value":[1]}}],"#,
            r#""more":false,"next":8}}"#,
            "\n"
        ),
        from = from,
        to = to
    );
    assert_eq!(found.is(200).text(), text);
    assert_eq!(found.revision(), to);

    let back = diff(&board, &format!("from={to}&to={from}")).await;
    assert_eq!(paths(&back["added"]), ["trajectories/2", "state/gone"]);
    assert_eq!(paths(&back["removed"]), ["trajectories/4", "state/new~1key", "labels"]);
    assert_eq!(back["changed"][1], json!({"path":"state/a/b","before":5,"after":1}));
    let none = diff(&board, &format!("from={from}&to={from}")).await;
    let empty =
        json!({"from":from,"to":from,"added":[],"changed":[],"removed":[],"more":false,"next":0});
    assert_eq!(none, empty);
    let all = diff(&board, "from=0").await;
    assert_eq!(paths(&all["added"]).len(), 8, "{all}");
}

#[tokio::test]
async fn a_diff_shows_a_requests_outcome_and_no_undone_change() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("requests", r#"[{"n":1},{"n":2}]"#).await.is(201);
    ask(board.by("A", Method::PUT, "requests/1/done", r#"{"result":7}"#)).await.is(200);
    board.put("requests/2", r#"{"n":3}"#).await.is(200);
    board.put("requests/2", r#"{"n":2}"#).await.is(200);
    board.put("state/a", "1").await.is(201);
    board.put("state/a", "2").await.is(200);
    board.put("state/a", "1").await.is(200);
    let found = diff(&board, "from=2").await;
    assert_eq!(paths(&found["changed"]), ["requests/1"]);
    assert_eq!(found["changed"][0]["done"]["result"], 7);
    assert_eq!(paths(&found["added"])[0], "state/a");
    assert_eq!(diff(&board, "from=5&to=5").await["next"], 0);
    let same = diff(&board, "from=6").await;
    assert_eq!((&same["changed"], &same["next"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn memories_and_images_are_compared_too() {
    const GIF: &str =
        "data:image/gif;base64,R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7";
    let server = Server::start();
    let board = server.made("s").await;
    board.post("agents/A%2FB/memory", "{}").await.refused();
    board.post("agents/A%20B/memory", r#"{"step":1}"#).await.is(201);
    let image = format!("{{\"image_str\":\"{GIF}\",\"n\":1}}");
    let to = board.post("screenshots", &image).await.is(201).revision();
    let found = diff(&board, &format!("from=1&to={to}")).await;
    let added = paths(&found["added"]);
    assert_eq!(added, ["screenshots/1", "agents/A B/memory/1", "agents/A B"]);
    assert_eq!(found["added"][0]["item"], json!({"n":1}));
    let url = found["added"][0]["image"]["url"].as_str().unwrap().to_owned();
    assert_eq!(url, format!("/v1/sessions/s/screenshots/1/image?at={to}"));
}

#[tokio::test]
async fn a_diff_is_paged_in_an_order_that_stays() {
    let server = Server::start();
    let board = server.made("s").await;
    let items: Vec<Value> = (0..25).map(|n| json!({"n":n})).collect();
    board.post("requests", &json!(items).to_string()).await.is(201);
    board.put("state", &json!({"a":{"x":1,"y":2},"b":3}).to_string()).await.succeeded();
    let whole = diff(&board, "from=1").await;
    assert_eq!((paths(&whole["added"]).len(), &whole["more"]), (27, &json!(false)));
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = diff(&board, &format!("from=1&to=3&limit=10&after={after}")).await;
        found.extend(page["added"].as_array().unwrap().clone());
        after = page["next"].as_u64().unwrap();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!((&json!(found), after), (&whole["added"], 27));
    assert_eq!(diff(&board, "from=1&after=99").await["added"], json!([]));
}

#[tokio::test]
async fn a_diff_needs_revisions_that_there_are() {
    let server = Server::start();
    let board = server.made("s").await;
    board.post("checkpoints", r#"{"name":"here"}"#).await.is(201);
    board.post("requests", "{}").await.is(201);
    let named = diff(&board, "from=here").await;
    assert_eq!((&named["from"], &named["to"]), (&json!(2), &json!(3)));
    for (query, status, code) in [
        ("", 400, "invalid-parameter"),
        ("?to=1", 400, "invalid-parameter"),
        ("?from=", 400, "invalid-parameter"),
        ("?from=1&limit=0", 400, "invalid-parameter"),
        ("?from=1&limit=10001", 400, "invalid-parameter"),
        ("?from=1&at=1", 400, "unknown-parameter"),
        ("?from=4", 404, "revision-not-found"),
        ("?from=1&to=99999999999999999999999", 404, "revision-not-found"),
        ("?from=there", 404, "checkpoint-not-found"),
    ] {
        board.get(&format!("diff{query}")).await.problem(status, code);
    }
    server.board("none").get("diff?from=0").await.problem(404, "session-not-found");
    let tag = board.get("diff?from=1&to=2").await.etag();
    board.post("requests", "{}").await.is(201);
    let known = board.to(Method::GET, "diff?from=1&to=2").header("if-none-match", tag);
    ask(known).await.is(304);
}
