//! Transactions: operations in one commit, each seeing those before it, all or none.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{Whole, pointer, receipt, refuses};

pub(crate) async fn transact(board: &Board, body: &Value) -> Answer {
    board.post("transactions", &body.to_string()).await
}

async fn filled(server: &Server, session: &str) -> Board {
    let board = server.board(session);
    board.put("state", r#"{"n":1,"s":"x","l":[1],"o":{"in":1E5}}"#).await.succeeded();
    board.post("requests", "[{},{}]").await.is(201);
    board.post("questions", r#"[{"question":"q","answer":"a"},{"question":"r"}]"#).await.is(201);
    board.put("agents/App", "{}").await.is(201);
    board.put("agents/Broken", r#"{"status":"ERROR"}"#).await.is(201);
    ask(board.by("A", Method::PUT, "requests/1/claim", "")).await.is(201);
    board
}

#[tokio::test]
async fn every_operation_answers_with_its_result() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let head = board.get("").await.revision();
    let body = r#"{"then":[
        {"put":"tasks/t1","value":{"z":1E5,"a":-0}},
        {"put":"lease","value":1,"ttl":"60s"},
        {"patch":"o","value":{"in":null,"out":[1.50]}},
        {"patch":"made","value":{"x":{"y":null}}},
        {"add":"n","value":123456789012345678901234567890},
        {"add":"fresh/count","value":0.5},
        {"delete":"s"},
        {"append":"trajectories","item":{"z":1.0,"a":1}},
        {"append":"agents/Host Agent/memory","item":{}},
        {"claim":2,"ttl":"60s"},
        {"done":2,"result":{"ok":true}},
        {"answer":2,"value":"yes"},
        {"status":"App","value":"PENDING"}]}"#;
    let done = ask(board.by("B", Method::POST, "transactions", body)).await;
    let answer = receipt(done.is(200));
    assert_eq!((&answer["succeeded"], &answer["revision"]), (&json!(true), &json!(head + 1)));
    assert_eq!(done.etag(), board.get("").await.etag());
    assert!(
        done.text().contains(r#"{"add":"n","value":123456789012345678901234567891}"#),
        "{done}"
    );
    let mut results = answer["results"].clone();
    assert!(results[9]["expires_at"].is_string(), "{results}");
    results[4]["value"].take();
    results[9]["expires_at"].take();
    let expected = json!([
        {"put":"tasks/t1"}, {"put":"lease"}, {"patch":"o"}, {"patch":"made"},
        {"add":"n","value":null}, {"add":"fresh/count","value":0.5}, {"delete":"s"},
        {"append":"trajectories","seq":1}, {"append":"agents/Host Agent/memory","seq":1},
        {"claim":2,"fence":head + 1,"expires_at":null}, {"done":2}, {"answer":2},
        {"status":"App","value":"PENDING"}
    ]);
    assert_eq!(results, expected);

    let state = r#"{"n":123456789012345678901234567891,"l":[1],"o":{"out":[1.50]},"tasks":{"t1":{"z":1E5,"a":-0}},"lease":1,"made":{"x":{}},"fresh":{"count":0.5}}"#;
    assert_eq!(board.get("state").await.text().trim_end(), state);
    assert_eq!(board.lines("trajectories").await, [r#"{"z":1.0,"a":1}"#]);
    assert_eq!(board.lines("questions").await[1], r#"{"question":"r","answer":"yes"}"#);
    let appended = board.get("trajectories/1").await.json();
    assert_eq!((&appended["agent"], &appended["revision"]), (&json!("B"), &json!(head + 1)));
    let request = board.get("requests/2").await.json();
    assert_eq!((&request["done"]["result"], request.get("claim")), (&json!({"ok":true}), None));
    assert_eq!(board.get("agents/App").await.json()["status"], "PENDING");
    // A memory's first item registers its agent.
    assert_eq!(board.get("agents/Host%20Agent").await.json()["status"], "CONTINUE");
    assert_eq!(board.get("").await.revision(), head + 1);
}

#[tokio::test]
async fn an_operation_sees_those_before_it() {
    let server = Server::start();
    let board = server.board("s");
    let body = r#"{"then":[
        {"put":"a","value":1},{"add":"a","value":2},{"add":"a","value":4},
        {"put":"b/c","value":{"x":1}},{"patch":"b","value":{"c":{"y":2}}},{"delete":"b/c/x"},
        {"put":"gone","value":1},{"delete":"gone"},{"put":"gone/deep","value":2},
        {"append":"requests","item":{"n":1}},{"append":"requests","item":{"n":2}},
        {"claim":2},{"done":2},{"claim":1},
        {"append":"questions","item":{"question":"q"}},{"answer":1,"value":"a"},
        {"append":"agents/App/memory","item":{}},
        {"status":"App","value":"PENDING"},{"status":"App","value":"CONTINUE"}]}"#;
    let answer = receipt(ask(board.by("A", Method::POST, "transactions", body)).await.is(200));
    assert_eq!(
        (&answer["results"][1]["value"], &answer["results"][2]["value"]),
        (&json!(3), &json!(7))
    );
    assert_eq!(
        (&answer["results"][9]["seq"], &answer["results"][10]["seq"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        board.get("state").await.text(),
        "{\"a\":7,\"b\":{\"c\":{\"y\":2}},\"gone\":{\"deep\":2}}\n"
    );
    assert_eq!(board.lines("questions").await, [r#"{"question":"q","answer":"a"}"#]);
    let requests = board.get("requests").await.json();
    assert_eq!(requests["entries"][0]["claim"]["fence"], 1);
    assert!(requests["entries"][1]["done"].is_object(), "{requests}");
    assert_eq!(board.get("").await.revision(), 1);
}

/// An operation that is refused, by an agent named B.
const REFUSED: [(&str, u16, &str); 24] = [
    (r#"{"put":"n/x","value":1}"#, 409, "not-an-object"),
    (r#"{"put":"l/0","value":1}"#, 409, "not-an-object"),
    (r#"{"put":"","value":5}"#, 422, "invalid-field"),
    (r#"{"put":"x","value":1,"ttl":"soon"}"#, 422, "invalid-field"),
    (r#"{"put":"x","value":1e400}"#, 422, "unsupported-value"),
    (r#"{"put":"x","value":1,"extra":1}"#, 422, "unknown-field"),
    (r#"{"patch":"s/x","value":{}}"#, 409, "not-an-object"),
    (r#"{"patch":"","value":5}"#, 422, "invalid-field"),
    (r#"{"add":"s","value":1}"#, 409, "not-a-number"),
    (r#"{"add":"n","value":"1"}"#, 422, "invalid-field"),
    (r#"{"delete":"absent"}"#, 404, "path-not-found"),
    (r#"{"append":"trajectories","item":5}"#, 422, "unsupported-item"),
    (r#"{"append":"nothing","item":{}}"#, 422, "invalid-field"),
    (r#"{"claim":1}"#, 409, "already-claimed"),
    (r#"{"claim":99}"#, 404, "entry-not-found"),
    (r#"{"claim":2,"ttl":5}"#, 422, "invalid-field"),
    (r#"{"done":1,"fence":1}"#, 409, "stale-fence"),
    (r#"{"done":1}"#, 409, "already-claimed"),
    (r#"{"answer":1,"value":"x"}"#, 409, "already-answered"),
    (r#"{"answer":2,"value":" \t"}"#, 422, "invalid-field"),
    (r#"{"answer":99,"value":"x"}"#, 404, "entry-not-found"),
    (r#"{"status":"nobody","value":"PENDING"}"#, 404, "agent-not-found"),
    (r#"{"status":"Broken","value":"PENDING"}"#, 409, "illegal-transition"),
    (r#"{"status":"App","value":"WAITING"}"#, 422, "invalid-field"),
];

#[tokio::test]
async fn one_refused_operation_refuses_all_and_is_pointed_at() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    for (operation, status, code) in REFUSED {
        let list = format!(
            r#"[{{"put":"new","value":1}},{{"append":"requests","item":{{}}}},{operation},{{"add":"n","value":1}}]"#
        );
        for (body, place) in [
            (format!("{{\"then\":{list}}}"), "/then/2"),
            (format!("{{\"if\":[{{\"path\":\"n\",\"absent\":true}}],\"else\":{list}}}"), "/else/2"),
        ] {
            let request = board.by("B", Method::POST, "transactions", &body);
            let refused = refuses(&board, request, status, code).await;
            assert!(pointer(&refused).starts_with(place), "{operation}: {refused}");
        }
    }
    let anonymous = board.json(Method::POST, "transactions", r#"{"then":[{"claim":2}]}"#);
    refuses(&board, anonymous, 400, "agent-required").await;
    // The pointer of what the board refuses is the operation's own.
    let refused =
        transact(&board, &json!({"then":[{"put":"a","value":1},{"delete":"absent"}]})).await;
    assert_eq!(pointer(&refused), "/then/1");
}

#[tokio::test]
async fn of_a_repeated_member_the_last_one_stands() {
    let server = Server::start();
    let board = server.board("s");
    let twice = r#"{"then":[{"put":"a","value":1}],"if":[{"path":"x","absent":false}],
        "if":[],"then":[{"put":"b","value":2}]}"#;
    let answer = board.post("transactions", twice).await.is(200).json();
    assert_eq!((&answer["succeeded"], &answer["results"]), (&json!(true), &json!([{"put":"b"}])));
    assert_eq!(board.get("state").await.json(), json!({"b":2}));
}

#[tokio::test]
async fn what_is_no_transaction_is_refused() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), filled(&server, "there").await);
    for board in [&absent, &there] {
        for (body, code, place) in [
            (r#"{"than":[]}"#, "unknown-field", "/than"),
            (r#"{"then":[{"jump":"x"}]}"#, "unknown-field", "/then/0"),
            (r#"{"then":[{"delete":"x","value":1}]}"#, "unknown-field", "/then/0"),
            (r#"{"else":[{"put":"x","value":1,"tll":"5s"}]}"#, "unknown-field", "/else/0"),
        ] {
            let request = board.json(Method::POST, "transactions", body);
            let refused = refuses(board, request, 422, code).await;
            assert!(pointer(&refused).starts_with(place), "{body}: {refused}");
        }
        for body in [
            "5",
            "null",
            "[]",
            "\"x\"",
            r#"{"then":{}}"#,
            r#"{"then":5}"#,
            r#"{"if":{}}"#,
            r#"{"then":[5]}"#,
            r#"{"then":[null]}"#,
            r#"{"then":[[]]}"#,
            r#"{"then":[{}]}"#,
            r#"{"then":[{"put":"x"}]}"#,
            r#"{"then":[{"put":5,"value":1}]}"#,
            r#"{"then":[{"put":"x","value":1,"delete":"y"}]}"#,
            r#"{"then":[{"add":"x"}]}"#,
            r#"{"then":[{"append":"requests"}]}"#,
            r#"{"then":[{"claim":"1"}]}"#,
            r#"{"then":[{"done":-1}]}"#,
            r#"{"then":[{"answer":1}]}"#,
            r#"{"then":[{"status":"A"}]}"#,
            // The branch that is not taken must be one too.
            r#"{"if":[],"then":[],"else":[{"jump":"x"}]}"#,
        ] {
            let before = Whole::of(board).await;
            let request = board.by("A", Method::POST, "transactions", body);
            let refused = ask(request).await;
            assert_eq!(refused.status(), 422, "{body}: {refused}");
            assert_eq!(Whole::of(board).await, before, "{body}");
        }
        for path in ["/a", "a/", "a//b", ".", "a/..", "~", "a~2"] {
            let body = json!({"then":[{"put":path,"value":1}]}).to_string();
            let refused = ask(board.json(Method::POST, "transactions", &body)).await;
            assert!(pointer(refused.refused()).starts_with("/then/0"), "{path}: {refused}");
        }
        let request = board.json(Method::POST, "transactions", "{");
        refuses(board, request, 400, "invalid-json").await;
        let request = board.typed(Method::POST, "transactions", "text/plain", "{}");
        let refused = refuses(board, request, 415, "unsupported-media-type").await;
        assert!(refused.header("accept-post").contains("application/json"), "{refused}");
        let request = board.json(Method::POST, "transactions?dry=true", "{}");
        refuses(board, request, 400, "unknown-parameter").await;
    }
    absent.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_thousand_operations_are_one_commit_and_no_more_are_taken() {
    let server = Server::start();
    let board = server.board("s");
    let add = json!({"add":"n","value":1});
    let test = json!({"path":"n","absent":false});
    let many = |what: &Value, count: usize| Value::from(vec![what.clone(); count]);
    transact(&board, &json!({"then":many(&add, 1001)})).await.refused();
    board.get("").await.problem(404, "session-not-found");
    let answer = receipt(transact(&board, &json!({"then":many(&add, 1000)})).await.is(200));
    assert_eq!((&answer["results"][999]["value"], &answer["revision"]), (&json!(1000), &json!(1)));
    let both = json!({"if":many(&test, 1000),"then":many(&add, 1000),"else":many(&add, 1000)});
    assert_eq!(transact(&board, &both).await.is(200).json()["succeeded"], true);
    let before = Whole::of(&board).await;
    for body in [
        json!({"then":many(&add, 1001)}),
        json!({"else":many(&add, 1001)}),
        json!({"if":many(&test, 1001),"then":[add]}),
    ] {
        transact(&board, &body).await.refused();
    }
    assert_eq!(Whole::of(&board).await, before);
}

#[tokio::test]
async fn a_claim_a_status_and_an_item_are_one_commit() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let head = board.get("").await.revision();
    let body = r#"{"if":[{"request":2,"claimable":true}],"then":[{"claim":2},{"status":"App","value":"PENDING"},
        {"append":"trajectories","item":{"step":1}}]}"#;
    let fence = head + 1;
    let answer = receipt(ask(board.by("App", Method::POST, "transactions", body)).await.is(200));
    assert_eq!(
        (&answer["revision"], &answer["results"][0]["fence"]),
        (&json!(fence), &json!(fence))
    );
    for tail in ["requests/2", "agents/App", "trajectories/1"] {
        assert_eq!(board.get(tail).await.json()["revision"], fence, "{tail}");
    }
    let again = ask(board.by("Other", Method::POST, "transactions", body)).await;
    assert_eq!(again.is(200).json()["succeeded"], false);
    assert_eq!(board.get("").await.revision(), fence);
    let write = board.by(
        "App",
        Method::POST,
        &format!("transactions?claim=2&fence={fence}"),
        r#"{"then":[{"done":2}]}"#,
    );
    ask(write).await.is(200);
}

#[tokio::test]
async fn a_transaction_that_changes_nothing_commits_nothing() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let before = Whole::of(&board).await;
    let head = board.get("").await.revision();
    for body in [
        json!({}),
        json!({"then":[]}),
        json!({"if":[],"else":[{"put":"n","value":2}]}),
        json!({"then":[{"put":"n","value":1},{"patch":"o","value":{}},{"status":"App","value":"CONTINUE"}]}),
    ] {
        let answer = receipt(transact(&board, &body).await.is(200));
        assert_eq!((&answer["succeeded"], &answer["revision"]), (&json!(true), &json!(head)));
    }
    assert_eq!(Whole::of(&board).await, before);
}

#[tokio::test]
async fn the_first_transaction_makes_the_session() {
    let server = Server::start();
    let board = server.board("s");
    let body = json!({"if":[{"path":"a","absent":true}],"then":[{"put":"a","value":1}]});
    let made = transact(&board, &body).await;
    assert_eq!(
        receipt(made.is(200)),
        json!({"succeeded":true,"revision":1,"results":[{"put":"a"}]})
    );
    let strict = Server::start_with(&["--auto-create", "false"]);
    let board = strict.board("s");
    transact(&board, &body).await.problem(404, "session-not-found");
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_transaction_may_insist_on_the_sessions_tag() {
    let server = Server::start();
    let board = filled(&server, "s").await;
    let stale = board.get("").await.etag();
    board.post("requests", "{}").await.is(201);
    let tag = board.get("").await.etag();
    let write = |header: &'static str, tags: &str| {
        board
            .json(Method::POST, "transactions", r#"{"then":[{"add":"n","value":1}]}"#)
            .header(header, tags)
    };
    for (header, tags) in [("if-match", stale.as_str()), ("if-none-match", "*")] {
        let refused = refuses(&board, write(header, tags), 412, "precondition-failed").await;
        assert_eq!(refused.etag(), tag);
    }
    let written = ask(write("if-match", &tag)).await;
    ask(write("if-match", &written.is(200).etag())).await.is(200);
}

#[tokio::test]
async fn a_transaction_outlives_a_kill_whole() {
    let mut server = Server::start();
    let board = filled(&server, "s").await;
    let body = r#"{"then":[{"put":"z","value":{"b":1E5}},{"claim":2},{"append":"agents/A/memory","item":{"m":1}},
        {"status":"App","value":"CONFIRM"},{"answer":2,"value":"yes"},{"delete":"s"}]}"#;
    ask(board.by("A", Method::POST, "transactions", body)).await.is(200);
    let before = Whole::of(&board).await;
    server.kill();
    server.start_again();
    assert_eq!(Whole::of(&server.board("s")).await, before);
}
