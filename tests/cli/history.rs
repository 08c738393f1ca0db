//! Checkpoints, diffs, forks and restores.

use crate::server::Server;

#[test]
fn a_board_goes_back_to_a_checkpoint_and_forth() {
    let server = Server::start();
    server.json(&["post", "demo/requests", "one"]);
    assert_eq!(server.table(&["checkpoint", "demo", "v1"]), "revision 2\n");
    server.json(&["post", "demo/requests", "two"]);
    server.json(&["state", "set", "demo/a", "1"]);
    let diff = server.table(&["diff", "demo", "v1"]);
    let expected = "revision 2 to 4\n+  requests/2  {\"text\":\"two\"}\n+  state/a     1\n";
    assert_eq!(diff, expected);
    assert_eq!(server.json(&["diff", "demo", "1", "3"])["added"].as_array().unwrap().len(), 1);
    let listed = server.table(&["checkpoint", "demo"]);
    assert_eq!(listed.lines().nth(1).unwrap().split_whitespace().nth(1), Some("2"));
    server.json(&["fork", "demo", "copy", "--at", "v1"]);
    assert_eq!(server.json(&["show", "copy/requests"])["count"], 1);
    assert!(server.run(&["fork", "demo", "copy"]).refusal(6).contains("(session-exists)"));
    server.json(&["restore", "demo", "v1"]);
    assert_eq!(server.json(&["show", "demo/requests"])["count"], 1);
    server.json(&["restore", "demo", "4"]);
    assert_eq!(server.json(&["show", "demo/requests"])["count"], 2);
    assert_eq!(server.json(&["show", "demo/requests", "--at", "v1"])["count"], 1);
    server.json(&["checkpoint", "demo", "v1", "--delete"]);
    assert!(server.run(&["restore", "demo", "v1"]).refusal(5).contains("(checkpoint-not-found)"));
    assert!(server.run(&["restore", "demo", "99"]).refusal(5).contains("(revision-not-found)"));
}
