//! Sessions, logs, search and prompts.

use crate::server::{Server, finished};

#[test]
fn what_is_posted_is_shown_as_a_table_or_as_json() {
    let server = Server::start();
    let made = server.json(&["post", "a b/requests", r#"{"n": 1.0, "a": "é"}"#, "--agent", "Ä"]);
    assert_eq!((made["revision"].as_u64(), made["entries"][0]["seq"].as_u64()), (Some(1), Some(1)));
    let made = server.table(&["post", "a b/requests", "a text", "--after", "1", "--attempts", "2"]);
    assert_eq!(made, "a b/requests/2; revision 2\n");
    let page = server.json(&["show", "a b/requests"]);
    assert_eq!(page["entries"][1]["item"]["text"], "a text");
    assert_eq!(page["entries"][0]["agent"], "Ä");
    // The numbers are as they were sent.
    let exact = server.run(&["show", "a b/requests/1"]).text();
    assert!(exact.contains(r#"{"n": 1.0, "a": "é"}"#), "{exact}");
    let table = server.table(&["show", "a b/requests"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("SEQ  AT") && lines[1].contains(" Ä "), "{table}");
    assert!(lines[1].ends_with(r#"  pending      {"n": 1.0, "a": "é"}"#), "{table}");
    assert!(lines[2].contains("waits for 1"), "{table}");
    let entry = server.table(&["show", "a b/requests/1"]);
    assert!(entry.contains("item      {\"n\": 1.0"), "{entry}");
    let sessions = server.table(&["sessions", "--prefix", "a"]);
    assert_eq!(sessions.lines().nth(1).unwrap().split_whitespace().nth(2), Some("2"));
    assert!(server.table(&["show", "a b"]).contains("\"requests\":2"));
    assert_eq!(
        server.json(&["sessions", "--prefix", "x"])["sessions"].as_array().unwrap().len(),
        0
    );
}

#[test]
fn a_body_comes_from_standard_input_or_a_file() {
    let server = Server::start();
    let post = server.command(&["post", "demo/trajectories", "--ndjson"]);
    let made = finished(post, "{\"step\":1}\n{\"step\":2}\n").json();
    assert_eq!(made["entries"].as_array().unwrap().len(), 2);
    let image = format!("{}/tests/corpus/images/rgba.png", env!("CARGO_MANIFEST_DIR"));
    server.json(&["post", "demo/screenshots", "--file", &image]);
    let shown = server.json(&["show", "demo/screenshots/1"]);
    assert_eq!(shown["image"]["media_type"], "image/png");
    let memory = server.command(&["post", "demo/agents/A/memory", "--format", "table"]);
    assert_eq!(finished(memory, "{\"cost\":1}").text(), "demo/agents/A/memory/1; revision 3\n");
    let pages = server.json(&["show", "demo/trajectories", "--after", "0", "--limit", "1"]);
    assert_eq!((pages["next"].as_u64(), pages["more"].as_bool()), (Some(1), Some(true)));
    let absent = server.run(&["post", "demo/requests", "--file", "/absent"]).refusal(1);
    assert!(absent.contains("cannot read /absent"), "{absent}");
}

#[test]
fn a_file_that_is_no_image_is_rejected_as_one() {
    let server = Server::start();
    let named = |name: &str, content: &[u8]| {
        let path = server.home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    for (name, content) in
        [("x.heic", &b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..]), ("empty.png", b"")]
    {
        let path = named(name, content);
        let said = server.run(&["post", "demo/screenshots", "--file", &path]).refusal(8);
        assert!(said.contains("not-an-image") && said.contains("image/png"), "{said}");
    }
    // The name of a file is no item, and needs a flag.
    let path = named("window.png", b"\x89PNG");
    let said = server.run(&["post", "demo/screenshots", &path]).refusal(2);
    assert!(said.contains(&format!("--file {path}")), "{said}");
    // The page's address is not the server's.
    let page = format!("{}/ui/", server.url);
    let said = server.run(&["sessions", "--url", &page]).refusal(5);
    assert!(said.contains("check --url"), "{said}");
}

#[test]
fn no_terminal_obeys_what_is_on_a_board() {
    let server = Server::start();
    let hostile = "{\"a\":\"\u{9b}31m\u{202e}\",\"b\\u001b[2J\":1}";
    server.json(&["post", "demo/requests", hostile, "--agent", "\u{202e}A"]);
    for arguments in
        [["show", "demo/requests"], ["show", "demo/requests/1"], ["inbox", "--requests"]]
    {
        let table = server.table(&arguments);
        let is_plain = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(table.chars().all(is_plain), "{table:?}");
        assert!(table.contains("\\u009b31m\\u202e"), "{table}");
    }
}

#[test]
fn search_and_prompt_show_what_is_there() {
    let server = Server::start();
    let made = server.json(&["post", "demo/requests", "the disk of <node> 7 is full"]);
    let revision = made["revision"].as_u64().unwrap();
    assert_eq!(revision, 1);
    // The index follows the commits.
    let mut table = server.table(&["search", "disk full"]);
    while table.lines().count() < 2 {
        table = server.table(&["search", "disk full"]);
    }
    assert!(table.contains("demo/requests/1") && table.contains("disk of <node> 7"), "{table}");
    let parts = server.json(&["prompt", "demo"]);
    assert_eq!(parts[0]["text"], "[Blackboard:]");
    let text =
        server.run(&["prompt", "demo", "--format", "markdown", "--include", "requests"]).text();
    assert!(text.contains("the disk of") && !text.contains("Trajectories"), "{text}");
}
