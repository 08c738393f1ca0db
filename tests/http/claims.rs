//! Claims: won by one of many agents, renewed, released, and shown on the entry.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{made_at, pointer, receipt, refuses};

/// Wins that request; gives the fence.
pub(crate) async fn won(board: &Board, agent: &str, seq: u64) -> u64 {
    let claim = ask(board.by(agent, Method::PUT, &format!("requests/{seq}/claim"), "{}")).await;
    claim.is(201).json()["claim"]["fence"].as_u64().expect("a fence")
}

async fn entry(board: &Board, seq: u64) -> Answer {
    let entry = board.get(&format!("requests/{seq}")).await;
    entry.is(200);
    entry
}

/// The board with that many requests, by nobody.
pub(crate) async fn requested(server: &Server, count: usize) -> Board {
    let board = server.board("s");
    board.post("requests", &json!(vec![json!({"text":"do"}); count]).to_string()).await.is(201);
    board
}

#[tokio::test]
async fn an_agent_wins_a_request() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    let before = entry(&board, 1).await;
    for (agent, seq, body) in [("A", 1, r#"{"ttl":"60s"}"#), ("Ä b", 2, "")] {
        let tail = format!("requests/{seq}/claim");
        let claimed = ask(board.by(agent, Method::PUT, &tail, body)).await;
        let answer = receipt(claimed.is(201));
        let claim = &answer["claim"];
        assert_eq!((&claim["agent"], &claim["fence"]), (&json!(agent), &answer["revision"]));
        let expires = claim["expires_at"].as_str().expect("a time");
        assert!(expires.ends_with('Z') && expires.len() == 24, "{expires}");
        assert_eq!(answer.as_object().map(serde_json::Map::len), Some(2), "{answer}");
        assert!(
            claimed.header("location").ends_with(&format!("/sessions/s/requests/{seq}")),
            "{claimed}"
        );

        let entry = made_at(&server, &claimed).await;
        assert_eq!(entry.is(200).etag(), claimed.etag());
        let shown = entry.json();
        assert_eq!((&shown["claim"], &shown["revision"]), (claim, &answer["revision"]));
        assert_eq!(shown["updated_by"], agent);
        let places = ["\"updated_at\"", "\"updated_by\"", "\"claim\"", "\"item\""]
            .map(|name| entry.text().find(name));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{entry}");
    }
    let after = entry(&board, 1).await;
    assert_ne!(after.etag(), before.etag());
    assert_eq!(after.json()["item"], json!({"text":"do"}));
    // A page shows the claims too, and the board does not.
    let page = board.get("requests").await.json();
    assert_eq!(page["entries"][0], after.json());
    assert!(!board.dictionary().await.contains("claim"));
}

#[tokio::test]
async fn a_minute_is_what_a_claim_gets_unless_it_says_more() {
    let server = Server::start();
    let board = requested(&server, 3).await;
    let seconds = |time: &Value| -> f64 {
        let time = time.as_str().expect("a time");
        let digits = |from: usize, to: usize| time[from..to].parse::<f64>().expect("digits");
        digits(11, 13) * 3600.0 + digits(14, 16) * 60.0 + digits(17, 23)
    };
    for (seq, body, expected) in [(1, "", 60.0), (2, "{}", 60.0), (3, r#"{"ttl":"90m"}"#, 5400.0)] {
        ask(board.by("A", Method::PUT, &format!("requests/{seq}/claim"), body)).await.is(201);
        let entry = entry(&board, seq).await.json();
        let ends = seconds(&entry["claim"]["expires_at"]);
        let lasts = (ends - seconds(&entry["updated_at"])).rem_euclid(86_400.0);
        assert!((lasts - expected).abs() < 1.0, "{entry}");
    }
}

#[tokio::test]
async fn a_claim_needs_an_agent() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let tail = "requests/1/claim";
    refuses(&board, board.json(Method::PUT, tail, "{}"), 400, "agent-required").await;
    refuses(&board, board.to(Method::PUT, tail), 400, "agent-required").await;
    refuses(&board, board.to(Method::DELETE, tail), 400, "agent-required").await;
    won(&board, "A", 1).await;
    refuses(&board, board.json(Method::PUT, tail, "{}"), 400, "agent-required").await;
    refuses(&board, board.to(Method::DELETE, tail), 400, "agent-required").await;
}

#[tokio::test]
async fn the_holder_renews_and_keeps_its_fence() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let fence = won(&board, "A", 1).await;
    let mut before = entry(&board, 1).await;
    for ttl in ["2h", "3h"] {
        let body = json!({"ttl":ttl}).to_string();
        let renewed = ask(board.by("A", Method::PUT, "requests/1/claim", &body)).await;
        let answer = receipt(renewed.is(200));
        assert_eq!((&answer["claim"]["fence"], renewed.header("location")), (&json!(fence), ""));
        let after = entry(&board, 1).await;
        assert_eq!(after.json()["revision"], answer["revision"]);
        assert_ne!(after.etag(), before.etag());
        assert_eq!(after.etag(), renewed.etag());
        assert!(
            after.json()["claim"]["expires_at"].as_str()
                > before.json()["claim"]["expires_at"].as_str(),
            "{after}"
        );
        before = after;
    }
}

#[tokio::test]
async fn another_is_refused_while_it_is_held() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    won(&board, "A", 1).await;
    for (method, body) in
        [(Method::PUT, "{}"), (Method::PUT, r#"{"ttl":"5m"}"#), (Method::DELETE, "")]
    {
        let claim = board.by("B", method, "requests/1/claim", body);
        refuses(&board, claim, 409, "already-claimed").await;
    }
}

#[tokio::test]
async fn a_claim_is_given_back() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let tail = "requests/1/claim";
    let first = won(&board, "A", 1).await;
    let before = entry(&board, 1).await;
    let released = ask(board.by("A", Method::DELETE, tail, "")).await;
    assert_eq!(receipt(released.is(200)), json!({"revision":3}));
    let after = entry(&board, 1).await;
    assert_eq!((after.json().get("claim"), &after.json()["revision"]), (None, &json!(3)));
    assert_ne!(after.etag(), before.etag());
    // Nobody holds it any more: nothing to give back, for whomever.
    for agent in ["A", "B"] {
        let nothing = ask(board.by(agent, Method::DELETE, tail, "")).await;
        assert_eq!(receipt(nothing.is(200)), json!({"revision":3}));
    }
    let second = won(&board, "B", 1).await;
    assert!(second > first, "{second}");
    ask(board.by("B", Method::DELETE, tail, "")).await.is(200);
    assert!(won(&board, "B", 1).await > second);
}

#[tokio::test]
async fn of_many_claimants_one_wins() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let claimants = (0..16).map(|n| {
        let claim = board.by(&format!("agent {n}"), Method::PUT, "requests/1/claim", "");
        tokio::spawn(async move { ask(claim).await.status() })
    });
    let mut statuses = Vec::new();
    for claimant in claimants.collect::<Vec<_>>() {
        statuses.push(claimant.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201);
    assert!(statuses[1..].iter().all(|&status| status == 409), "{statuses:?}");
}

#[tokio::test]
async fn what_is_no_claim_is_refused() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let put = |body: &str| board.by("A", Method::PUT, "requests/1/claim", body);
    for (body, code, place) in [
        (r#"{"ttl":5}"#, "invalid-field", "/ttl"),
        (r#"{"ttl":"soon"}"#, "invalid-field", "/ttl"),
        (r#"{"tll":"60s"}"#, "unknown-field", "/tll"),
        (r#"{"ttl":"60s","agent":"B"}"#, "unknown-field", "/agent"),
    ] {
        assert_eq!(pointer(&refuses(&board, put(body), 422, code).await), place, "{body}");
    }
    for body in ["5", "[]", "null", "\"60s\""] {
        ask(put(body)).await.is(422);
    }
    refuses(&board, put("{"), 400, "invalid-json").await;
    let text = board.typed(Method::PUT, "requests/1/claim", "text/plain", "60s");
    refuses(&board, text.header("x-agent-id", "A"), 415, "unsupported-media-type").await;
    let parameter = board.by("A", Method::PUT, "requests/1/claim?ttl=60s", "");
    refuses(&board, parameter, 400, "unknown-parameter").await;
    assert_eq!(entry(&board, 1).await.json().get("claim"), None);
}

#[tokio::test]
async fn only_requests_that_are_there_can_be_claimed() {
    let server = Server::start();
    let board = requested(&server, 2).await;
    board.delete("requests/2").await.is(200);
    for log in ["questions", "trajectories", "screenshots", "agents/A/memory"] {
        board.post(log, "{}").await.is(201);
    }
    for (tail, code) in [
        ("requests/2", "entry-not-found"),
        ("requests/9", "entry-not-found"),
        ("requests/x", "entry-not-found"),
        ("requests/01", "entry-not-found"),
        ("questions/1", "route-not-found"),
        ("trajectories/1", "route-not-found"),
        ("screenshots/1", "route-not-found"),
        ("agents/A/memory/1", "route-not-found"),
    ] {
        for (method, route) in
            [(Method::PUT, "claim"), (Method::DELETE, "claim"), (Method::PUT, "done")]
        {
            let body = if method == Method::DELETE { "" } else { "{}" };
            let claim = board.by("A", method, &format!("{tail}/{route}"), body);
            refuses(&board, claim, 404, code).await;
        }
    }
    let absent = server.board("absent");
    for (method, route) in
        [(Method::PUT, "claim"), (Method::DELETE, "claim"), (Method::PUT, "done")]
    {
        let body = if method == Method::DELETE { "" } else { "{}" };
        let claim = absent.by("A", method, &format!("requests/1/{route}"), body);
        refuses(&absent, claim, 404, "session-not-found").await;
    }
}

#[tokio::test]
async fn a_claim_outlives_changes_of_its_item_and_a_kill() {
    let mut server = Server::start();
    let board = requested(&server, 1).await;
    let fence = won(&board, "A", 1).await;
    board.put("requests/1", r#"{"text":"do more"}"#).await.is(200);
    board.merge("requests/1", r#"{"n":1}"#).await.is(200);
    let before = entry(&board, 1).await;
    assert_eq!(before.json()["claim"]["fence"], fence);
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(entry(&board, 1).await.text(), before.text());
    let other = board.by("B", Method::PUT, "requests/1/claim", "");
    refuses(&board, other, 409, "already-claimed").await;
    ask(board.by("A", Method::PUT, "requests/1/claim", "")).await.is(200);
}

#[tokio::test]
async fn a_claim_may_insist_on_the_tag_of_its_entry() {
    let server = Server::start();
    let board = requested(&server, 1).await;
    let stale = entry(&board, 1).await.etag();
    board.put("requests/1", r#"{"text":"else"}"#).await.is(200);
    let tag = entry(&board, 1).await.etag();
    let put = |route: &str, tag: &str| {
        let tail = format!("requests/1/{route}");
        board.by("A", Method::PUT, &tail, "{}").header("if-match", tag)
    };
    for route in ["claim", "done"] {
        let refused = refuses(&board, put(route, &stale), 412, "precondition-failed").await;
        assert_eq!((refused.etag(), &refused.json()["current"]["seq"]), (tag.clone(), &json!(1)));
    }
    let claimed = ask(put("claim", &tag)).await;
    ask(put("done", &claimed.is(201).etag())).await.is(200);
}

#[tokio::test]
async fn pending_lists_unclaimed_requests_and_open_questions() {
    let server = Server::start();
    let board = requested(&server, 5).await;
    won(&board, "A", 1).await;
    won(&board, "A", 2).await;
    ask(board.by("A", Method::DELETE, "requests/2/claim", "")).await.is(200);
    ask(board.by("A", Method::PUT, "requests/3/done", "{}")).await.is(200);
    won(&board, "A", 4).await;
    ask(board.by("A", Method::PUT, "requests/4/done", "{}")).await.is(200);
    assert_eq!(board.get("requests?pending=true").await.is(200).seqs(), [2, 5]);
    assert_eq!(board.get("requests?pending=true&latest=1").await.is(200).seqs(), [5]);
    assert_eq!(board.get("requests?pending=false").await.is(200).seqs(), [1, 2, 3, 4, 5]);
    assert_eq!(board.get("requests").await.seqs().len(), 5);

    let questions = r#"[{"question":"q"},{"text":"t"},{"question":"q","answer":"a"},{"question":1},
        {"question":"q","answer":null},{"other":"q"},{"text":["t"]},"bare",{"question":1,"text":"t"}]"#;
    board.post("questions", questions).await.is(201);
    assert_eq!(board.get("questions?pending=true").await.is(200).seqs(), [1, 2, 8, 9]);
    for log in ["trajectories", "screenshots", "agents/A/memory"] {
        board.post(log, r#"[{"a":1},{"question":"q","answer":"a"}]"#).await.is(201);
        assert_eq!(board.get(&format!("{log}?pending=true")).await.is(200).seqs(), [1, 2]);
    }
    for pending in ["", "yes", "1", "TRUE"] {
        let tail = format!("requests?pending={pending}");
        board.get(&tail).await.problem(400, "invalid-parameter");
    }
}
