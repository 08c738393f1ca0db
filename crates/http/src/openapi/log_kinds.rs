//! Paths of each kind of log, and of the whole state.
//!
//! One handler serves all logs. Their paths are copied from those of `{log}`, with the names, parameters and examples of
//! each kind. The whole state's are copied from those of a value in the state.

use serde_json::{Value, json};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::Object;
use utoipa::openapi::{OpenApi, RefOr};

use super::problems::{without_dependants, without_images, without_names, without_paths};
use blackboard_api::schema::shapes::one_of;

/// The path of a log in the router.
const LOG: &str = "/v1/sessions/{session}/{log}";
/// The path of an entry in the router.
const ENTRY: &str = "/v1/sessions/{session}/{log}/{seq}";
/// The path of an agent's memory.
pub(crate) const MEMORY: &str = "/v1/sessions/{session}/agents/{agent}/memory";
/// The path of an entry of a memory.
pub(crate) const MEMORY_ENTRY: &str = "/v1/sessions/{session}/agents/{agent}/memory/{seq}";

/// A kind of log in the document.
struct Kind {
    /// The log's path within its session.
    path: &'static str,
    /// The tag of its operations.
    tag: &'static str,
    /// The log and one of its entries in operation ids.
    ids: (&'static str, &'static str),
    /// The log and one of its entries in summaries.
    names: (&'static str, &'static str),
    /// The parameters that have a meaning for some kinds only, and have one here.
    takes: &'static [&'static str],
    /// An item as JSON.
    example: &'static str,
}

/// The parameters that have a meaning for some kinds only.
///
/// `agent` is not named for a log of an agent: some generators cannot have it beside the agent of the path. The server takes it.
const SPECIAL: [&str; 11] = [
    "agent",
    "images",
    "metadata",
    "image_path",
    "until",
    "pending",
    "expires",
    "default",
    "attempts",
    "trajectory_key",
    "unacked",
];

const KINDS: [Kind; 6] = [
    Kind {
        path: "questions",
        tag: "questions",
        ids: ("questions", "question"),
        names: ("the questions", "a question"),
        takes: &["agent", "until", "pending", "expires", "default"],
        example: r#"{"question":"Which printer?"}"#,
    },
    Kind {
        path: "requests",
        tag: "requests",
        ids: ("requests", "request"),
        names: ("the requests", "a request"),
        takes: &["agent", "until", "pending", "attempts"],
        example: r#"{"request":"Print the report","device":"windows"}"#,
    },
    Kind {
        path: "trajectories",
        tag: "trajectories",
        ids: ("trajectories", "trajectory"),
        names: ("the trajectories", "a trajectory"),
        takes: &["agent", "trajectory_key"],
        example: r#"{"step":1,"agent":"AppAgent","action":"open the print dialog","status":"CONTINUE"}"#,
    },
    Kind {
        path: "screenshots",
        tag: "screenshots",
        ids: ("screenshots", "screenshot"),
        names: ("the screenshots", "a screenshot"),
        takes: &["agent", "images", "metadata", "image_path"],
        example: r#"{"metadata":"Print dialog","image_path":"dialog.gif","image_str":"data:image/gif;base64,R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7"}"#,
    },
    Kind {
        path: "agents/{agent}/memory",
        tag: "memories",
        ids: ("memory", "memory_entry"),
        names: ("a memory", "a memory entry"),
        takes: &["trajectory_key"],
        example: r#"{"step":1,"thought":"The printer is offline.","cost":0.02}"#,
    },
    Kind {
        path: "agents/{agent}/messages",
        tag: "messages",
        ids: ("messages", "message"),
        names: ("the messages to an agent", "a message"),
        takes: &["unacked"],
        example: r#"{"text":"The report is printed.","thread":"report"}"#,
    },
];

/// The path of a value in the state, in the router's syntax.
const STATE_AT: &str = "/v1/sessions/{session}/state/{*path}";
/// The path of a value in the document, since OpenAPI has no parameter of several segments.
const STATE_AT_DOCUMENTED: &str = "/v1/sessions/{session}/state/{path}";
/// The path of the whole state.
pub(crate) const STATE: &str = "/v1/sessions/{session}/state";

/// The path of the whole state with a trailing slash.
pub(crate) const STATE_SLASH: &str = "/v1/sessions/{session}/state/";

/// Adds the paths of each kind of log, and of the whole state.
pub(crate) fn with_all_kinds(mut document: OpenApi) -> OpenApi {
    if let Some(item) = document.paths.paths.remove(STATE_AT) {
        let paths = &mut document.paths.paths;
        paths.insert(STATE.to_owned(), each(item.clone(), whole_state));
        paths.insert(STATE_AT_DOCUMENTED.to_owned(), item);
    }
    for router in [LOG, ENTRY] {
        let paths = &mut document.paths.paths;
        if let Some(item) = paths.remove(router) {
            for kind in &KINDS {
                let path = router.replace("{log}", kind.path);
                paths.insert(path, each(item.clone(), |operation| kind.take(operation)));
            }
        }
    }
    document
}

fn each(mut item: PathItem, change: impl FnMut(&mut Operation)) -> PathItem {
    let operations =
        [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
    operations.into_iter().flatten().for_each(change);
    item
}

fn whole_state(operation: &mut Operation) {
    // The root is an object: neither a number nor an array.
    if operation.operation_id.as_deref() == Some("patch_state")
        && let Some(RefOr::T(body)) = &mut operation.request_body
    {
        body.content.remove("application/json");
    }
    let id = operation.operation_id.take();
    operation.operation_id = id.map(|id| id.replace("state", "whole_state"));
    let summary = operation.summary.take();
    operation.summary = summary.map(|summary| summary.replace("a value", "the whole state"));
    operation.responses.responses.values_mut().for_each(without_paths);
}

impl Kind {
    /// Makes an operation on any log one on this kind.
    fn take(&self, operation: &mut Operation) {
        self.rename(operation);
        parameters(operation, |name| !SPECIAL.contains(&name) || self.takes.contains(&name));
        operation.responses.responses.values_mut().for_each(without_names);
        if self.path != "requests" {
            operation.responses.responses.values_mut().for_each(without_dependants);
            // A page's `after` is a cursor in each log; a POST's is the plan of a request.
            let posts = operation.request_body.is_some();
            parameters(operation, |name| name != "after" || !posts);
        }
        if self.path != "screenshots" {
            drop_images(operation);
            operation.responses.responses.values_mut().for_each(without_images);
        }
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter
                && parameter.name == "until"
            {
                parameter.schema = Some(self.until().into());
            }
        }
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            let item: Value = serde_json::from_str(self.example).unwrap_or_default();
            set_example(body, &item);
        }
    }

    /// Returns the schema of `until`.
    fn until(&self) -> Object {
        match self.path {
            "questions" => one_of(["answered"]),
            _ => one_of(["claimed", "done", "failed", "cancelled", "ended"]),
        }
    }

    /// Renames an operation.
    fn rename(&self, operation: &mut Operation) {
        let ((log, entry), (a_log, an_entry)) = (self.ids, self.names);
        operation.tags = Some(vec![self.tag.to_owned()]);
        operation.operation_id = operation.operation_id.take().map(|id| match id.as_str() {
            "remove_entries" => format!("remove_from_{log}"),
            id if id.ends_with("_log") => id.replace("log", log),
            id => id.replace("entry", entry),
        });
        operation.summary = operation
            .summary
            .take()
            .map(|summary| summary.replace("a log", a_log).replace("an entry", an_entry));
    }
}

/// Sets the examples of a request body: an item, a list of items, or a patch.
fn set_example(body: &mut RequestBody, item: &Value) {
    let is_patch = body.content.contains_key("application/merge-patch+json");
    for (media_type, content) in &mut body.content {
        let RefOr::T(content) = content else { continue };
        let is_list = match &content.schema {
            Some(RefOr::Ref(schema)) => schema.ref_location.ends_with("/ItemArray"),
            Some(RefOr::T(_)) | None => false,
        };
        let example = match media_type.as_str() {
            "application/x-ndjson" | "application/jsonl" => Value::String(format!("{item}\n")),
            "application/json" if is_list => json!([item]),
            "application/json" if is_patch => json!({"note": "checked"}),
            "application/json" => item.clone(),
            "application/merge-patch+json" => json!({"note": "checked"}),
            "application/json-patch+json" => {
                json!([{"op": "add", "path": "/note", "value": "checked"}])
            }
            _ => continue,
        };
        content.example = Some(example);
    }
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
