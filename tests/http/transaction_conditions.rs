//! Tests of transactions: every condition true and false, with the branch taken.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::transactions::transact;
use crate::whole::{Whole, pointer, receipt, refuses};

const STATE: &str = r#"{"t":{"status":"ready","n":1.0,"o":{"a":1,"b":[1,2]}},"z":null,"a/b":true,"big":9007199254740993,"long":123456789012345678901234567890,"dup":{"list":[]}}"#;

/// Of the three requests the first is claimed, the second done.
async fn filled(server: &Server) -> Board {
    let board = server.board("s");
    board.put("state", STATE).await.succeeded();
    board.post("requests", "[{},{},{}]").await.is(201);
    board.post("agents/A%20b/memory", "{}").await.is(201);
    ask(board.by("A", Method::PUT, "requests/1/claim", "")).await.is(201);
    ask(board.by("A", Method::PUT, "requests/2/done", "{}")).await.is(200);
    board
}

/// Which branch is taken, as both of them would say.
async fn taken(board: &Board, conditions: &str) -> bool {
    let body = format!(
        r#"{{"if":{conditions},"then":[{{"append":"trajectories","item":{{"branch":"then"}}}}],"else":[{{"append":"trajectories","item":{{"branch":"else"}}}}]}}"#
    );
    let head = board.get("").await.revision();
    let answer = receipt(board.post("transactions", &body).await.is(200));
    let succeeded = answer["succeeded"].as_bool().expect("a boolean");
    assert_eq!(answer["revision"], head + 1, "{conditions}");
    assert_eq!(answer["results"][0]["append"], "trajectories", "{conditions}");
    let last = board.get("trajectories?latest=1").await.items();
    assert_eq!(last, [json!({"branch":if succeeded { "then" } else { "else" }})], "{conditions}");
    succeeded
}

const TRUE: [&str; 30] = [
    r#"{"path":"t/status","equals":"ready"}"#,
    r#"{"path":"t/n","equals":1}"#,
    r#"{"path":"t/n","equals":1.0}"#,
    r#"{"path":"t/n","equals":10e-1}"#,
    r#"{"path":"t/o","equals":{"a":1,"b":[1,2]}}"#,
    r#"{"path":"t/o","equals":{"b":[1E0,2.0],"a":1.00}}"#,
    r#"{"path":"t/o/b","equals":[1,2]}"#,
    r#"{"path":"z","equals":null}"#,
    r#"{"path":"a~1b","equals":true}"#,
    r#"{"path":"big","equals":9007199254740993}"#,
    r#"{"path":"long","equals":123456789012345678901234567890}"#,
    r#"{"path":"dup","equals":{"list":[]}}"#,
    r#"{"path":"t/status","equals":"\u0072eady"}"#,
    r#"{"path":"x","absent":true}"#,
    r#"{"path":"t/x/y","absent":true}"#,
    r#"{"path":"t/n/x","absent":true}"#,
    r#"{"path":"t/o/b/0","absent":true}"#,
    r#"{"path":"t","absent":false}"#,
    r#"{"path":"z","absent":false}"#,
    r#"{"path":"","absent":false}"#,
    r#"{"log":"requests","count":3}"#,
    r#"{"log":"questions","count":0}"#,
    r#"{"log":"screenshots","count":0}"#,
    r#"{"log":"agents/A b/memory","count":1}"#,
    r#"{"log":"agents/nobody/memory","count":0}"#,
    r#"{"request":3,"claimable":true}"#,
    r#"{"request":1,"claimable":false}"#,
    r#"{"request":2,"claimable":false}"#,
    r#"{"path":"t/o","equals":{"b":[1,2],"a":1}}"#,
    r#"{"path":"t/n","equals":0.1e1}"#,
];

const FALSE: [&str; 29] = [
    r#"{"path":"t/status","equals":"taken"}"#,
    r#"{"path":"t/status","equals":"Ready"}"#,
    r#"{"path":"t/n","equals":1.5}"#,
    r#"{"path":"t/n","equals":"1"}"#,
    r#"{"path":"t/n","equals":true}"#,
    r#"{"path":"t/o","equals":{"a":1}}"#,
    r#"{"path":"t/o","equals":{"a":1,"b":[2,1]}}"#,
    r#"{"path":"t/o","equals":{"a":1,"b":[1,2],"c":3}}"#,
    r#"{"path":"t/o/b","equals":[1]}"#,
    r#"{"path":"z","equals":false}"#,
    r#"{"path":"a/b","equals":true}"#,
    r#"{"path":"big","equals":9007199254740992}"#,
    r#"{"path":"long","equals":123456789012345678901234567891}"#,
    r#"{"path":"long","equals":1.2345678901234568e29}"#,
    r#"{"path":"x","equals":1}"#,
    r#"{"path":"t/n/x","equals":1}"#,
    r#"{"path":"","equals":{}}"#,
    r#"{"path":"t","absent":true}"#,
    r#"{"path":"z","absent":true}"#,
    r#"{"path":"x","absent":false}"#,
    r#"{"path":"x","etag":"\"other\""}"#,
    r#"{"path":"t","etag":"\"other\""}"#,
    r#"{"log":"requests","count":2}"#,
    r#"{"log":"questions","count":1}"#,
    r#"{"log":"agents/A b/memory","count":0}"#,
    r#"{"request":1,"claimable":true}"#,
    r#"{"request":2,"claimable":true}"#,
    r#"{"request":3,"claimable":false}"#,
    r#"{"request":99,"claimable":true}"#,
];

#[tokio::test]
async fn every_condition_is_true_or_false() {
    let server = Server::start();
    let board = filled(&server).await;
    for (conditions, expected) in [(TRUE.as_slice(), true), (FALSE.as_slice(), false)] {
        for condition in conditions {
            assert_eq!(taken(&board, &format!("[{condition}]")).await, expected, "{condition}");
        }
    }
    for (before, equals, expected) in
        [("{}", "{}", true), (r#"{"a":1}"#, r#"{"a":1.0}"#, true), ("{}", "[]", false)]
    {
        board.put("state", before).await.is(200);
        let condition = format!("[{{\"path\":\"\",\"equals\":{equals}}}]");
        assert_eq!(taken(&board, &condition).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn all_conditions_must_hold() {
    let server = Server::start();
    let board = filled(&server).await;
    assert!(taken(&board, "[]").await);
    let all = TRUE.join(",");
    assert!(taken(&board, &format!("[{all}]")).await);
    for one in ["[F,T]", "[T,F]", "[T,F,T]", "[F,F]"] {
        let list = one.replace('T', TRUE[0]).replace('F', FALSE[1]);
        assert!(!taken(&board, &list).await, "{one}");
    }
    assert!(!taken(&board, &format!("[{all},{}]", FALSE[0])).await);
}

#[tokio::test]
async fn a_condition_may_ask_for_a_tag_and_for_a_revision() {
    let server = Server::start();
    let board = filled(&server).await;
    for path in ["t", "t/o/b", "a~1b"] {
        let tag = board.get(&format!("state/{path}")).await.etag();
        let condition = json!([{"path":path,"etag":tag}]).to_string();
        assert!(taken(&board, &condition).await, "{path}");
        // A sibling's change leaves it, its own does not.
        board.merge("state", r#"{"z":{"other":1}}"#).await.is(200);
        assert!(taken(&board, &condition).await, "{path}");
        board.put(&format!("state/{path}"), r#"{"o":{"b":{"x":1}}}"#).await.is(200);
        assert!(!taken(&board, &condition).await, "{path}");
        board.put("state", STATE).await.is(200);
        assert!(!taken(&board, &condition).await, "{path}");
    }
    let tag = board.get("state").await.etag();
    assert!(taken(&board, &json!([{"path":"","etag":tag}]).to_string()).await);
    for (less, expected) in [(0, true), (1, false)] {
        let revision = board.get("").await.revision() - less;
        assert_eq!(taken(&board, &json!([{"revision":revision}]).to_string()).await, expected);
    }
    let ahead = board.get("").await.revision() + 1;
    assert!(!taken(&board, &json!([{"revision":ahead}]).to_string()).await);
}

#[tokio::test]
async fn a_false_condition_without_else_writes_nothing() {
    let server = Server::start();
    let board = filled(&server).await;
    let before = Whole::of(&board).await;
    let head = board.get("").await.revision();
    let body = json!({"if":[{"path":"t","absent":true}],"then":[{"put":"x","value":1}]});
    for body in [body.clone(), json!({"if":[{"revision":head + 1}],"then":[{"claim":3}],"else":[]})]
    {
        let answer = transact(&board, &body).await;
        let expected = json!({"succeeded":false,"revision":head,"results":[]});
        assert_eq!(receipt(answer.is(200)), expected);
    }
    assert_eq!(Whole::of(&board).await, before);
    // Nor does it make a session. What it says of one that is not there is left open.
    let absent = server.board("absent");
    let body =
        json!({"if":[{"path":"t","absent":false}],"then":[{"put":"x","value":1}]}).to_string();
    let answer = absent.json(Method::POST, "transactions", &body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&body["succeeded"], &body["results"]), (&json!(false), &json!([])));
    absent.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_condition_that_cannot_be_is_refused_by_its_place() {
    let server = Server::start();
    let board = filled(&server).await;
    for condition in [
        "{}",
        "5",
        "null",
        "[]",
        r#"{"path":"t"}"#,
        r#"{"equals":1}"#,
        r#"{"path":5,"equals":1}"#,
        r#"{"path":"t","equals":1,"absent":true}"#,
        r#"{"path":"t","absent":"true"}"#,
        r#"{"path":"t","absent":null}"#,
        r#"{"path":"t","etag":5}"#,
        r#"{"path":"t","unless":1}"#,
        r#"{"log":"requests"}"#,
        r#"{"log":"nothing","count":1}"#,
        r#"{"log":"requests","count":"3"}"#,
        r#"{"log":"requests","count":-1}"#,
        r#"{"log":"requests","count":1.5}"#,
        r#"{"request":1}"#,
        r#"{"request":"1","claimable":true}"#,
        r#"{"request":1,"claimable":1}"#,
        r#"{"revision":"1"}"#,
        r#"{"revision":-1}"#,
        r#"{"revision":1,"count":1}"#,
        r#"{"agent":"A"}"#,
    ] {
        let body = format!(
            "{{\"if\":[{},{condition}],\"then\":[{{\"put\":\"x\",\"value\":1}}]}}",
            TRUE[0]
        );
        let before = Whole::of(&board).await;
        let refused = board.post("transactions", &body).await;
        assert!(pointer(refused.is(422)).starts_with("/if/1"), "{condition}: {refused}");
        assert_eq!(Whole::of(&board).await, before, "{condition}");
    }
    let body = r#"{"if":[{"path":"t","equals":1e400}]}"#;
    let request = board.json(Method::POST, "transactions", body);
    refuses(&board, request, 422, "unsupported-value").await;
}

#[tokio::test]
async fn of_many_who_ask_for_the_same_one_gets_it() {
    let server = Server::start();
    let board = filled(&server).await;
    let takers = (0..16).map(|n| {
        let board = board.clone();
        tokio::spawn(async move {
            let body = json!({
                "if":[{"path":"t/status","equals":"ready"}],
                "then":[{"put":"t/status","value":"taken"},{"put":"t/by","value":n}],
                "else":[{"add":"late","value":1}]
            });
            let answer = transact(&board, &body).await;
            answer.is(200).json()["succeeded"] == true
        })
    });
    let mut winners = 0;
    for taker in takers.collect::<Vec<_>>() {
        winners += usize::from(taker.await.unwrap());
    }
    assert_eq!(winners, 1);
    let state = board.get("state").await.json();
    assert_eq!((&state["t"]["status"], &state["late"]), (&json!("taken"), &json!(15)));
}
