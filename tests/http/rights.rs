//! Rights revoked during streams and waits, and answers of writes without `read`.

use std::convert::Infallible;
use std::hash::Hasher as _;

use futures_util::stream::{self, StreamExt as _};
use reqwest::{Body, Method};
use siphasher::sip::SipHasher13;

use crate::answer::ask;
use crate::harness::Server;
use crate::matrix::token;
use crate::tokens::House;
use crate::whole::receipt;

#[tokio::test]
async fn what_began_before_its_token_expired_ends_with_it() {
    let server = Server::start();
    let admin = token(&server, &["create", "--name", "admin", "--scopes", "admin"]);
    // The first write comes before the end, on a slow machine too.
    let made = token(&server, &["create", "--name", "short", "--expires", "8s"]);
    let put = |body: Body| {
        let request = server.to(Method::PUT, "/v1/sessions/s/state/slow").bearer_auth(&made);
        request.header("content-type", "application/json").body(body)
    };
    ask(put(Body::from("1"))).await.is(201);
    let wait = server.to(Method::GET, "/v1/sessions/s/state/never?until=exists&wait=60s");
    // Its last piece never comes: the server has to end it.
    let pieces = stream::once(async { Ok::<_, Infallible>("[1,") }).chain(stream::pending());
    let (waited, sent) =
        tokio::join!(ask(wait.bearer_auth(&made)), ask(put(Body::wrap_stream(pieces))));
    waited.problem(401, "unauthorized");
    sent.problem(401, "unauthorized");
    let state = server.to(Method::GET, "/v1/sessions/s/state/slow").bearer_auth(&admin);
    assert_eq!(ask(state).await.is(200).text(), "1\n");
}

#[tokio::test]
async fn who_may_only_write_reads_nothing_by_it() {
    let house = House::new().await;
    let writer = token(&house.server, &["create", "--name", "w", "--scopes", "write"]);
    house.sent(&house.admin, Method::PUT, "state/list", "[\"kept\"]").await.is(201);
    for body in ["{\"append\":[]}", "{\"add\":0}"] {
        house.sent(&writer, Method::PATCH, "state/list", body).await.problem(403, "forbidden");
    }
    let test = house.server.to(Method::PATCH, "/v1/sessions/s/requests/1").bearer_auth(&writer);
    let test = test.header("content-type", "application/json-patch+json");
    ask(test.body(r#"[{"op":"test","path":"/request","value":"open"}]"#))
        .await
        .problem(403, "forbidden");
    let put = house.sent(&writer, Method::PUT, "", "{}").await;
    assert_eq!(put.is(200).json().as_object().map(serde_json::Map::len), Some(2), "{put}");
}

#[tokio::test]
async fn how_much_another_agent_remembers_is_not_told() {
    let house = House::new().await;
    let seen = |path: &str| ask(house.server.to(Method::GET, path).bearer_auth(&house.a));
    let (described, list) = (seen("/v1/sessions/s").await, seen("/v1/sessions").await);
    for session in [&described.is(200).json(), &list.is(200).json()["sessions"][0]] {
        for hidden in ["bytes", "history_bytes", "cost", "memory_entries", "blobs"] {
            assert!(session.get(hidden).is_none(), "{hidden}: {session}");
        }
    }
    let all = house.got(&house.admin, "").await.json();
    assert!(all["bytes"].is_u64() && all["history_bytes"].is_u64(), "{all}");
}

/// The tag of a session as a rendering with these sizes has it: whoever knows how tags are made can try them all.
fn rendered(format: &str) -> String {
    let mut hash = SipHasher13::new();
    for part in ["", format] {
        hash.write(&(part.len() as u64).to_be_bytes());
        hash.write(part.as_bytes());
    }
    format!("{:08x}", hash.finish() & 0xffff_ffff)
}

#[tokio::test]
async fn a_sessions_tag_tells_no_more_than_its_description() {
    let house = House::new().await;
    let writer = token(&house.server, &["create", "--name", "w", "--scopes", "write"]);
    let all = house.got(&house.admin, "").await;
    let (oldest, exact) = (&all.json()["oldest_revision"], &all.json()["history_bytes"]);
    let exact = rendered(&format!("{oldest} {exact}"));
    assert!(all.etag().contains(&exact), "{all}");
    let transaction = r#"{"if":[],"then":[]}"#;
    for token in [&house.a, &writer] {
        let put = house.sent(token, Method::PUT, "", "{}").await;
        let transacted = house.sent(token, Method::POST, "transactions", transaction).await;
        let stale = house.server.to(Method::PUT, "/v1/sessions/s").bearer_auth(token);
        let stale = ask(stale.header("if-match", "\"0\"")).await;
        stale.problem(412, "precondition-failed");
        for answer in [put, transacted, stale] {
            assert!(!answer.etag().contains(&exact), "{answer}");
            let same = house.server.to(Method::PUT, "/v1/sessions/s").bearer_auth(token);
            ask(same.header("if-match", answer.etag())).await.is(200);
        }
    }
    let described = house.got(&house.a, "").await;
    assert!(described.etag().contains(&rendered(&oldest.to_string())), "{described}");
    assert_eq!(house.sent(&house.a, Method::PUT, "", "{}").await.etag(), described.etag());
}

#[tokio::test]
async fn a_repeat_shows_no_more_than_its_own_token_may_see() {
    let house = House::new().await;
    let of_a = |name: &str, scopes: &str| {
        token(&house.server, &["create", "--name", name, "--agent", "A", "--scopes", scopes])
    };
    let all = of_a("all", "read,write,memory:read,admin");
    let (limited, writer) = (of_a("limited", "read,write"), of_a("writer", "write"));
    let sent = |token: &str, method: Method, tail: &str, body: &'static str| {
        let request = house.server.to(method, &format!("/v1/sessions/s{tail}"));
        let request = request.bearer_auth(token).header("idempotency-key", format!("key{tail}"));
        ask(request.header("content-type", "application/json").body(body))
    };
    let put = |token| sent(token, Method::PUT, "", r#"{"labels":{"a":"b"}}"#);
    let first = put(&all).await;
    assert!(first.is(200).json()["labels"].is_object(), "{first}");
    for token in [&limited, &writer] {
        let repeat = put(token).await;
        assert_eq!(repeat.is(200).header("idempotency-replayed"), "true", "{repeat}");
        let least = serde_json::json!({ "revision": first.revision(), "etag": repeat.etag() });
        assert_eq!(repeat.json(), least);
        assert!(first.etag().starts_with(repeat.etag().trim_end_matches('"')), "{repeat}");
        assert!(!repeat.etag().contains('-'), "{repeat}");
    }
    let again = put(&all).await;
    assert_eq!((again.text(), again.etag()), (first.text(), first.etag()));
    let transact = |token| {
        sent(token, Method::POST, "/transactions", r#"{"then":[{"append":"requests","item":{}}]}"#)
    };
    let (first, second) = (transact(&limited).await, transact(&writer).await);
    assert_eq!(receipt(&second), receipt(&first), "{second}");
    assert_eq!((first.next_tag(), second.next_tag()), (first.etag(), second.etag()));
    assert!(first.etag().contains('-') && !second.etag().contains('-'), "{second}");
    assert_eq!(transact(&limited).await.etag(), first.etag());
    let restore = |token| sent(token, Method::POST, "/restore", r#"{"at":2}"#);
    restore(&all).await.is(200);
    restore(&limited).await.problem(403, "forbidden");
}

#[tokio::test]
async fn nobody_writes_under_the_claim_of_another_agent() {
    let house = House::new().await;
    let claim = house.sent(&house.a, Method::PUT, "requests/1/claim", "{\"ttl\":\"60s\"}").await;
    let fence = &claim.is(201).json()["claim"]["fence"];
    let under = format!("trajectories?claim=1&fence={fence}");
    house.sent(&house.b, Method::POST, &under, "{}").await.problem(403, "forbidden");
    let stale = format!("trajectories?claim=1&fence={}", 1);
    house.sent(&house.b, Method::POST, &stale, "{}").await.problem(409, "stale-fence");
    house.sent(&house.a, Method::POST, &under, "{}").await.is(201);
    house.sent(&house.admin, Method::POST, &under, "{}").await.is(201);
    let done = format!("{{\"fence\":{fence}}}");
    house
        .sent(&house.b, Method::PUT, "requests/1/done", &done)
        .await
        .problem(409, "already-claimed");
    house.sent(&house.a, Method::PUT, "requests/1/done", &done).await.is(200);
    house.sent(&house.b, Method::POST, &under, "{}").await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_status_is_set_by_its_agent_its_host_or_an_admin() {
    let house = House::new().await;
    let status = |token, status: &str| {
        let (house, body) = (&house, format!("{{\"status\":\"{status}\"}}"));
        async move { house.sent(token, Method::PATCH, "agents/B", &body).await }
    };
    status(&house.a, "PENDING").await.problem(403, "forbidden");
    let set = r#"{"then":[{"status":"B","value":"PENDING"}]}"#;
    house.sent(&house.a, Method::POST, "transactions", set).await.problem(403, "forbidden");
    let host = |name: &str| format!("{{\"host\":\"{name}\"}}");
    house.sent(&house.a, Method::PATCH, "agents/B", &host("A")).await.problem(403, "forbidden");
    house.sent(&house.a, Method::PATCH, "agents/B", "{\"note\":1}").await.is(200);
    status(&house.b, "PENDING").await.is(200);
    status(&house.admin, "CONTINUE").await.is(200);
    // B names A its host, which then sets the status, and gives the place away.
    house.sent(&house.b, Method::PATCH, "agents/B", &host("A")).await.is(200);
    status(&house.a, "PENDING").await.is(200);
    house.sent(&house.a, Method::PATCH, "agents/B", &host("C")).await.is(200);
    status(&house.a, "CONTINUE").await.problem(403, "forbidden");
    for (profile, expected) in [
        ("{\"status\":\"FINISH\"}", 403),
        ("{\"host\":\"A\"}", 403),
        ("{\"type\":\"AppAgent\"}", 201),
    ] {
        house.sent(&house.a, Method::PUT, "agents/new", profile).await.is(expected);
    }
}

#[tokio::test]
async fn an_agent_neither_sets_a_budget_nor_finds_costs_by_it() {
    let house = House::new().await;
    let all = token(&house.server, &["create", "--name", "unbound"]);
    let put = |token, session: &str, max: &str| {
        let request = house.server.to(Method::PUT, &format!("/v1/sessions/{session}"));
        let request = request.bearer_auth(token).header("content-type", "application/json");
        ask(request.body(format!(r#"{{"settings":{{"cost_max":{max}}}}}"#)))
    };
    // Of budgets that an agent sets, those that have been passed would tell the sum of costs.
    for max in ["0.25", "0.75", "null"] {
        put(&house.a, "s", max).await.problem(403, "forbidden");
    }
    // A session that it makes has no budget of its choice either.
    put(&house.a, "s-of-a", "0").await.problem(403, "forbidden");
    house.got(&house.admin, "").await.is(200);
    assert_eq!(put(&all, "s", "0.25").await.is(200).json()["settings"]["cost_max"], 0.25);
    house
        .sent(&house.a, Method::POST, "agents/A/memory", "{}")
        .await
        .problem(409, "budget-exhausted");
    put(&house.a, "s", "null").await.problem(403, "forbidden");
    let reset = r#"{"settings":null}"#;
    house.sent(&house.a, Method::PUT, "", reset).await.problem(403, "forbidden");
    let no_ttl = r#"{"settings":{"ttl":null}}"#;
    house.sent(&house.a, Method::PUT, "", no_ttl).await.problem(403, "forbidden");
    house.sent(&house.a, Method::PUT, "", r#"{"settings":{}}"#).await.is(200);
    assert_eq!(house.got(&house.admin, "").await.json()["settings"]["cost_max"], 0.25);
    assert_eq!(house.got(&house.a, "").await.json().get("cost"), None);
    // A fork keeps the budget, and its maker does not lift it there.
    house.sent(&house.a, Method::POST, "fork", r#"{"to":"s-2"}"#).await.is(201);
    put(&house.a, "s-2", "9").await.problem(403, "forbidden");
    put(&house.admin, "s", "null").await.is(200);
    house.sent(&house.a, Method::POST, "agents/A/memory", "{}").await.is(201);
}
