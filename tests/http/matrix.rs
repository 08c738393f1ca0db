//! Access matrix: every operation of the document by each kind of caller.
//!
//! An operation that has no row here fails the test, so that none comes without somebody having thought of it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::blobs::digest;
use crate::harness::{Server, blackboard, client};

/// What somebody must have to be let through, by the rules of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it is for everybody.
    Nothing,
    Read,
    Write,
    Admin,
    /// To read, of every session there may be.
    ReadAll,
    /// To read, with the sight of every agent's memory.
    ReadMemories,
    /// To read the memory of agent A, or the messages to it.
    ReadMemoryOfA,
    /// To write the memory of agent A, or to change the messages to it.
    WriteMemoryOfA,
    /// To write the logs of all agents.
    WriteMemories,
    /// To read and to write.
    ReadWrite,
}

use Needs::{
    Admin, Nothing, Read, ReadAll, ReadMemories, ReadMemoryOfA, ReadWrite, Write, WriteMemories,
    WriteMemoryOfA,
};

/// A row: the operation, what it needs, what is sent, and what those get who may.
type Row = (&'static str, Needs, &'static str, u16);

const LINE: &str = "{\"step\":1}";

const BLOB: &str = "blob\n";

/// Whether a path names a session follows from the document. What is sent makes each operation succeed, on a board
/// that `filled` made.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("get_root", Nothing, "", 200),
    ("healthz", Nothing, "", 200),
    ("readyz", Nothing, "", 200),
    ("get_openapi_yaml", Nothing, "", 200),
    ("get_openapi_json", Nothing, "", 200),
    ("find_docs", Nothing, "", 308),
    ("get_docs", Nothing, "", 200),
    ("metrics", ReadAll, "", 200),
    ("list_sessions", Read, "", 200),
    ("list_questions", Read, "", 200),
    ("list_requests", Read, "", 200),
    ("search", Read, "", 200),
    ("follow_sessions", Read, "", 200),
    ("describe_session", Read, "", 200),
    ("put_session", Write, "{}", 200),
    ("delete_session", WriteMemories, "", 200),
    ("fork_session", Write, "{\"to\":\"mine-2\"}", 201),
    ("restore_session", WriteMemories, "{\"at\":1}", 200),
    ("purge_session", Admin, "", 200),
    ("get_blackboard", Read, "", 200),
    ("put_blackboard", Write, "{}", 200),
    ("clear_blackboard", Write, "", 200),
    ("get_prompt", Read, "", 200),
    ("get_questions", Read, "", 200),
    ("append_to_questions", Write, LINE, 201),
    ("replace_questions", Write, "[]", 200),
    ("remove_from_questions", Write, "", 200),
    ("get_question", Read, "", 200),
    ("put_question", Write, LINE, 200),
    ("patch_question", Write, LINE, 200),
    ("delete_question", Write, "", 200),
    ("get_requests", Read, "", 200),
    ("append_to_requests", Write, LINE, 201),
    ("replace_requests", Write, "[]", 200),
    ("remove_from_requests", Write, "", 200),
    ("get_request", Read, "", 200),
    ("put_request", Write, LINE, 200),
    ("patch_request", Write, LINE, 200),
    ("delete_request", Write, "", 200),
    ("get_trajectories", Read, "", 200),
    ("append_to_trajectories", Write, LINE, 201),
    ("replace_trajectories", Write, "[]", 200),
    ("remove_from_trajectories", Write, "", 200),
    ("get_trajectory", Read, "", 200),
    ("put_trajectory", Write, LINE, 200),
    ("patch_trajectory", Write, LINE, 200),
    ("delete_trajectory", Write, "", 200),
    ("get_screenshots", Read, "", 200),
    ("append_to_screenshots", Write, LINE, 201),
    ("replace_screenshots", Write, "[]", 200),
    ("remove_from_screenshots", Write, "", 200),
    ("get_screenshot", Read, "", 200),
    ("put_screenshot", Write, LINE, 200),
    ("patch_screenshot", Write, LINE, 200),
    ("delete_screenshot", Write, "", 200),
    ("get_image", Read, "", 200),
    ("get_blob", Read, "", 200),
    ("put_blob", Write, BLOB, 200),
    ("post_blob", Write, "", 201),
    ("get_memory", ReadMemoryOfA, "", 200),
    ("append_to_memory", WriteMemoryOfA, LINE, 201),
    ("replace_memory", WriteMemoryOfA, "[]", 200),
    ("remove_from_memory", WriteMemoryOfA, "", 200),
    ("get_memory_entry", ReadMemoryOfA, "", 200),
    ("put_memory_entry", WriteMemoryOfA, LINE, 200),
    ("patch_memory_entry", WriteMemoryOfA, LINE, 200),
    ("delete_memory_entry", WriteMemoryOfA, "", 200),
    ("get_memory_cost", ReadMemoryOfA, "", 200),
    ("get_messages", ReadMemoryOfA, "", 200),
    // Anyone may send a message.
    ("append_to_messages", Write, LINE, 201),
    ("replace_messages", WriteMemoryOfA, "[]", 200),
    ("remove_from_messages", WriteMemoryOfA, "", 200),
    ("get_message", ReadMemoryOfA, "", 200),
    ("put_message", WriteMemoryOfA, LINE, 200),
    ("patch_message", WriteMemoryOfA, LINE, 200),
    ("delete_message", WriteMemoryOfA, "", 200),
    ("acknowledge_message", WriteMemoryOfA, "", 200),
    ("get_attention", ReadMemoryOfA, "", 200),
    ("answer_question", Write, "{\"answer\":\"yes\"}", 200),
    ("claim_request", Write, "{\"ttl\":\"60s\"}", 201),
    ("release_request", Write, "", 200),
    ("claim_next_request", ReadWrite, "{}", 200),
    ("finish_request", Write, "{}", 200),
    ("fail_request", Write, "{}", 200),
    ("retry_request", Write, "", 200),
    ("cancel_request", Write, "", 200),
    // Nobody did it yet.
    ("judge_request", Write, "{\"accept\":true}", 409),
    ("get_whole_state", Read, "", 200),
    ("put_whole_state", Write, "{}", 200),
    ("patch_whole_state", Write, "{}", 200),
    ("delete_whole_state", Write, "", 200),
    ("get_state", Read, "", 200),
    ("put_state", Write, "1", 200),
    ("patch_state", Write, "{}", 200),
    ("delete_state", Write, "", 200),
    ("transact", Write, "{\"then\":[{\"put\":\"n\",\"value\":1}]}", 200),
    ("list_agents", Read, "", 200),
    ("delete_agents", WriteMemories, "", 200),
    ("get_agent", Read, "", 200),
    ("put_agent", Write, "{}", 200),
    ("patch_agent", Write, "{}", 200),
    ("delete_agent", WriteMemoryOfA, "", 200),
    ("follow_session", Read, "", 200),
    ("list_checkpoints", Read, "", 200),
    ("get_checkpoint", Read, "", 200),
    ("put_checkpoint", Write, "{\"name\":\"other\"}", 201),
    ("delete_checkpoint", Write, "", 200),
    ("diff_session", Read, "", 200),
    ("audit_session", Read, "", 200),
    ("get_archive", ReadMemories, "", 200),
    ("put_archive", Admin, "", 201),
];

/// Who asks. All but those named otherwise reach every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    NoToken,
    Wrong,
    Expired,
    Revoked,
    Reader,
    Writer,
    Admin,
    /// Agent A, who reads and writes.
    OwnAgent,
    /// Agent B, who reads and writes.
    OtherAgent,
    /// Agent B, who may read the memories of others.
    OtherAgentWithSight,
    /// Somebody who reads and writes other sessions.
    OtherSession,
}

pub(crate) const ALL: [Who; 11] = [
    Who::NoToken,
    Who::Wrong,
    Who::Expired,
    Who::Revoked,
    Who::Reader,
    Who::Writer,
    Who::Admin,
    Who::OwnAgent,
    Who::OtherAgent,
    Who::OtherAgentWithSight,
    Who::OtherSession,
];

/// What the rules say, without looking at how the server decides: the status of a refusal, or none.
pub(crate) fn refusal(needs: Needs, in_session: bool, who: Who) -> Option<u16> {
    use Who::{
        Expired, NoToken, OtherAgent, OtherAgentWithSight, OtherSession, OwnAgent, Reader, Revoked,
        Writer, Wrong,
    };
    if needs == Nothing {
        return None;
    }
    let reads = matches!(needs, Read | ReadAll | ReadMemories | ReadMemoryOfA);
    match who {
        NoToken | Wrong | Expired | Revoked => Some(401),
        Who::Admin => None,
        _ if needs == Admin => Some(403),
        Reader => (!reads).then_some(403),
        Writer => (reads || needs == ReadWrite).then_some(403),
        OtherSession if in_session => Some(404),
        OtherSession => (needs == ReadAll).then_some(403),
        OwnAgent => matches!(needs, ReadMemories | WriteMemories).then_some(403),
        OtherAgent => {
            let foreign = [ReadMemories, ReadMemoryOfA, WriteMemoryOfA, WriteMemories];
            foreign.contains(&needs).then_some(403)
        }
        OtherAgentWithSight => [WriteMemoryOfA, WriteMemories].contains(&needs).then_some(403),
    }
}

/// Runs `blackboard token` on the running server's directory, and gives what it prints. A created token may be the first
/// one, whatever its scopes.
pub(crate) fn token(server: &Server, arguments: &[&str]) -> String {
    let anyway: &[&str] = if arguments.first() == Some(&"create") { &["--anyway"] } else { &[] };
    let mut command: Command = blackboard(&[&["token"], arguments, anyway].concat());
    command.args(server.place());
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    server.settle();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) struct House {
    server: Server,
    /// Sends no token but those that it is told to.
    http: Client,
    tokens: BTreeMap<Who, Option<String>>,
    archive: String,
}

impl House {
    pub(crate) async fn new() -> Self {
        let server = Server::start_with(&["--token-rate", "0"]);
        let made = |arguments: &[&str]| Some(token(&server, &[&["create"], arguments].concat()));
        let agent =
            |name, agent, scopes| made(&["--name", name, "--agent", agent, "--scopes", scopes]);
        let tokens = ALL.into_iter().map(|who| {
            let token = match who {
                Who::NoToken => None,
                Who::Wrong => Some(format!("bb_{}", "A".repeat(43))),
                Who::Expired => {
                    made(&["--name", "expired", "--scopes", "admin", "--expires", "1ms"])
                }
                Who::Revoked => made(&["--name", "revoked", "--scopes", "admin"]),
                Who::Reader => made(&["--name", "reader", "--scopes", "read"]),
                Who::Writer => made(&["--name", "writer", "--scopes", "write"]),
                Who::Admin => made(&["--name", "admin", "--scopes", "admin"]),
                Who::OwnAgent => agent("a", "A", "read,write"),
                Who::OtherAgent => agent("b", "B", "read,write"),
                Who::OtherAgentWithSight => agent("c", "B", "read,write,memory:read"),
                Who::OtherSession => made(&["--name", "other", "--sessions", "other-*"]),
            };
            (who, token)
        });
        let tokens = tokens.collect();
        token(&server, &["revoke", "revoked"]);
        let mut house = Self { server, http: client(), tokens, archive: String::new() };
        house.fill("source").await;
        let archive =
            house.send(Who::Admin, Method::GET, "/v1/sessions/source/archive", "", "").await;
        house.archive = archive.is(200).text().to_owned();
        house
    }

    pub(crate) fn request(&self, who: Who, method: Method, path: &str) -> RequestBuilder {
        let request =
            self.http.request(method, format!("http://{}{path}", self.server.authority()));
        match &self.tokens[&who] {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(
        &self,
        who: Who,
        method: Method,
        path: &str,
        media_type: &str,
        body: &str,
    ) -> Answer {
        let mut request = self.request(who, method, path);
        if !body.is_empty() {
            request = request.header("content-type", media_type).body(body.to_owned());
        }
        // Who claims a request needs a name; a token that is bound to an agent has another.
        ask(request.header("x-agent-id", "A")).await
    }

    /// A board on which every operation finds what it is for.
    pub(crate) async fn fill(&self, session: &str) {
        let image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";
        let screenshot = format!("{{\"image_str\":\"{image}\"}}");
        for (method, tail, body) in [
            (Method::PUT, "", "{}"),
            (Method::POST, "/questions", "{\"question\":\"?\"}"),
            (Method::POST, "/requests", LINE),
            (Method::POST, "/trajectories", LINE),
            (Method::POST, "/screenshots", screenshot.as_str()),
            (Method::POST, "/agents/A/memory", LINE),
            (Method::POST, "/agents/A/messages", LINE),
            (Method::PUT, "/state/place", "{}"),
            (Method::POST, "/checkpoints", "{\"name\":\"here\"}"),
            (Method::POST, "/blobs", BLOB),
        ] {
            let path = format!("/v1/sessions/{session}{tail}");
            self.send(Who::Admin, method, &path, "application/json", body).await.succeeded();
        }
    }

    /// One operation by one caller, on a board of its own.
    async fn check(&self, row: Row, method: &str, path: &str, who: Who, session: &str) {
        let (id, needs, body, success) = row;
        let in_session = path.contains("{session}");
        let method: Method = method.to_uppercase().parse().unwrap();
        let path = filled_path(id, path, session);
        let body = match id {
            "put_archive" => self.archive.clone(),
            "fork_session" => format!("{{\"to\":\"{session}-2\"}}"),
            _ => body.to_owned(),
        };
        let media_type = match id {
            "put_archive" => "application/x-ndjson",
            _ if method == Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        if in_session && id != "put_archive" {
            self.fill(session).await;
        }
        let ends_claim = ["release_request", "fail_request"].contains(&id);
        if ends_claim && refusal(needs, in_session, who).is_none() {
            let claim = path.replace("/failed", "/claim");
            self.send(who, Method::PUT, &claim, "application/json", "{\"ttl\":\"60s\"}")
                .await
                .is(201);
        }
        let expected = refusal(needs, in_session, who).unwrap_or(success);
        if id.starts_with("follow_") && expected == 200 {
            // It does not end by itself.
            let request = self.request(who, method, &path);
            assert_eq!(request.send().await.unwrap().status(), 200, "{id} by {who:?}");
            return;
        }
        let answer = self.send(who, method, &path, media_type, &body).await;
        answer.is(expected);
        match expected {
            401 => assert!(answer.header("www-authenticate").starts_with("Bearer"), "{answer}"),
            404 => assert_eq!(answer.header("blackboard-revision"), "", "{answer}"),
            _ => {}
        }
    }
}

fn filled_path(id: &str, path: &str, session: &str) -> String {
    let path = path
        .replace("{session}", session)
        .replace("{seq}", "1")
        .replace("{agent}", "A")
        .replace("{checkpoint}", "here")
        .replace("{sha256}", &digest(BLOB.as_bytes()))
        .replace("{path}", "place");
    match id {
        "diff_session" => format!("{path}?from=1"),
        "search" => format!("{path}?q=word"),
        _ => path,
    }
}

/// The operations of the document: id, method, path.
fn operations(document: &Value) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in ["get", "put", "post", "patch", "delete"] {
            if let Some(id) = item[method]["operationId"].as_str() {
                found.push((id.to_owned(), method.to_owned(), path.clone()));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_lets_through_exactly_those_allowed() {
    let house = House::new().await;
    let document = house.server.get("/openapi.json").await.is(200).json();
    let operations = operations(&document);
    let unknown: Vec<_> =
        operations.iter().filter(|(id, ..)| !ROWS.iter().any(|row| row.0 == id)).collect();
    assert!(unknown.is_empty(), "who may do this? {unknown:?}");
    let gone: Vec<_> =
        ROWS.iter().filter(|row| !operations.iter().any(|(id, ..)| id == row.0)).collect();
    assert!(gone.is_empty(), "no operations any more: {gone:?}");
    for (number, (id, method, path)) in operations.iter().enumerate() {
        let row = *ROWS.iter().find(|row| row.0 == id).unwrap();
        for who in ALL {
            let session = format!("mine-{number}-{}", who as u8);
            house.check(row, method, path, who, &session).await;
        }
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_refused_by_rights() {
    let server = Server::start();
    let token = token(&server, &["create", "--name", "a"]);
    server.get("/v1/nothing").await.problem(404, "route-not-found");
    let delete = || server.to(Method::DELETE, "/v1/sessions");
    ask(delete()).await.problem(401, "unauthorized");
    ask(delete().bearer_auth(token)).await.problem(405, "method-not-allowed");
}
