//! What operations have by convention: parameters of the path, conditions, bodies that may be omitted, headers of answers.

use utoipa::PartialSchema as _;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, PathItem};
use utoipa::openapi::response::Response;
use utoipa::openapi::{OpenApi, RefOr, Required};

use super::headers::{TAG, required, tag_header};
use super::params::{in_path, of_ranges, of_reads, of_writes};

/// The header that each answer about a session has.
const REVISION: &str = "Blackboard-Revision";

/// The end of the description of a body that may be omitted.
const MAY_BE_OMITTED: &str = "the body may be omitted";

/// Headers that an answer has only on request.
const ON_DEMAND: [&str; 2] = ["Blackboard-Tokens", "Blackboard-Truncated"];

/// Adds what an operation's path, method and answers imply. An answer that names a header keeps its description.
pub(crate) fn with_conventions(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let PathItem { get, put, post, patch, delete, .. } = item;
        if let Some(read) = get {
            let conditions = conditions(read);
            complete(path, read, conditions, "The revision shown");
        }
        for write in [put, post, patch].into_iter().flatten() {
            complete(path, write, of_writes(false), "The session's revision");
        }
        if let Some(removal) = delete {
            complete(path, removal, of_writes(true), "The session's revision");
        }
    }
    document
}

/// Returns the conditions that a read takes: where its answer has a tag, and where it has a part.
fn conditions(read: &mut Operation) -> Vec<Parameter> {
    let has_tag = answers(read).any(|answer| answer.headers.contains_key("ETag"));
    let has_ranges = read.responses.responses.contains_key("206");
    let tags = has_tag.then(of_reads).into_iter().flatten();
    tags.chain(has_ranges.then(of_ranges).into_iter().flatten()).collect()
}

fn complete(path: &str, operation: &mut Operation, conditions: Vec<Parameter>, revision: &str) {
    let own = operation.parameters.take().into_iter().flatten();
    let all = in_path(path).map(RefOr::from).chain(own);
    let all: Vec<_> = all.chain(conditions.into_iter().map(RefOr::from)).collect();
    operation.parameters = (!all.is_empty()).then_some(all);
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && body.description.as_ref().is_some_and(|told| told.ends_with(MAY_BE_OMITTED))
    {
        body.required = Some(Required::False);
    }
    for answer in answers(operation) {
        if path.contains("{session}") {
            let header = HeaderBuilder::new().schema(Some(u64::schema()));
            let header = || header.description(Some(revision)).build().into();
            answer.headers.entry(REVISION.to_owned()).or_insert_with(header);
        }
        if answer.headers.contains_key("ETag") {
            answer.headers.insert(TAG.to_owned(), tag_header().into());
        }
        for (name, header) in &mut answer.headers {
            if let RefOr::T(header) = header
                && !ON_DEMAND.contains(&name.as_str())
            {
                *header = required(header.clone());
            }
        }
    }
}

/// Returns the answers that an operation describes itself; it refers to its refusals.
fn answers(operation: &mut Operation) -> impl Iterator<Item = &mut Response> {
    operation.responses.responses.values_mut().filter_map(|response| match response {
        RefOr::T(answer) => Some(answer),
        RefOr::Ref(_) => None,
    })
}
