//! Answers, with the form that every answer has: checked before a test sees them.

use std::fmt;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

pub(crate) struct Answer {
    method: Method,
    url: Url,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// Sends a request and checks the form of what comes back.
pub(crate) async fn ask(request: RequestBuilder) -> Answer {
    let (client, request) = request.build_split();
    let request = request.expect("a request");
    let (method, url) = (request.method().clone(), request.url().clone());
    let response =
        client.execute(request).await.unwrap_or_else(|error| panic!("{method} {url}: {error:?}"));
    let status = response.status();
    let headers = response.headers().clone();
    let body = response
        .bytes()
        .await
        .unwrap_or_else(|error| panic!("the body of {method} {url}: {error:?}"))
        .to_vec();
    let answer = Answer { method, url, status, headers, body };
    answer.check_form();
    answer
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(2000).collect();
        let (method, url, status) = (&self.method, &self.url, self.status);
        write!(f, "{method} {url} -> {status} {:?}\n{body}", self.headers)
    }
}

impl Answer {
    fn check_form(&self) {
        assert_ne!(self.status, 500, "an internal error: {self}");
        let media_type = self.header("content-type").to_owned();
        let is_json = media_type.starts_with("application/json")
            || media_type.starts_with("application/problem+json");
        let plain = self.header("content-encoding").is_empty();
        if is_json && plain && !self.body.is_empty() {
            assert_eq!(self.body.last(), Some(&b'\n'), "no newline ends {self}");
        }
        if self.status.is_client_error() || self.status.is_server_error() {
            self.check_problem(&media_type);
        } else if self.url.path().starts_with("/v1/sessions/") {
            self.check_session_answer();
        }
        if self.status == 412 {
            self.revision();
        }
    }

    fn check_problem(&self, media_type: &str) {
        assert!(
            media_type.starts_with("application/problem+json"),
            "a refusal without a problem: {self}"
        );
        let problem = self.json();
        for member in ["type", "title", "detail", "instance", "code"] {
            let text = problem[member].as_str();
            assert!(text.is_some_and(|text| !text.is_empty()), "no {member}: {self}");
        }
        assert_eq!(problem["status"], self.status.as_u16(), "{self}");
    }

    fn check_session_answer(&self) {
        self.revision();
        let is_read = self.method == Method::GET || self.method == Method::HEAD;
        // Nothing is there, as the reader wanted it; or nothing is there to claim.
        if self.status == 204 && (is_read || self.url.path().ends_with("/requests/claim")) {
            return;
        }
        if self.method == Method::OPTIONS {
            return;
        }
        if is_read || (self.method != Method::DELETE && self.status.is_success()) {
            let tag = self.etag();
            assert!(tag.starts_with('"') && tag.ends_with('"'), "no strong tag: {self}");
        }
        if is_read {
            return;
        }
        let body = self.json();
        assert!(body["revision"].is_u64(), "a write names no revision: {self}");
        if !self.header("etag").is_empty() {
            let tag = body["etag"].as_str().unwrap_or_default();
            assert!(tag.starts_with('"') && tag.ends_with('"'), "no tag in the body: {self}");
        }
        let several = body["entries"].as_array().is_some_and(|entries| entries.len() > 1);
        if self.status == 201 && !(several && self.method == Method::POST) {
            let location = self.header("location");
            assert!(location.contains("/v1/sessions/"), "no Location: {self}");
        }
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    /// 200, or 201 where the contract leaves open whether something was made.
    #[track_caller]
    pub(crate) fn succeeded(&self) -> &Self {
        assert!(matches!(self.status.as_u16(), 200 | 201), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.is(status).json();
        assert_eq!(problem["code"], code, "{self}");
        problem
    }

    /// A refusal whose code the contract leaves open.
    #[track_caller]
    pub(crate) fn refused(&self) -> &Self {
        assert!(self.status.is_client_error(), "not refused: {self}");
        self
    }

    /// Taken or refused, by a server that works.
    #[track_caller]
    pub(crate) fn not_a_fault(&self) -> &Self {
        assert!(!self.status.is_server_error(), "a fault: {self}");
        self
    }

    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|_| panic!("no UTF-8: {self}"))
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self}"))
    }

    /// A header's text, empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or("?"))
    }

    /// The tag in the body of a write, for the next write to the same address.
    #[track_caller]
    pub(crate) fn next_tag(&self) -> String {
        let body = self.succeeded().json();
        body["etag"].as_str().unwrap_or_else(|| panic!("no tag in the body: {self}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn etag(&self) -> String {
        let tag = self.header("etag");
        assert!(!tag.is_empty(), "no ETag: {self}");
        tag.to_owned()
    }

    /// The session's revision that this answer shows.
    #[track_caller]
    pub(crate) fn revision(&self) -> u64 {
        let revision = self.header("blackboard-revision").parse();
        revision.unwrap_or_else(|_| panic!("no Blackboard-Revision: {self}"))
    }

    /// The seqs of the entries in the answer, in its order.
    #[track_caller]
    pub(crate) fn seqs(&self) -> Vec<u64> {
        let body = self.json();
        let entries = body["entries"].as_array();
        let entries = entries.unwrap_or_else(|| panic!("no entries: {self}"));
        entries.iter().filter_map(|entry| entry["seq"].as_u64()).collect()
    }

    /// The items of the entries in the answer, in its order.
    #[track_caller]
    pub(crate) fn items(&self) -> Vec<Value> {
        let body = self.json();
        let entries = body["entries"].as_array();
        let entries = entries.unwrap_or_else(|| panic!("no entries: {self}"));
        entries.iter().map(|entry| entry["item"].clone()).collect()
    }
}
