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

#[test]
fn a_diff_as_a_table_shows_what_changed_and_nothing_twice() {
    let server = Server::start();
    let task = r#"{"request":"Make a chart of the sales of the quarter, with a legend and a caption in the house's style"}"#;
    server.json(&["post", "demo/requests", task]);
    server.json(&["post", "demo/requests", "two"]);
    server.json(&["post", "demo/requests", "three", "--after", "2"]);
    server.json(&["state", "set", "demo/plan", r#"{"x":1}"#]);
    server.json(&["checkpoint", "demo", "v1"]);
    server.json(&["claim", "demo/1", "--agent", "A"]);
    server.json(&["finish", "demo/1", r#"{"n": 1.0}"#, "--agent", "A"]);
    server.json(&["claim", "demo/2", "--agent", "B"]);
    server.json(&["state", "set", "demo/plan/x", "2"]);
    let diff = server.table(&["diff", "demo", "v1"]);
    let line = |path: &str| diff.lines().find(|line| line.contains(path)).unwrap_or_default();
    assert!(line("requests/1").starts_with("~  requests/1    done by A at 20"), "{diff}");
    assert!(line("requests/1").ends_with(r#"{"n": 1.0}"#), "{diff}");
    assert!(line("requests/2").contains("  claimed by B until 20"), "{diff}");
    assert!(line("state/plan/x").ends_with("1 → 2"), "{diff}");
    server.json(&["release", "demo/2", "--agent", "B"]);
    let later = server.table(&["diff", "demo", "9"]);
    assert!(later.contains("~  requests/2  pending\n"), "{later}");
}

#[test]
fn a_diff_as_a_table_names_the_members_that_changed() {
    let server = Server::start();
    let long = "x".repeat(200);
    server.json(&["post", "demo/questions", &format!(r#"{{"question":"{long}"}}"#)]);
    server.json(&["answer", "demo/questions/1", "no"]);
    let diff = server.table(&["diff", "demo", "1"]);
    assert!(diff.ends_with("~  questions/1  answer: absent → \"no\"\n"), "{diff}");
}
