//! What the OpenAPI document says besides the routes: the problems of each kind of route, and the form
//! of bodies that are never built as values.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::problem;
use crate::board::Code;

/// The problems of every route.
pub(super) struct EdgeProblems;

/// The problems of a route that reads.
pub(super) struct ReadProblems;

/// The problems of a route that writes.
pub(super) struct WriteProblems;

const EDGE: [Code; 6] = [
    Code::InvalidEncoding,
    Code::InvalidParameter,
    Code::UnknownParameter,
    Code::Forbidden,
    Code::UnknownHost,
    Code::Internal,
];

const READ: [Code; 7] = [
    Code::InvalidName,
    Code::RouteNotFound,
    Code::SessionNotFound,
    Code::EntryNotFound,
    Code::NoImage,
    Code::StoreUnavailable,
    Code::RevisionNotReached,
];

const WRITE: [Code; 25] = [
    Code::InvalidJson,
    Code::InvalidName,
    Code::RouteNotFound,
    Code::SessionNotFound,
    Code::EntryNotFound,
    Code::RequestTimeout,
    Code::PreconditionFailed,
    Code::ConditionNotMet,
    Code::BodyTooLarge,
    Code::ItemTooLarge,
    Code::CommitTooLarge,
    Code::UnsupportedMediaType,
    Code::UnsupportedItem,
    Code::UnsupportedValue,
    Code::TooDeep,
    Code::NotAnImage,
    Code::UnknownField,
    Code::InvalidField,
    Code::ArrayRequired,
    Code::Overloaded,
    Code::StorePoisoned,
    Code::StoreUnavailable,
    Code::SessionFull,
    Code::StoreFull,
    Code::Internal,
];

impl IntoResponses for EdgeProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        responses(&[&EDGE])
    }
}

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = responses(&[&EDGE, &READ]);
        let known = ResponseBuilder::new().description("The client's copy is the present one");
        let status = StatusCode::NOT_MODIFIED.as_u16().to_string();
        all.insert(status, known.build().into());
        all
    }
}

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        responses(&[&EDGE, &WRITE])
    }
}

/// A response for each status of these codes, which it names.
fn responses(codes: &[&[Code]]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for code in codes.iter().flat_map(|codes| codes.iter()) {
        let names = by_status.entry(problem::status(*code).as_u16().to_string()).or_default();
        if !names.contains(&code.as_str()) {
            names.push(code.as_str());
        }
    }
    let response = |names: Vec<&str>| {
        let schema = Ref::from_schema_name("ProblemBody");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        ResponseBuilder::new()
            .description(names.join(", "))
            .content(problem::MEDIA_TYPE, content)
            .build()
    };
    by_status.into_iter().map(|(status, names)| (status, response(names).into())).collect()
}

/// A log of the board.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the document's form of a part of the path")]
pub(super) enum BoardLog {
    Questions,
    Requests,
    Trajectories,
    Screenshots,
}

/// From the oldest, or from the newest.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the document's form of a parameter")]
pub(super) enum OrderName {
    Asc,
    Desc,
}

/// What stands for a stored image: its data URL, its address, or nothing.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the document's form of a parameter")]
pub(super) enum ImagesName {
    Inline,
    Url,
    None,
}

/// An item: any JSON object. A string stands for the object `{"text": …}`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) enum ItemBody {
    #[schema(value_type = Object)]
    Object(Value),
    Text(String),
}

/// Items, all or none.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) struct ItemArray(Vec<ItemBody>);

/// One item, or many.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) enum ItemsBody {
    One(ItemBody),
    Many(Vec<ItemBody>),
}

/// The operations of a JSON Patch (RFC 6902), in order.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) struct JsonPatchBody(Vec<JsonPatchOperation>);

/// One operation of a JSON Patch.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) struct JsonPatchOperation {
    op: JsonPatchVerb,
    /// A JSON pointer (RFC 6901).
    path: String,
    /// Where to move or copy from.
    #[schema(required = false, nullable = false)]
    from: Option<String>,
    /// What to add, to put in its place, or to find there.
    #[schema(required = false)]
    value: Option<Value>,
}

/// What an operation does.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the document's form of a body that is kept as text")]
pub(super) enum JsonPatchVerb {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

/// A screenshot as a form.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of a body that is read part by part")]
pub(super) struct ScreenshotForm {
    /// The image's bytes; their type is the part's, or is told from the bytes.
    #[schema(format = Binary, value_type = String)]
    image: Vec<u8>,
    /// What belongs to it, as JSON.
    #[schema(required = false, nullable = false)]
    metadata: Option<String>,
    /// A label; the file's name unless it is sent.
    #[schema(required = false, nullable = false)]
    image_path: Option<String>,
}

/// Bytes, which have no JSON form.
pub(super) struct Bytes;

impl ToSchema for Bytes {}

impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue).into()
    }
}
