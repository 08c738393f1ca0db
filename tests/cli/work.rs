//! Questions, requests and their claims.

use crate::server::{Running, Server};

#[test]
fn a_question_waits_for_its_answer_through_a_restart() {
    let mut server = Server::start();
    let asking =
        Running::start(server.command(&["ask", "demo", "red\nor blue?", "--format", "table"]));
    assert_eq!(asking.error(), "asked demo/questions/1; waiting for the answer");
    server.kill();
    server.start_again();
    let inbox = server.table(&["inbox"]);
    assert!(inbox.contains("demo/questions/1") && inbox.contains("red\\nor blue?"), "{inbox}");
    server.json(&["answer", "demo/1", "blue"]);
    assert_eq!(asking.line(), "blue");
    let (status, ..) = asking.wait();
    assert!(status.success());
    let refused = server.run(&["answer", "demo/questions/1", "red"]).refusal(6);
    assert!(refused.contains("(already-answered)"), "{refused}");
}

#[test]
fn a_question_without_an_answer_has_its_exit_code() {
    let server = Server::start();
    let late = server.run(&["ask", "demo", "late?", "--timeout", "50ms"]).refusal(7);
    assert_eq!(late, "question 1 was not answered within 50ms; it stays open\n");
    let skipping = Running::start(server.command(&["ask", "demo", "skip?", "--format", "table"]));
    skipping.error();
    server.json(&["answer", "demo/2", "--skip"]);
    assert_eq!(skipping.error(), "error: question 2 was skipped");
    assert_eq!(skipping.wait().0.code(), Some(7));
    let defaulted = ["ask", "demo", "d?", "--expires", "100ms", "--default", "yes"];
    assert_eq!(server.json(&defaulted)["item"]["answer"], "yes");
    let expired = server.run(&["ask", "demo", "e?", "--expires", "100ms"]);
    assert_eq!(expired.status.code(), Some(7));
    assert_eq!(expired.error, "error: question 4 expired without an answer\n");
    let asked = server.json(&["ask", "demo", "later?", "--no-wait"]);
    assert_eq!(asked["entries"][0]["seq"], 5);
}

#[test]
fn a_request_is_claimed_finished_failed_and_released() {
    let server = Server::start();
    for device in ["linux", "windows"] {
        let item = format!("{{\"device\":\"{device}\"}}");
        server.json(&["post", "demo/requests", &item]);
    }
    let wanted = ["claim", "demo", "--match", r#"{"device":"windows"}"#, "--agent", "A"];
    let claimed = server.json(&wanted);
    assert_eq!((claimed["seq"].as_u64(), claimed["claim"]["agent"].as_str()), (Some(2), Some("A")));
    assert!(server.run(&wanted).refusal(7).starts_with("no request can be claimed now"));
    let other = server.run(&["claim", "demo/requests/2", "--agent", "B"]).refusal(6);
    assert!(other.contains("claimed by A"), "{other}");
    let fence = claimed["claim"]["fence"].to_string();
    let stale = ["finish", "demo/2", "x", "--agent", "A", "--fence", "1"];
    assert!(server.run(&stale).refusal(6).contains("(stale-fence)"));
    server.json(&["finish", "demo/2", "{\"n\": 1.0}", "--agent", "A", "--fence", &fence]);
    let done = server.table(&["show", "demo/requests/2"]);
    assert!(done.contains("done by A at") && done.contains("{\"n\": 1.0}"), "{done}");
    let table = server.table(&["claim", "demo/1", "--agent", "A", "--ttl", "5m"]);
    assert!(table.starts_with("request  demo/requests/1\nagent    A\nfence"), "{table}");
    server.json(&["release", "demo/1", "--agent", "A"]);
    server.json(&["claim", "demo", "--agent", "B"]);
    server.json(&["fail", "demo/1", "no disk", "--agent", "B"]);
    assert!(server.table(&["inbox", "--requests"]).contains("demo/requests/1"));
    let nobody = server.run(&["claim", "demo"]).refusal(8);
    assert!(nobody.contains("--agent"), "{nobody}");
}

#[test]
fn a_claim_is_of_the_highest_priority_then_the_oldest() {
    let server = Server::start();
    for priority in ["-1", "0", "5", "5"] {
        server.json(&["post", "demo/requests", "{}", "--priority", priority]);
    }
    let claimed = [(); 4].map(|()| server.json(&["claim", "demo", "--agent", "A"])["seq"].as_u64());
    assert_eq!(claimed, [3, 4, 2, 1].map(Some));
}

#[test]
fn a_claim_waits_for_the_next_request() {
    let server = Server::start();
    server.json(&["post", "demo/questions", "to make the session"]);
    let claiming =
        Running::start(server.command(&["claim", "demo", "--agent", "A", "--wait", "30s"]));
    server.json(&["post", "demo/requests", "do it"]);
    assert!(claiming.line().contains("\"text\":\"do it\""));
    let none = ["claim", "demo", "--agent", "A", "--wait", "100ms"];
    server.run(&none).refusal(7);
}

#[test]
fn a_write_with_the_same_key_is_done_once() {
    let server = Server::start();
    let post = ["post", "demo/requests", "once", "--idempotency-key", "k-1"];
    let (first, again) = (server.run(&post).text(), server.run(&post).text());
    assert_eq!(first, again);
    assert_eq!(server.json(&["show", "demo/requests"])["count"], 1);
    let other = ["post", "demo/requests", "other", "--idempotency-key", "k-1"];
    assert!(server.run(&other).refusal(8).contains("(idempotency-key-reused)"));
}
