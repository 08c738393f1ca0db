//! Paths of screenshots, memories and the whole state.
//!
//! They are copied from the paths of `{log}` and of a value in the state.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use super::params::agent;
use super::problems::{without_images, without_names, without_paths};

/// The path of a log of the board.
const LOG: &str = "/v1/sessions/{session}/{log}";
/// The path of an entry of a log of the board.
const ENTRY: &str = "/v1/sessions/{session}/{log}/{seq}";
const SCREENSHOTS: &str = "/v1/sessions/{session}/screenshots";
const SCREENSHOT: &str = "/v1/sessions/{session}/screenshots/{seq}";
/// The path of an agent's memory.
pub(in crate::http) const MEMORY: &str = "/v1/sessions/{session}/agents/{agent}/memory";
/// The path of an entry of a memory.
pub(in crate::http) const MEMORY_ENTRY: &str = "/v1/sessions/{session}/agents/{agent}/memory/{seq}";

/// The parameters that only screenshots take.
const OF_SCREENSHOTS: [&str; 3] = ["images", "metadata", "image_path"];

/// The path of a value in the state, in the router's syntax.
const STATE_AT: &str = "/v1/sessions/{session}/state/{*path}";
/// The path of a value in the document, since OpenAPI has no parameter of several segments.
const STATE_AT_DOCUMENTED: &str = "/v1/sessions/{session}/state/{path}";
/// The path of the whole state.
pub(in crate::http) const STATE: &str = "/v1/sessions/{session}/state";

/// The path of the whole state with a trailing slash.
pub(in crate::http) const STATE_SLASH: &str = "/v1/sessions/{session}/state/";

/// Adds the paths of each kind of log, and of the whole state.
pub(in crate::http) fn with_all_kinds(mut document: OpenApi) -> OpenApi {
    if let Some(item) = document.paths.paths.remove(STATE_AT) {
        let paths = &mut document.paths.paths;
        paths.insert(STATE.to_owned(), each(item.clone(), whole_state));
        paths.insert(STATE_AT_DOCUMENTED.to_owned(), item);
    }
    for (log, screenshots, memory) in
        [(LOG, SCREENSHOTS, MEMORY), (ENTRY, SCREENSHOT, MEMORY_ENTRY)]
    {
        let paths = &mut document.paths.paths;
        if let Some(item) = paths.get(log).cloned() {
            paths.insert(log.to_owned(), each(item.clone(), text_log));
            paths.insert(memory.to_owned(), each(item.clone(), of_memory));
            paths.insert(screenshots.to_owned(), each(item, of_screenshots));
        }
    }
    document
}

fn each(mut item: PathItem, change: fn(&mut Operation)) -> PathItem {
    let operations =
        [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
    operations.into_iter().flatten().for_each(change);
    item
}

fn whole_state(operation: &mut Operation) {
    parameters(operation, |name| name != "path");
    let id = operation.operation_id.take();
    operation.operation_id = id.map(|id| id.replace("state", "whole_state"));
    let summary = operation.summary.take();
    operation.summary = summary.map(|summary| summary.replace("a value", "the whole state"));
    operation.responses.responses.values_mut().for_each(without_paths);
}

fn text_log(operation: &mut Operation) {
    parameters(operation, |name| !OF_SCREENSHOTS.contains(&name));
    drop_images(operation);
    operation.responses.responses.values_mut().for_each(without_images);
}

fn of_screenshots(operation: &mut Operation) {
    rename(operation, "screenshots", "screenshot");
    parameters(operation, |name| !["log", "until"].contains(&name));
    operation.responses.responses.values_mut().for_each(without_names);
}

fn of_memory(operation: &mut Operation) {
    text_log(operation);
    parameters(operation, |name| name != "until");
    rename(operation, "memory", "memory_entry");
    for parameter in operation.parameters.iter_mut().flatten() {
        if matches!(parameter, RefOr::T(parameter) if parameter.name == "log") {
            *parameter = agent().into();
        }
    }
    operation.responses.responses.values_mut().for_each(without_names);
}

/// Renames an operation for its kind of log.
fn rename(operation: &mut Operation, log: &str, entry: &str) {
    let tag = if log == "memory" { "memories" } else { log };
    operation.tags = Some(vec![tag.to_owned()]);
    operation.operation_id = operation.operation_id.take().map(|id| match id.as_str() {
        "remove_entries" => format!("remove_from_{log}"),
        id if id.ends_with("_log") => id.replace("log", log),
        id => id.replace("entry", entry),
    });
    let (a_log, an_entry) = match log {
        "memory" => ("a memory", "a memory entry"),
        _ => ("the screenshots", "a screenshot"),
    };
    operation.summary = operation
        .summary
        .take()
        .map(|summary| summary.replace("a log", a_log).replace("an entry", an_entry));
}

fn parameters(operation: &mut Operation, keeps: impl Fn(&str) -> bool) {
    if let Some(parameters) = &mut operation.parameters {
        parameters.retain(
            |parameter| !matches!(parameter, RefOr::T(parameter) if !keeps(&parameter.name)),
        );
    }
}

/// Removes image bodies, which only screenshots take, with their description.
fn drop_images(operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.content.retain(|media_type, _| {
            !media_type.starts_with("image/") && media_type != "multipart/form-data"
        });
    }
    operation.description = operation.description.take().map(|description| {
        let about_images = description.find(" A screenshot may").unwrap_or(description.len());
        description.get(..about_images).unwrap_or_default().to_owned()
    });
}
