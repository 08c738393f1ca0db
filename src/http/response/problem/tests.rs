//! Tests of the JSON form of problems.

use serde_json::{Value, json};

use super::*;

fn json_of(problem: Problem) -> Value {
    let text = problem.into_json(RequestId::new());
    assert!(text.ends_with("}\n"));
    serde_json::from_str(&text).expect("a problem is JSON")
}

#[test]
fn a_problem_has_the_members_of_the_contract() {
    let id = RequestId::new();
    let problem = Problem::new(Code::SessionNotFound, "There is no session \"a\".");
    let json: Value = serde_json::from_str(&problem.into_json(id)).expect("JSON");
    assert_eq!(
        json,
        json!({
            "type": "urn:blackboard:problem:session-not-found",
            "title": "Session not found",
            "status": 404,
            "detail": "There is no session \"a\".",
            "instance": format!("urn:uuid:{id}"),
            "code": "session-not-found",
        })
    );
}

#[test]
fn faults_and_members_stand_in_the_document() {
    let current = RawValue::from_string("{\"b\":1E5, \"a\":1.0}".into()).expect("JSON");
    let refusal = Refusal::new(Code::UnsupportedItem, "No.")
        .fault(Fault { pointer: Some("/1".into()), line: None, detail: "A number.".into() })
        .member("current", &current)
        .member("outcome", "unknown");
    let text = Problem::from(refusal).into_json(RequestId::new());
    assert!(text.contains(r#""current":{"b":1E5, "a":1.0}"#), "{text}");
    assert!(text.contains(r#""outcome":"unknown""#), "{text}");
    assert!(text.contains(r#""errors":[{"pointer":"/1","detail":"A number."}]"#));
}

#[test]
fn every_503_says_when_to_come_back() {
    for code in
        [Code::Overloaded, Code::StorePoisoned, Code::StoreUnavailable, Code::RevisionNotReached]
    {
        let problem = Problem::new(code, "Later.");
        assert_eq!(json_of(problem.clone())["retryable"], true);
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }
    let full = Problem::new(Code::StoreFull, "Full.").into_response();
    assert_eq!(full.status(), StatusCode::INSUFFICIENT_STORAGE);
}

#[test]
fn a_cause_never_leaves() {
    let problem = Problem::new(Code::Internal, "Failed.").cause(std::io::Error::other("secret"));
    assert!(!problem.into_json(RequestId::new()).contains("secret"));
}
