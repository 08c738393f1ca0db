//! Schemas of prompt profiles, with the bounds of their reader.

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::{PROMPT_PART, name, pattern, unsigned};
use crate::board::{
    HEADING_BYTES_MAX, PROFILES_MAX, PROMPT_LATEST_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX,
    PROMPT_SCREENSHOTS_MAX, PROMPT_TOKENS_MAX, PromptFormat,
};

/// The headings that may be others than the original's.
const HEADINGS: [&str; 6] =
    ["blackboard", "questions", "requests", "trajectories", "state", "memory"];

/// The profiles that a session is to have.
pub(crate) fn profiles_patch() -> Schema {
    let told = "What the session's prompts may be asked for by name, all profiles together, of at most 256 KiB \
        in all; null is none";
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(told))
        .property_names(Some(name()))
        .additional_properties(Some(RefOr::<Schema>::Ref(Ref::from_schema_name(
            "PromptProfileBody",
        ))))
        .max_properties(Some(PROFILES_MAX))
        .into()
}

/// For which models a prompt is written.
pub(crate) fn prompt_format() -> Object {
    let names = PromptFormat::NAMED.map(|(name, _)| name);
    let format = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    format.description(Some("For which models it is written")).build()
}

/// Which parts a prompt has.
pub(crate) fn prompt_parts() -> Schema {
    let told = "Only these parts; their order in the prompt is fixed, and at most 100 are memories";
    let parts = ArrayBuilder::new().items(pattern(PROMPT_PART)).description(Some(told));
    Schema::Array(parts.min_items(Some(1)).max_items(Some(PROMPT_PARTS_MAX)).build())
}

/// How many items of each text log.
pub(crate) fn prompt_latest() -> Object {
    bounded("Only the last so many items of each text log", 1, PROMPT_LATEST_MAX)
}

/// Whose steps.
pub(crate) fn prompt_agent() -> Object {
    let mut agent = name();
    agent.description = Some("Only what this agent did, remembers and saw".to_owned());
    agent
}

/// How many screenshots.
pub(crate) fn prompt_screenshots() -> Object {
    bounded("The last so many screenshots with their images", 0, PROMPT_SCREENSHOTS_MAX)
}

/// How large an image may be.
pub(crate) fn prompt_px() -> Object {
    bounded("The longest side of an image, in pixels", 1, PROMPT_PX_MAX)
}

/// How long a prompt may be.
pub(crate) fn prompt_tokens() -> Object {
    bounded("How many tokens it may have", 1, PROMPT_TOKENS_MAX)
}

/// What stands above the parts.
pub(crate) fn prompt_headings() -> Object {
    let told = "Headings in place of the original's, each one line; in that of a memory `{agent}` stands for the \
        agent's name";
    let none_else = Some(AdditionalProperties::<Schema>::FreeForm(false));
    let heading = || {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(HEADING_BYTES_MAX))
            .pattern(Some(r"^[^\u0000-\u001f\u007f-\u009f]+$"))
    };
    let object = ObjectBuilder::new().schema_type(Type::Object).additional_properties(none_else);
    let object = object.description(Some(told));
    HEADINGS.into_iter().fold(object, |object, name| object.property(name, heading())).build()
}

fn bounded(told: &str, min: usize, max: u64) -> Object {
    let mut number = unsigned(min, usize::try_from(max).unwrap_or(usize::MAX));
    number.description = Some(told.to_owned());
    number
}
