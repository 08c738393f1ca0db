//! Whole view of a session, to compare before and after a rejected write.

use reqwest::RequestBuilder;
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};

const VIEWS: [&str; 8] = [
    "",
    "blackboard?include=state",
    "questions",
    "requests",
    "trajectories",
    "state",
    "agents?seen=true",
    "agents/A/memory",
];

/// Each view's status, tag and text; of what is not there only the status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole(Vec<(&'static str, u16, String, String)>);

impl Whole {
    pub(crate) async fn of(board: &Board) -> Self {
        let mut views = Vec::new();
        for tail in VIEWS {
            let answer = board.get(tail).await;
            let found = answer.status() == 200;
            let (tag, text) =
                if found { (answer.etag(), answer.text()) } else { Default::default() };
            views.push((tail, answer.status(), tag, text.to_owned()));
        }
        Self(views)
    }
}

/// Refused so, and the session is as it was, or still is not.
pub(crate) async fn refuses(
    board: &Board,
    request: RequestBuilder,
    status: u16,
    code: &str,
) -> Answer {
    let before = Whole::of(board).await;
    let answer = ask(request).await;
    answer.problem(status, code);
    assert_eq!(Whole::of(board).await, before, "{answer}");
    answer
}

/// Where the first fault of a refused body stands.
#[track_caller]
pub(crate) fn pointer(refused: &Answer) -> String {
    let problem = refused.json();
    let pointer = problem["errors"][0]["pointer"].as_str();
    pointer.unwrap_or_else(|| panic!("no pointer: {refused}")).to_owned()
}

/// What is found where a 201 says that something was made.
pub(crate) async fn made_at(server: &Server, made: &Answer) -> Answer {
    let location = made.is(201).header("location");
    let path = location.find("/v1/").map(|at| &location[at..]);
    server.get(path.unwrap_or_else(|| panic!("no address: {made}"))).await
}

/// The answer's body without its tag. It must name the revision that its header names.
#[track_caller]
pub(crate) fn receipt(written: &Answer) -> Value {
    let mut body = written.succeeded().json();
    assert_eq!(body["revision"], written.revision(), "{written}");
    let members = body.as_object_mut().expect("an object");
    members.remove("etag");
    for entry in members.get_mut("entries").and_then(Value::as_array_mut).into_iter().flatten() {
        entry.as_object_mut().expect("an entry").remove("etag");
    }
    body
}
