//! Schemas of settings that cannot be derived.

use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use crate::board::{AGENT_STATES_MAX, LABEL_BYTES_MAX, Status};

/// The logs that may have a bound of their own, `memory` being that of every agent.
const BOUNDED: [&str; 5] = ["questions", "requests", "trajectories", "screenshots", "memory"];

/// An age. The server takes a little more: up to 36500d, in any unit.
const AGE: &str =
    "^0*([1-9][0-9]{0,11}ms|[1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d)$";

/// A size with its unit. The server takes a little more.
const SIZE: &str = "^0*[1-9][0-9]{0,5}(B|KiB|MiB|GiB|TiB)$";

/// How many items are kept.
pub(crate) fn max_items() -> Schema {
    let told = "How many items its logs keep, the oldest go: a number for every log and every memory, or \
        one for each of them; all where it is absent";
    let each = each(&Type::Integer.into());
    OneOfBuilder::new().description(Some(told)).item(count(Type::Integer)).item(each).into()
}

/// How many items are to be kept.
pub(crate) fn max_items_patch() -> Schema {
    let told = "How many items its logs keep, the oldest go: a number for every log and every memory, or \
        one for each of them, where an absent one keeps all; null is all";
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
        .maximum(Some(usize::MAX))
}

/// How much of a history is kept.
pub(crate) fn history() -> Schema {
    let told = "How much of its history is kept besides the board: what is younger than an age such as \
        `30d`, a number of revisions, or a size such as `64MiB`; all where it is absent";
    let any = OneOfBuilder::new().description(Some(told)).item(count(Type::Integer));
    any.item(text(AGE)).item(text(SIZE)).into()
}

/// How much of a history is to be kept.
pub(crate) fn history_patch() -> Schema {
    let told = "How much of the session's history is kept besides the board, what is older is let go soon \
        after: what is younger than an age such as `30d`, a number of revisions, or a size such as `64MiB`; \
        `all` or null is all";
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let any = OneOfBuilder::new().description(Some(told)).item(null).item(count(Type::Integer));
    any.item(text("^all$")).item(text(AGE)).item(text(SIZE)).into()
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}

/// The statuses that a session is to add.
pub(crate) fn agent_states_patch() -> Schema {
    let told = "The statuses that the session's agents may have besides the built-in ones, all of them \
        together, each with those that it follows and those that follow it; null is none";
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
