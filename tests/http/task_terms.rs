//! Terms of requests: priority, caps, times, cancellation, review, and the attempts that are remembered.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::answer::{Answer, ask};
use crate::claims::won;
use crate::harness::{Board, Server};
use crate::metrics::{in_progress, sample};
use crate::waiting::{LONG, waiting, with, woken};
use crate::whole::refuses;

async fn entry(board: &Board, seq: u64) -> Value {
    board.get(&format!("requests/{seq}")).await.is(200).json()
}

async fn put(board: &Board, agent: &str, tail: &str, body: &Value) -> Answer {
    ask(board.by(agent, Method::PUT, &format!("requests/{tail}"), &body.to_string())).await
}

/// Claims the next request; none if there is none.
async fn next(board: &Board, agent: &str, query: &str) -> Option<u64> {
    let claim = ask(board.by(agent, Method::POST, &format!("requests/claim{query}"), "{}")).await;
    (claim.status() == 200).then(|| claim.json()["seq"].as_u64().expect("a seq"))
}

async fn post(board: &Board, query: &str, item: &Value) -> u64 {
    let posted = board.post(&format!("requests{query}"), &item.to_string()).await;
    posted.is(201).seqs().remove(0)
}

/// Why a claim of this request is rejected.
async fn why(board: &Board, agent: &str, seq: u64) -> Value {
    let claim = put(board, agent, &format!("{seq}/claim"), &json!({})).await;
    claim.problem(409, "illegal-transition")["why"].clone()
}

async fn pending(board: &Board) -> Vec<u64> {
    let page = board.get("requests?pending=true").await.is(200).json();
    let entries = page["entries"].as_array().expect("entries").clone();
    entries.iter().map(|entry| entry["seq"].as_u64().expect("a seq")).collect()
}

#[tokio::test]
async fn a_higher_priority_is_claimed_first() {
    let server = Server::start();
    let board = server.board("s");
    for priority in ["", "?priority=-1", "?priority=100", "?priority=7", "?priority=100"] {
        post(&board, priority, &json!({"n":1})).await;
    }
    assert_eq!(entry(&board, 3).await["priority"], 100);
    assert_eq!(entry(&board, 1).await.get("priority"), None);
    let mut order = Vec::new();
    while let Some(seq) = next(&board, "A", "").await {
        order.push(seq);
    }
    assert_eq!(order, [3, 5, 4, 1, 2]);
    for query in ["?priority=101", "?priority=-101", "?priority=1.5", "?priority=+1", "?priority="]
    {
        let request = board.json(Method::POST, &format!("requests{query}"), "{}");
        refuses(&board, request, 400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn an_early_request_comes_at_its_time() {
    let server = Server::start();
    let board = server.board("s");
    let seq = post(&board, "?not_before=400ms", &json!({"n":1})).await;
    assert!(entry(&board, seq).await["not_before"].is_string());
    assert_eq!(pending(&board).await, [0_u64; 0]);
    assert_eq!(why(&board, "A", seq).await, "not_before");
    // The end of the time is a commit, which wakes the worker that waits.
    assert_eq!(next(&board, "A", "?wait=30s").await, Some(seq));
    assert_eq!(entry(&board, seq).await.get("not_before"), None);
    let events = board.to(Method::GET, "events?after=1").header("accept", "application/json");
    let due = ask(events).await.is(200).json()["events"][0]["changes"][0].clone();
    assert_eq!(due, json!({"kind":"due","requests":[[1,1]]}));
    // A time that has come is no term.
    let now = post(&board, "?not_before=2020-01-01T00:00:00Z", &json!({"n":2})).await;
    assert_eq!(next(&board, "A", "").await, Some(now));
    for query in ["?not_before=soon", "?not_before=2020-01-01", "?deadline=-1s"] {
        let request = board.json(Method::POST, &format!("requests{query}"), "{}");
        refuses(&board, request, 400, "invalid-parameter").await;
    }
    let inverted = board.json(Method::POST, "requests?not_before=2h&deadline=1h", "{}");
    refuses(&board, inverted, 422, "invalid-field").await;
}

#[tokio::test]
async fn all_that_falls_due_together_is_one_commit() {
    let server = Server::start();
    let board = server.board("s");
    let items = json!(vec![json!({"text":"late"}); 2_000]).to_string();
    board.post("requests?not_before=2100-01-01T00:00:00Z", "{}").await.is(201);
    let begun = board.post("requests?not_before=300ms", &items).await.is(201).revision();
    let last = waiting(&board, &with("requests/2001?until=claimed", LONG));
    assert_eq!(next(&board, "A", "?wait=30s").await, Some(2));
    last.abort();
    let after = board.get("requests?limit=1").await.is(200).revision();
    assert_eq!(after, begun + 2, "one for the time, one for the claim");
    assert_eq!(pending(&board).await.len(), 100);
    assert_eq!(why(&board, "A", 1).await, "not_before");
}

#[tokio::test]
async fn a_deadline_fails_a_request() {
    let server = Server::start();
    let board = server.board("s");
    let free = post(&board, "?deadline=300ms", &json!({"n":1})).await;
    let held = post(&board, "?deadline=300ms&attempts=5", &json!({"n":2})).await;
    let kept = post(&board, "?deadline=300ms", &json!({"n":3})).await;
    let fence = won(&board, "A", held).await;
    put(&board, "B", &format!("{kept}/done"), &json!({})).await.is(200);
    for seq in [free, held] {
        let ended = board.get(&format!("requests/{seq}?wait=30s&until=failed")).await;
        assert_eq!(ended.is(200).json()["failed"]["reason"], "deadline");
    }
    assert_eq!(entry(&board, free).await["failed"].get("agent"), None);
    let shown = entry(&board, held).await;
    assert_eq!((&shown["failed"]["agent"], shown.get("claim")), (&json!("A"), None));
    assert_eq!(shown["past_attempts"][0]["outcome"], "failed");
    let late = put(&board, "A", &format!("{held}/done"), &json!({"fence":fence})).await;
    late.problem(409, "stale-fence");
    assert!(entry(&board, kept).await["done"].is_object());
    // Without a new deadline it has none.
    board.post(&format!("requests/{free}/retry"), r#"{"deadline":"1h"}"#).await.is(200);
    assert!(entry(&board, free).await["deadline"].is_string());
    board.post(&format!("requests/{held}/retry"), "").await.is(200);
    assert_eq!(entry(&board, held).await.get("deadline"), None);
    assert_eq!(entry(&board, held).await["past_attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_failed_attempt_may_pause_the_request() {
    let server = Server::start();
    let board = server.board("s");
    let bad = post(&board, "?attempts=3", &json!({"n":1})).await;
    let good = post(&board, "", &json!({"n":2})).await;
    let fence = won(&board, "A", bad).await;
    let body = json!({"fence":fence,"reason":"offline","retry_in":"400ms"});
    put(&board, "A", &format!("{bad}/failed"), &body).await.is(200);
    assert_eq!(why(&board, "B", bad).await, "not_before");
    assert_eq!(next(&board, "B", "").await, Some(good));
    assert_eq!(next(&board, "B", "?wait=30s").await, Some(bad));
    let shown = entry(&board, bad).await;
    let attempt = &shown["past_attempts"][0];
    assert_eq!((&attempt["agent"], &attempt["reason"]), (&json!("A"), &json!("offline")));
    assert_eq!(attempt["outcome"], "failed");
    assert!(attempt["from"].as_str() <= attempt["to"].as_str(), "{attempt}");
    let too_long = json!({"reason":"x","retry_in":"8d"}).to_string();
    let request = board.by("B", Method::PUT, &format!("requests/{bad}/failed"), &too_long);
    refuses(&board, request, 422, "invalid-field").await;
}

#[tokio::test]
async fn past_attempts_say_how_claims_ended() {
    let server = Server::start();
    let board = server.board("s");
    let seq = post(&board, "", &json!({"n":1})).await;
    won(&board, "A", seq).await;
    ask(board.by("A", Method::DELETE, &format!("requests/{seq}/claim"), "")).await.is(200);
    put(&board, "B", &format!("{seq}/claim"), &json!({"ttl":"50ms"})).await.is(201);
    let claim = ask(board.by("C", Method::POST, "requests/claim?wait=30s", "{}")).await;
    let claimed = claim.is(200).json();
    let attempts = claimed["past_attempts"].as_array().unwrap();
    let ends: Vec<_> = attempts.iter().map(|end| (&end["agent"], &end["outcome"])).collect();
    assert_eq!(ends, [(&json!("A"), &json!("released")), (&json!("B"), &json!("lapsed"))]);
    // A long reason is cut in the list, and whole where the request failed.
    let reason = "é".repeat(3_000);
    put(&board, "C", &format!("{seq}/failed"), &json!({"reason":reason})).await.is(200);
    let shown = entry(&board, seq).await;
    let kept = shown["past_attempts"][2]["reason"].as_str().unwrap();
    assert!(kept.len() <= 2_048 && kept.len() > 2_000 && reason.starts_with(kept));
    for _ in 0..12 {
        won(&board, "D", seq).await;
        put(&board, "D", &format!("{seq}/failed"), &json!({"reason":"again"})).await.is(200);
    }
    let shown = entry(&board, seq).await;
    let attempts = shown["past_attempts"].as_array().unwrap();
    assert!(attempts.len() == 10 && attempts.iter().all(|attempt| attempt["agent"] == "D"));
    // A fork and a restore end a claim as if it were released.
    won(&board, "E", seq).await;
    board.post("checkpoints", r#"{"name":"then"}"#).await.is(201);
    board.post("fork", r#"{"to":"f"}"#).await.is(201);
    board.post("restore", r#"{"at":"then"}"#).await.is(200);
    for board in [&board, &server.board("f")] {
        let shown = entry(board, seq).await;
        let last = shown["past_attempts"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["agent"], &last["outcome"]), (&json!("E"), &json!("released")));
        assert_eq!(shown.get("claim"), None);
    }
}

#[tokio::test]
async fn caps_bound_what_is_claimed_at_once() {
    let server = Server::start();
    let board = server.board("s");
    let settings = r#"{"settings":{"running_max":[{"max":3},{"by":"device","max":1}]}}"#;
    board.put("", settings).await.is(201);
    let items = json!([
        {"device":"a"}, {"device":"a"}, {"device":"b"}, {"n":4}, {"n":5}, {"device":"c"},
    ]);
    board.post("requests", &items.to_string()).await.is(201);
    assert_eq!(next(&board, "A", "").await, Some(1));
    assert_eq!(why(&board, "B", 2).await, "running_max");
    assert_eq!(next(&board, "B", "").await, Some(3));
    assert_eq!(next(&board, "C", "").await, Some(4));
    assert_eq!(next(&board, "D", "").await, None, "three are claimed");
    assert_eq!(why(&board, "D", 6).await, "running_max");
    let test = r#"{"if":[{"request":2,"claimable":false}]}"#;
    assert_eq!(board.post("transactions", test).await.is(200).json()["succeeded"], true);
    let inbox = server.get("/v1/requests?prefix=s").await.is(200).json();
    assert_eq!(inbox["requests"], json!([]), "nothing can be claimed");
    assert_eq!(pending(&board).await, [2, 5, 6]);
    // A renewal needs no room, and a lower cap ends no claim.
    put(&board, "A", "1/claim", &json!({"ttl":"90s"})).await.is(200);
    board.put("", r#"{"settings":{"running_max":[{"max":1}]}}"#).await.is(200);
    put(&board, "C", "4/done", &json!({})).await.is(200);
    assert_eq!(next(&board, "C", "").await, None);
    board.put("", r#"{"settings":{"running_max":null}}"#).await.is(200);
    assert_eq!(next(&board, "C", "").await, Some(2));
}

#[tokio::test]
async fn a_worker_is_woken_when_a_cap_has_room() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"settings":{"running_max":[{"by":"device","max":1}]}}"#).await.is(201);
    let items = json!(vec![json!({"device":"a"}); 6]).to_string();
    board.post("requests", &items).await.is(201);
    won(&board, "first", 1).await;
    let workers: Vec<_> = (0..4)
        .map(|n| {
            let claim = board.by(&format!("w{n}"), Method::POST, "requests/claim?wait=30s", "{}");
            tokio::spawn(ask(claim))
        })
        .collect();
    in_progress(&server, 4).await;
    sleep(Duration::from_millis(200)).await;
    assert!(workers.iter().all(|worker| !worker.is_finished()));
    let (mut holder, mut seq, mut done) = ("first".to_owned(), 1, Vec::new());
    for _ in 0..4 {
        put(&board, &holder, &format!("{seq}/done"), &json!({})).await.is(200);
        let claimed = loop {
            let entries = board.get("requests").await.json()["entries"].clone();
            let claimed = entries.as_array().unwrap().iter().find(|e| e["claim"].is_object());
            if let Some(claimed) = claimed.cloned() {
                break claimed;
            }
            sleep(Duration::from_millis(5)).await;
        };
        holder = claimed["claim"]["agent"].as_str().unwrap().to_owned();
        seq = claimed["seq"].as_u64().unwrap();
        done.push(seq);
    }
    assert_eq!(done, [2, 3, 4, 5]);
    for worker in workers {
        worker.await.unwrap().is(200);
    }
    // One worker was woken for each slot.
    assert_eq!(sample(&server, "blackboard_claim_offers_total").await, 4.0);
}

#[tokio::test]
async fn a_worker_is_woken_when_an_item_comes_to_match() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"settings":{"running_max":[{"by":"device","max":1}]}}"#).await.is(201);
    board.post("requests", r#"[{"device":"a"},{"device":"a"},{"n":3}]"#).await.is(201);
    won(&board, "first", 1).await;
    won(&board, "first", 3).await;
    let claim = |wanted: Value| {
        let body = json!({"match":wanted}).to_string();
        tokio::spawn(ask(board.by("W", Method::POST, "requests/claim?wait=30s", &body)))
    };
    // The cap holds it back until its device is another.
    let worker = claim(json!({}));
    in_progress(&server, 1).await;
    ask(board.request(Method::PUT, "requests/2", r#"{"device":"b"}"#)).await.is(200);
    assert_eq!(worker.await.unwrap().is(200).json()["seq"], 2);
    // No worker looks for it until it has another member.
    post(&board, "", &json!({"n":4})).await;
    let worker = claim(json!({"os":"linux"}));
    in_progress(&server, 1).await;
    board.merge("requests/4", r#"{"os":"linux"}"#).await.is(200);
    assert_eq!(worker.await.unwrap().is(200).json()["seq"], 4);
}

#[tokio::test]
async fn a_cancelled_request_ends_at_once_or_with_its_claim() {
    let server = Server::start();
    let board = server.board("s");
    for query in ["", "", "", "", "?after=1", "?not_before=1h"] {
        post(&board, query, &json!({"n":1})).await;
    }
    let cancel = |seq: u64| {
        let body = json!({"reason":"not needed"});
        let board = &board;
        async move { put(board, "boss", &format!("{seq}/cancelled"), &body).await }
    };
    cancel(1).await.is(200);
    let shown = entry(&board, 1).await;
    let cancelled = &shown["cancelled"];
    assert_eq!((&cancelled["agent"], &cancelled["reason"]), (&json!("boss"), &json!("not needed")));
    assert_eq!(why(&board, "A", 1).await, "cancelled");
    // Who waits for it waits on, and sees why.
    let dependant = entry(&board, 5).await;
    assert_eq!((&dependant["blocked_by"], &dependant["stopped_by"]), (&json!([1]), &json!([1])));
    let refused = put(&board, "A", "5/claim", &json!({})).await.problem(409, "illegal-transition");
    assert_eq!(refused["why"], "blocked");
    assert!(refused["detail"].as_str().unwrap().contains("was cancelled"), "{refused}");
    cancel(6).await.is(200);
    assert!(entry(&board, 6).await["cancelled"].is_object());
    // A claimed one shows it to the holder, whose result still counts.
    let fence = won(&board, "A", 2).await;
    cancel(2).await.is(200);
    let held = entry(&board, 2).await;
    assert_eq!((&held["cancel"]["agent"], held.get("cancelled")), (&json!("boss"), None));
    let renewed = put(&board, "A", "2/claim", &json!({"ttl":"60s"})).await;
    assert_eq!(renewed.is(200).json()["cancel"]["reason"], "not needed");
    put(&board, "A", "2/done", &json!({"fence":fence,"result":7})).await.is(200);
    let finished = entry(&board, 2).await;
    assert_eq!((finished.get("cancel"), &finished["done"]["result"]), (None, &json!(7)));
    cancel(2).await.problem(409, "already-claimed");
    // A failure and a release end it cancelled, and so does a second cancellation.
    let fence = won(&board, "A", 3).await;
    cancel(3).await.is(200);
    let body = json!({"fence":fence,"reason":"stopped"});
    put(&board, "A", "3/failed", &body).await.is(200);
    assert_eq!(entry(&board, 3).await["cancelled"]["reason"], "not needed");
    assert_eq!(entry(&board, 3).await["past_attempts"][0]["reason"], "stopped");
    let late = board.json(Method::POST, &format!("trajectories?claim=3&fence={fence}"), "{}");
    refuses(&board, late, 409, "stale-fence").await;
    won(&board, "A", 4).await;
    cancel(4).await.is(200);
    cancel(4).await.is(200);
    assert!(entry(&board, 4).await["cancelled"].is_object());
    let same = board.get("requests").await.revision();
    assert_eq!(cancel(4).await.is(200).revision(), same, "again changes nothing");
    // A retry makes it claimable, and its dependant waits for it again.
    board.post("requests/1/retry", "").await.is(200);
    assert_eq!(entry(&board, 5).await.get("stopped_by"), None);
    put(&board, "A", "1/done", &json!({})).await.is(200);
    assert_eq!(pending(&board).await, [5]);
}

#[tokio::test]
async fn a_result_is_reviewed_by_another_agent() {
    let server = Server::start();
    let board = server.board("s");
    post(&board, "?review=true&attempts=2", &json!({"n":1})).await;
    post(&board, "?after=1", &json!({"n":2})).await;
    let fence = won(&board, "A", 1).await;
    put(&board, "A", "1/done", &json!({"fence":fence,"result":"draft"})).await.is(200);
    put(&board, "A", "1/done", &json!({"fence":fence,"result":"draft"})).await.is(200);
    let shown = entry(&board, 1).await;
    assert_eq!((&shown["in_review"]["result"], shown.get("done")), (&json!("draft"), None));
    assert_eq!(board.get("requests?in_review=true").await.json()["entries"][0]["seq"], 1);
    assert_eq!(pending(&board).await, [0_u64; 0], "nobody works on it, and 2 waits");
    assert_eq!(why(&board, "B", 1).await, "in_review");
    let verdict = |agent: &'static str, body: Value| {
        let board = &board;
        async move { put(board, agent, "1/verdict", &body).await }
    };
    verdict("A", json!({"accept":true,"fence":fence})).await.problem(403, "forbidden");
    verdict("B", json!({"accept":true,"fence":fence + 1})).await.problem(409, "stale-fence");
    verdict("B", json!({"accept":true})).await.problem(422, "invalid-field");
    verdict("B", json!({"fence":fence})).await.problem(422, "invalid-field");
    refuses(
        &board,
        board.json(Method::PUT, "requests/1/verdict", "{\"accept\":true}"),
        400,
        "agent-required",
    )
    .await;
    let no = json!({"accept":false,"fence":fence,"reason":"too short"});
    verdict("B", no.clone()).await.is(200);
    let again = entry(&board, 1).await;
    let attempt = &again["past_attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["agent"]), (&json!("refused"), &json!("A")));
    assert_eq!((&attempt["reason"], &again["failures"]), (&json!("too short"), &json!(1)));
    verdict("B", no).await.problem(409, "illegal-transition");
    let fence = won(&board, "A", 1).await;
    put(&board, "A", "1/done", &json!({"fence":fence,"result":"better"})).await.is(200);
    let yes = json!({"accept":true,"fence":fence,"reason":"good"});
    verdict("B", yes.clone()).await.is(200);
    let done = entry(&board, 1).await;
    assert_eq!((&done["done"]["agent"], &done["done"]["result"]), (&json!("A"), &json!("better")));
    assert_eq!(done["done"]["verdict"]["agent"], "B");
    assert_eq!(pending(&board).await, [2]);
    let same = board.get("requests").await.revision();
    assert_eq!(verdict("B", yes).await.is(200).revision(), same, "again changes nothing");
}

#[tokio::test]
async fn a_cancellation_waits_for_the_verdict() {
    let mut server = Server::start();
    let board = server.board("s");
    for (n, accept, end) in [(1, true, "done"), (2, false, "cancelled")] {
        post(&board, "?review=true", &json!({"n":n})).await;
        let fence = won(&board, "A", n).await;
        put(&board, "H", &format!("{n}/cancelled"), &json!({"reason":"late"})).await.is(200);
        // Whoever sends the result, it is its holder's.
        let done = format!("requests/{n}/done");
        let body = json!({"fence":fence,"result":1}).to_string();
        for _ in 0..2 {
            ask(board.request(Method::PUT, &done, &body)).await.is(200);
        }
        let shown = entry(&board, n).await;
        assert_eq!(
            (&shown["cancel"]["reason"], &shown["in_review"]["agent"]),
            (&json!("late"), &json!("A"))
        );
        let verdict = json!({"fence":fence,"accept":accept});
        put(&board, "A", &format!("{n}/verdict"), &verdict).await.problem(403, "forbidden");
        put(&board, "B", &format!("{n}/verdict"), &verdict).await.is(200);
        let shown = entry(&board, n).await;
        assert!(shown[end].is_object() && shown.get("cancel").is_none(), "{shown}");
    }
    assert_eq!(entry(&board, 2).await["past_attempts"][0]["outcome"], "refused");
    // A restore to the time before the verdict, and what is stored of it.
    let judged = board.get("").await.revision();
    board.post("restore", &json!({"at":judged - 1}).to_string()).await.is(200);
    server.kill();
    server.start_again();
    let shown = entry(&server.board("s"), 2).await;
    assert!(shown["cancel"].is_object() && shown["in_review"].is_object(), "{shown}");
}

#[tokio::test]
async fn a_wait_that_can_come_true_no_more_ends() {
    let server = Server::start();
    let board = server.board("s");
    for query in ["?attempts=1", "", "", "?attempts=1"] {
        post(&board, query, &json!({"n":1})).await;
    }
    let until = |seq: u64, word: &str| with(&format!("requests/{seq}?until={word}"), LONG);
    let (failing, cancelled) =
        (waiting(&board, &until(1, "done")), waiting(&board, &until(2, "done")));
    let ended: Vec<_> = (1..=3).map(|seq| waiting(&board, &until(seq, "ended"))).collect();
    let never = waiting(&board, &until(3, "failed"));
    won(&board, "A", 1).await;
    put(&board, "A", "1/failed", &json!({"reason":"no paper"})).await.is(200);
    put(&board, "A", "2/cancelled", &json!({"reason":"not needed"})).await.is(200);
    put(&board, "A", "3/done", &json!({})).await.is(200);
    for (reader, words) in
        [(failing, "has failed: no paper"), (cancelled, "was cancelled: not needed")]
    {
        let problem = woken(reader).await.problem(412, "condition-not-met");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
        assert!(problem["current"]["seq"].is_u64());
        let word = words.split(' ').nth(1).unwrap().trim_end_matches(':');
        assert_eq!(problem["why"], word);
    }
    for reader in ended {
        woken(reader).await.is(200);
    }
    woken(never).await.problem(412, "condition-not-met");
    // A request that was never claimed will not be.
    board.get(&until(2, "claimed")).await.problem(412, "condition-not-met");
    // A claim counts though it was given back since.
    won(&board, "A", 4).await;
    ask(board.by("A", Method::DELETE, "requests/4/claim", "")).await.is(200);
    board.get(&until(4, "claimed")).await.is(200);
    board.get(&with("requests/4?until=over", "wait=1s")).await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_transaction_sets_terms_and_judges() {
    let server = Server::start();
    let board = server.board("s");
    let text = json!({"then":[
        {"append":"requests","item":{"n":1},"priority":5,"review":true},
        {"append":"requests","item":{"n":2},"not_before":"1h","deadline":"2h"},
        {"append":"requests","item":{"n":3},"priority":6.0},
        {"append":"requests","item":{"n":4},"priority":-1e1},
        {"claim_next":{}},
        {"cancel":2,"reason":"no"},
        {"done":1,"result":"so"},
    ]});
    let done = ask(board.by("A", Method::POST, "transactions", &text.to_string())).await;
    assert_eq!(done.is(200).json()["results"][4]["seq"], 3);
    assert_eq!(entry(&board, 4).await["priority"], -10);
    assert_eq!(entry(&board, 2).await["cancelled"]["reason"], "no");
    let judge = json!({"then":[{"verdict":1,"accept":true}]}).to_string();
    let judged = ask(board.by("B", Method::POST, "transactions", &judge)).await;
    judged.is(200);
    assert_eq!(entry(&board, 1).await["done"]["verdict"]["agent"], "B");
    for part in [
        r#"{"append":"requests","item":{},"priority":101}"#,
        r#"{"append":"requests","item":{},"deadline":"soon"}"#,
        r#"{"append":"requests","item":{},"review":"yes"}"#,
        r#"{"append":"requests","item":{},"not_before":"2h","deadline":"1h"}"#,
        r#"{"verdict":1}"#,
    ] {
        let request =
            board.by("B", Method::POST, "transactions", &format!("{{\"then\":[{part}]}}"));
        refuses(&board, request, 422, "invalid-field").await;
    }
}

#[tokio::test]
async fn terms_survive_a_crash_and_an_archive() {
    let mut server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"settings":{"running_max":[{"max":2}]}}"#).await.is(201);
    post(&board, "?priority=3&not_before=1h&deadline=2h&attempts=2", &json!({"n":1})).await;
    post(&board, "?review=true", &json!({"n":2})).await;
    post(&board, "", &json!({"n":3})).await;
    post(&board, "", &json!({"n":4})).await;
    post(&board, "?after=4", &json!({"n":5})).await;
    won(&board, "A", 2).await;
    put(&board, "A", "2/done", &json!({"result":"draft"})).await.is(200);
    won(&board, "A", 3).await;
    put(&board, "A", "3/failed", &json!({"reason":"x","retry_in":"1h"})).await.is(200);
    put(&board, "A", "4/cancelled", &json!({"reason":"y"})).await.is(200);
    let before = board.get("requests").await.is(200).json();
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("requests").await.json(), before);
    let archive = board.get("archive").await.text().to_owned();
    let copy = server.board("i");
    let put = copy.typed(Method::PUT, "archive", "application/x-ndjson", archive);
    ask(put).await.is(201);
    assert_eq!(copy.get("requests").await.json()["entries"], before["entries"]);
    assert_eq!(copy.get("").await.json()["settings"]["running_max"], json!([{"max":2}]));
}
