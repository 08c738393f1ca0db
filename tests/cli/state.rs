//! State commands, and the pause of an agent.

use crate::server::{Server, finished};

#[test]
fn a_value_is_set_read_added_to_and_deleted() {
    let server = Server::start();
    assert_eq!(server.table(&["state", "set", "demo/a/b~1c", "{\"n\": 1.0}"]), "revision 1\n");
    assert_eq!(server.run(&["state", "get", "demo/a"]).text(), "{\"b/c\":{\"n\":1.0}}\n");
    assert_eq!(server.table(&["state", "add", "demo/n", "-3"]), "-3\n");
    assert_eq!(server.json(&["state", "add", "demo/n", "5"])["value"], 2);
    server.json(&["state", "set", "demo/text", "--string", "-x"]);
    assert_eq!(server.run(&["state", "get", "demo/text"]).text(), "\"-x\"\n");
    finished(server.command(&["state", "set", "demo/m", "-"]), "[1]").json();
    assert_eq!(server.run(&["state", "get", "demo/m", "--at", "5"]).text(), "[1]\n");
    server.json(&["state", "rm", "demo/a"]);
    server.run(&["state", "get", "demo/a"]).refusal(5);
    let refused = server.run(&["state", "add", "demo/text", "1"]).refusal(6);
    assert!(refused.contains("(not-a-number)"), "{refused}");
    let refused = server.run(&["state", "set", "demo/a", "ready"]).refusal(2);
    assert!(refused.contains("is not JSON"), "{refused}");
    server.run(&["state", "set", "demo/n/x", "1"]).refusal(6);
}

#[test]
fn a_paused_agent_is_a_value_that_it_can_wait_for() {
    let server = Server::start();
    server.json(&["pause", "demo", "A~", "--for", "10m"]);
    assert_eq!(server.run(&["state", "get", "demo/agents/A~0/paused"]).text(), "true\n");
    server.json(&["resume", "demo", "A~"]);
    server.run(&["state", "get", "demo/agents/A~0/paused"]).refusal(5);
    let again = server.run(&["resume", "demo", "A~"]);
    assert!(again.status.success() && again.error.contains("A~ is not paused"), "{}", again.error);
    server.run(&["resume", "absent", "A"]).refusal(5);
}
