//! Schemas of settings that cannot be derived.

use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::INT64_MAX;
use blackboard_board::{AGENT_STATES_MAX, LABEL_BYTES_MAX, Status};

/// The logs that may have their own limit; `memory` and `messages` cover those of every agent.
pub(crate) const BOUNDED: [&str; 6] =
    ["questions", "requests", "trajectories", "screenshots", "memory", "messages"];

/// The pattern of an age. The server accepts a little more: up to 36500d, in any unit.
const AGE: &str =
    "^0*([1-9][0-9]{0,11}ms|[1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d)$";

/// The pattern of a size with its unit. The server accepts a little more.
const SIZE: &str = "^0*[1-9][0-9]{0,5}(B|KiB|MiB|GiB|TiB)$";

/// The schema of the maximum number of items.
pub(crate) fn max_items() -> Schema {
    let told = "The maximum number of items in a log; the oldest are removed. A number for every log and memory but \
        not for messages, or one for each of them; unlimited if absent";
    let each = each(&Type::Integer.into());
    OneOfBuilder::new().description(Some(told)).item(count(Type::Integer)).item(each).into()
}

/// The schema of a new maximum number of items.
pub(crate) fn max_items_patch() -> Schema {
    let told = "The maximum number of items in a log; the oldest are removed. A number for every log and memory but \
        not for messages, or one for each of them, unlimited for an absent one; null is unlimited";
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let each = each(&SchemaType::from_iter([Type::Integer, Type::Null]));
    let any = OneOfBuilder::new().item(null).item(count(Type::Integer)).item(each);
    any.description(Some(told)).into()
}

fn each(kind: &SchemaType) -> ObjectBuilder {
    let none_else = Some(AdditionalProperties::<Schema>::FreeForm(false));
    let object = ObjectBuilder::new().schema_type(Type::Object).additional_properties(none_else);
    BOUNDED.into_iter().fold(object, |object, log| object.property(log, count(kind.clone())))
}

fn count(kind: impl Into<SchemaType>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(kind)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .maximum(Some(INT64_MAX))
}

/// The schema of the retained history.
pub(crate) fn history() -> Schema {
    let told = "The history retained besides the board: everything younger than an age such as \
        `30d`, a number of revisions, or a size such as `64MiB`; all if absent";
    let any = OneOfBuilder::new().description(Some(told)).item(count(Type::Integer));
    any.item(text(AGE)).item(text(SIZE)).into()
}

/// The schema of a new retention of history.
pub(crate) fn history_patch() -> Schema {
    let told = "The history to retain besides the board: everything younger than an age such as `30d`, a \
        number of revisions, or a size such as `64MiB`; `all` or null is all. Older history is compacted soon after";
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let any = OneOfBuilder::new().description(Some(told)).item(null).item(count(Type::Integer));
    any.item(text("^all$")).item(text(AGE)).item(text(SIZE)).into()
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}

/// The schema of a session's new statuses.
pub(crate) fn agent_states_patch() -> Schema {
    let told = "The statuses that the session's agents may have besides the built-in ones, as one complete \
        list, each with its allowed predecessors and successors; null is none";
    let built_in = Status::BUILT_IN.join("|");
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(LABEL_BYTES_MAX))
        .pattern(Some(format!(r"^(?!({built_in})$)[^\u0000-\u001f\u007f-\u009f]+$")));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(told))
        .property_names(Some(name))
        .additional_properties(Some(RefOr::<Schema>::Ref(Ref::from_schema_name("MovesBody"))))
        .max_properties(Some(AGENT_STATES_MAX))
        .into()
}
