//! `blackboard work`: commands for requests, and all that ends them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::DEADLINE;
use crate::proxy::Proxy;
use crate::server::{Done, Running, Server, finished};

/// A worker on the session `s` that runs a script for each request.
fn worker(server: &Server, flags: &[&str], script: &str) -> std::process::Command {
    let mut command = server.command(&["work", "s", "--agent", "W"]);
    command.args(flags).args(["--", "sh", "-c", script]);
    command
}

/// Works until nothing can be claimed.
fn work(server: &Server, flags: &[&str], script: &str) -> Done {
    finished(worker(server, &[flags, &["--until-empty"]].concat(), script), "")
}

fn post(server: &Server, item: &Value, flags: &[&str]) {
    let item = item.to_string();
    server.json(&[&["post", "s/requests", item.as_str()], flags].concat());
}

fn entry(server: &Server, seq: u64) -> Value {
    server.json(&["show", &format!("s/requests/{seq}")])
}

/// Waits until a request is such a one.
fn until(server: &Server, seq: u64, is_such: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let entry = entry(server, seq);
        if is_such(&entry) {
            return entry;
        }
        assert!(Instant::now() < end, "{entry}");
        sleep(Duration::from_millis(50));
    }
}

/// Waits until the script has written its process ids, and returns them.
fn ids(path: &Path, count: usize) -> Vec<Pid> {
    let end = Instant::now() + DEADLINE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        let ids: Vec<_> =
            text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect();
        if ids.len() == count && text.ends_with('\n') {
            return ids;
        }
        assert!(Instant::now() < end, "{text}");
        sleep(Duration::from_millis(20));
    }
}

fn gone(ids: &[Pid]) {
    let end = Instant::now() + DEADLINE;
    // A process that nobody has waited for yet is a zombie.
    let runs = |id: &Pid| {
        let status = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero()));
        test_kill_process(*id).is_ok() && !status.is_ok_and(|text| text.contains(") Z "))
    };
    while ids.iter().any(runs) {
        assert!(Instant::now() < end, "{ids:?} run on");
        sleep(Duration::from_millis(20));
    }
}

/// A script that writes the ids of itself and of a process that it starts, and runs on.
fn lasting(server: &Server) -> (PathBuf, String) {
    let path = server.home.path().join("ids");
    let shown = path.display();
    (path.clone(), format!("sleep 600 & echo $! >> {shown}; echo $$ >> {shown}; wait"))
}

#[test]
fn a_command_gets_the_item_and_gives_the_result() {
    let server = Server::start();
    post(&server, &json!({"n":1}), &[]);
    post(&server, &json!({"n":2}), &[]);
    let script = r#"read item; case "$item" in *1*) echo "{\"got\": $item}";; *) printf 'two\nlines\n';; esac"#;
    let done = work(&server, &[], script);
    assert!(done.status.success() && done.output.is_empty(), "{}", done.error);
    assert_eq!(done.error, "s/1 done\ns/2 done\n");
    assert_eq!(entry(&server, 1)["done"]["result"], json!({"got":{"n":1}}));
    assert_eq!(entry(&server, 2)["done"]["result"], "two\nlines");
}

#[test]
fn a_command_has_its_request_in_the_environment() {
    let server = Server::start_with(&["--require-token"]);
    let token = server.token("worker", &["--scopes", "read,write", "--sessions", "*"]);
    let with_token =
        |arguments: &[&str]| server.run(&[arguments, &["--token-file", &token]].concat()).json();
    with_token(&["post", "s/requests", "{}"]);
    let name = env!("CARGO_BIN_EXE_blackboard");
    let script = format!(
        "{name} post \"$BLACKBOARD_SESSION/trajectories\" \"{{\\\"seq\\\":$BLACKBOARD_SEQ}}\" > /dev/null; \
         printf '%s %s %s' \"$BLACKBOARD_FENCE\" \"$BLACKBOARD_PAST_ATTEMPTS\" \"${{BLACKBOARD_TOKEN-none}}\""
    );
    let mut command = worker(&server, &["--token-file", &token, "--once"], &script);
    command.env("BLACKBOARD_TOKEN", "bb_other");
    let done = finished(command, "");
    assert_eq!(done.error, "s/1 done\n");
    let step = with_token(&["show", "s/trajectories/1"]);
    assert_eq!((&step["item"]["seq"], &step["agent"]), (&json!(1), &json!("W")));
    assert_eq!(with_token(&["show", "s/requests/1"])["done"]["result"], "2 [] none");
}

#[test]
fn a_failed_command_says_why_to_the_next() {
    let server = Server::start();
    post(&server, &json!({}), &["--attempts", "3"]);
    let script = r#"[ "$BLACKBOARD_PAST_ATTEMPTS" = "[]" ] || { echo "$BLACKBOARD_PAST_ATTEMPTS"; exit 0; }
        echo progress; echo 'no disk' >&2; exit 3"#;
    let failed = finished(worker(&server, &["--once"], script), "");
    assert_eq!(failed.error, "no disk\ns/1 failed: exit code 3; may be claimed again in 1 s\n");
    let table = server.table(&["show", "s/requests"]);
    assert!(table.contains("1 of 3 failed: exit code 3: no disk"), "{table}");
    let done = finished(worker(&server, &["--once"], script), "");
    assert!(done.status.success(), "{}", done.error);
    let result = &entry(&server, 1)["done"]["result"][0];
    assert_eq!(
        (&result["agent"], &result["reason"]),
        (&json!("W"), &json!("exit code 3: no disk"))
    );
}

#[test]
fn without_errors_the_end_of_the_output_is_the_reason() {
    let server = Server::start();
    post(&server, &json!({}), &[]);
    finished(worker(&server, &["--once"], "echo 'API Error: 400'; exit 1"), "");
    assert_eq!(entry(&server, 1)["past_attempts"][0]["reason"], "exit code 1: API Error: 400");
}

#[test]
fn a_worker_says_whether_an_attempt_is_left_or_a_verdict() {
    let server = Server::start();
    post(&server, &json!({}), &["--attempts", "1"]);
    let failed = work(&server, &[], "exit 4");
    assert_eq!(failed.error, "s/1 failed: exit code 4; no attempt is left\n");
    post(&server, &json!({}), &["--review"]);
    let done = work(&server, &[], "echo draft");
    assert_eq!(done.error, "s/2 done, waits for a verdict\n");
}

#[test]
fn exit_code_75_gives_the_request_back() {
    let server = Server::start();
    post(&server, &json!({}), &[]);
    let done = finished(worker(&server, &["--once"], "exit 75"), "");
    assert_eq!(done.error, "s/1 released: exit code 75\n");
    let shown = entry(&server, 1);
    assert_eq!(shown["past_attempts"][0]["outcome"], "released");
    assert_eq!(shown.get("claim"), None);
}

#[test]
fn a_large_output_is_a_blob() {
    let server = Server::start();
    post(&server, &json!({}), &[]);
    post(&server, &json!({}), &[]);
    work(
        &server,
        &[],
        "if [ $BLACKBOARD_SEQ = 1 ]; then head -c 1200000 /dev/zero | tr '\\0' x; else printf '\\377'; fi",
    );
    for (seq, bytes) in [(1, 1_200_000), (2, 1)] {
        let blob =
            entry(&server, seq)["done"]["result"]["output"]["$blob"].as_str().unwrap().to_owned();
        let path = server.home.path().join("out");
        server.run(&["blob", "get", "s", &blob, "-o", path.to_str().unwrap()]).text();
        assert_eq!(fs::metadata(path).unwrap().len(), bytes);
    }
}

#[test]
fn a_cancel_ends_the_command_and_what_it_started() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &[]);
    let working = Running::start(worker(&server, &["--once"], &script));
    let ids = ids(&path, 2);
    server.json(&["cancel", "s/1", "not needed", "--agent", "boss"]);
    assert_eq!(working.error(), "s/1 cancelled");
    gone(&ids);
    assert!(working.wait().0.success());
    assert_eq!(entry(&server, 1)["cancelled"]["reason"], "not needed");
}

/// A script that starts a process in a session of its own, and writes its id.
#[cfg(target_os = "linux")]
fn apart(server: &Server, end: &str) -> (PathBuf, String) {
    let path = server.home.path().join("ids");
    let shown = path.display();
    let script = format!(
        "setsid sh -c 'echo $$ >> {shown}; exec sleep 600' >/dev/null 2>&1 &
        until [ -s {shown} ]; do sleep 0.02; done; {end}"
    );
    (path.clone(), script)
}

#[cfg(target_os = "linux")]
#[test]
fn a_cancel_ends_what_has_left_the_group() {
    let server = Server::start();
    let (path, script) = apart(&server, "wait");
    post(&server, &json!({}), &[]);
    let working = Running::start(worker(&server, &["--once"], &script));
    let ids = ids(&path, 1);
    server.json(&["cancel", "s/1"]);
    assert_eq!(working.error(), "s/1 cancelled");
    gone(&ids);
    assert!(working.wait().0.success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_that_ends_may_leave_a_process_of_its_own() {
    let server = Server::start();
    let (path, script) = apart(&server, "echo done");
    post(&server, &json!({}), &[]);
    assert!(finished(worker(&server, &["--once"], &script), "").status.success());
    for id in ids(&path, 1) {
        test_kill_process(id).unwrap();
        kill_process(id, Signal::KILL).unwrap();
    }
}

#[test]
fn a_lost_claim_ends_the_command() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &[]);
    let working = Running::start(worker(&server, &["--once"], &script));
    let ids = ids(&path, 2);
    server.json(&["release", "s/1", "--agent", "W"]);
    server.json(&["claim", "s/1", "--agent", "B"]);
    let said = working.error();
    assert!(said.starts_with("s/1 lost: "), "{said}");
    gone(&ids);
    assert_eq!(entry(&server, 1)["claim"]["agent"], "B");
}

#[test]
fn a_pause_ends_the_command_until_it_resumes() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &[]);
    let working = Running::start(worker(
        &server,
        &[],
        &format!("[ -e {0} ] && exit 0; {script}", path.display()),
    ));
    let ids = ids(&path, 2);
    server.json(&["pause", "s", "W"]);
    assert_eq!(working.error(), "W is paused");
    assert_eq!(working.error(), "s/1 released: the agent is paused");
    gone(&ids);
    server.json(&["resume", "s", "W"]);
    assert_eq!(working.error(), "W resumes");
    assert_eq!(working.error(), "s/1 done");
}

#[test]
fn sigterm_gives_the_request_back() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &[]);
    let working = Running::start(worker(&server, &[], &script));
    let ids = ids(&path, 2);
    working.signal(Signal::TERM);
    assert_eq!(working.error(), "s/1 released: the worker stops");
    gone(&ids);
    assert!(working.wait().0.success());
    assert_eq!(entry(&server, 1)["past_attempts"][0]["outcome"], "released");
}

/// A worker whose claim of the only request is won, and whose answer does not come.
fn unanswered(server: &Server) -> Running {
    post(server, &json!({}), &["--attempts", "1"]);
    let proxy = Proxy::start(&server.url, "/requests/claim");
    let mut command = worker(server, &[], "echo done");
    command.env("BLACKBOARD_URL", &proxy.url);
    let working = Running::start(command);
    until(server, 1, |entry| entry["claim"].is_object());
    working
}

#[test]
fn a_claim_that_is_won_as_work_stops_is_given_back() {
    let server = Server::start();
    let working = unanswered(&server);
    working.signal(Signal::TERM);
    assert_eq!(working.error(), "s/1 released: the worker stops");
    assert!(working.wait().0.success());
    assert_eq!(entry(&server, 1)["past_attempts"][0]["outcome"], "released");
}

#[test]
fn a_claim_that_is_won_as_a_pause_begins_is_given_back() {
    let server = Server::start();
    let working = unanswered(&server);
    server.json(&["pause", "s", "W"]);
    assert_eq!(working.error(), "W is paused");
    assert_eq!(working.error(), "s/1 released: the agent is paused");
    server.json(&["resume", "s", "W"]);
    assert_eq!(working.error(), "W resumes");
    assert_eq!(working.error(), "s/1 done");
}

#[test]
fn sigkill_ends_the_command_and_a_restart_takes_it_up() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &["--attempts", "1"]);
    let working = Running::start(worker(&server, &["--ttl", "20s"], &script));
    let ids = ids(&path, 2);
    working.signal(Signal::KILL);
    gone(&ids);
    // Half a ttl without a renewal: nobody else works under this name.
    let done = work(&server, &["--ttl", "4s"], "echo again");
    assert!(
        done.error.contains("s/1 released: an earlier run") && done.error.contains("s/1 done"),
        "{}",
        done.error
    );
    assert_eq!(entry(&server, 1)["done"]["result"], "again");
}

#[test]
fn a_command_that_lasts_too_long_is_failed() {
    let server = Server::start();
    let (path, script) = lasting(&server);
    post(&server, &json!({}), &[]);
    // It ignores SIGTERM, but its group gets SIGKILL.
    let script = format!("trap '' TERM; {script}; wait; wait");
    let working = Running::start(worker(&server, &["--once", "--timeout", "200ms"], &script));
    let ids = ids(&path, 2);
    assert!(working.error().starts_with("s/1 failed: no end within 200ms"));
    gone(&ids);
    assert_eq!(entry(&server, 1)["past_attempts"][0]["reason"], "no end within 200ms");
}

#[test]
fn a_claim_is_renewed_while_the_command_runs() {
    let mut server = Server::start();
    post(&server, &json!({}), &[]);
    let script =
        format!("while ! [ -e {}/go ]; do sleep 0.1; done; echo 7", server.home.path().display());
    let working = Running::start(worker(&server, &["--ttl", "3s", "--once"], &script));
    let claimed = until(&server, 1, |entry| entry["claim"].is_object());
    until(&server, 1, |entry| entry["claim"]["expires_at"] != claimed["claim"]["expires_at"]);
    server.kill();
    server.start_again();
    until(&server, 1, |entry| entry["claim"]["fence"] == claimed["claim"]["fence"]);
    fs::write(server.home.path().join("go"), "").unwrap();
    let (status, _, errors) = working.wait();
    assert!(status.success() && errors.last().unwrap() == "s/1 done", "{errors:?}");
    assert_eq!(entry(&server, 1)["done"]["result"], 7);
}

#[test]
fn several_commands_run_at_once_and_name_their_request() {
    let server = Server::start();
    for _ in 0..4 {
        post(&server, &json!({}), &[]);
    }
    // Each waits for another one that runs at the same time.
    let script = format!(
        "cd {}; touch began-$BLACKBOARD_SEQ; until [ $(ls began-* | wc -l) -ge 2 ]; do sleep 0.05; done; echo here >&2",
        server.home.path().display()
    );
    let done = work(&server, &["--parallel", "2"], &script);
    assert!(done.status.success(), "{}", done.error);
    for seq in 1..=4 {
        assert!(done.error.contains(&format!("s/{seq}: here\n")), "{}", done.error);
        assert!(done.error.contains(&format!("s/{seq} done\n")), "{}", done.error);
    }
}

#[test]
fn a_worker_waits_for_requests_and_sessions() {
    let server = Server::start();
    let working = Running::start(worker(&server, &["--once", "--match", r#"{"kind":"b"}"#], "cat"));
    assert_eq!(working.error(), "session s does not exist yet; waiting for it");
    post(&server, &json!({"kind":"a"}), &[]);
    post(&server, &json!({"kind":"b"}), &[]);
    assert_eq!(working.error(), "s/2 done");
    assert_eq!(entry(&server, 2)["done"]["result"], json!({"kind":"b"}));
}

#[test]
fn a_worker_without_a_command_or_a_name_claims_nothing() {
    let server = Server::start();
    post(&server, &json!({}), &[]);
    let absent = server.run(&["work", "s", "--agent", "W", "--", "no-such-program"]).refusal(2);
    assert!(absent.contains("no-such-program is not a program"), "{absent}");
    assert!(server.run(&["work", "s", "--", "true"]).refusal(2).contains("--agent"));
    let unknown = server.run(&["work", "t", "--agent", "W", "--until-empty", "--", "true"]);
    assert!(unknown.refusal(5).contains("(session-not-found)"));
    assert_eq!(entry(&server, 1).get("claim"), None);
}
