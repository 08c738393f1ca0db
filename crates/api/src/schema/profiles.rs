//! Schemas of prompt profiles, with the limits that the parser enforces.

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::{PROMPT_PART, name, pattern, unsigned};
use blackboard_board::{
    HEADING_BYTES_MAX, PROFILES_MAX, PROMPT_LATEST_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX,
    PROMPT_SCREENSHOTS_MAX, PROMPT_TOKENS_MAX, PromptFormat,
};

/// The headings that a profile may replace.
pub(crate) const HEADINGS: [&str; 7] =
    ["blackboard", "questions", "requests", "trajectories", "state", "memory", "messages"];

/// The schema of a session's new profiles.
pub(crate) fn profiles_patch() -> Schema {
    let told =
        "The session's complete prompt profiles by name, at most 256 KiB together; null is none";
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

/// The schema of a prompt's format.
pub(crate) fn prompt_format() -> Object {
    let names = PromptFormat::NAMED.map(|(name, _)| name);
    let format = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    format.description(Some("The kind of models that the prompt is written for")).build()
}

/// The schema of a prompt's parts.
pub(crate) fn prompt_parts() -> Schema {
    let told =
        "The parts to show, at most 100 of them memories; their order in the prompt is fixed";
    let parts = ArrayBuilder::new().items(pattern(PROMPT_PART)).description(Some(told));
    Schema::Array(parts.min_items(Some(1)).max_items(Some(PROMPT_PARTS_MAX)).build())
}

/// The schema of the number of items from each text log.
pub(crate) fn prompt_latest() -> Object {
    bounded("The number of newest items to show from each text log", 1, PROMPT_LATEST_MAX)
}

/// The schema of the agent that a prompt is limited to.
pub(crate) fn prompt_agent() -> Object {
    let mut agent = name();
    agent.description =
        Some("Limits the prompt to the steps, memory and screenshots of this agent".to_owned());
    agent
}

/// The schema of the number of screenshots.
pub(crate) fn prompt_screenshots() -> Object {
    bounded("The number of newest screenshots to show with their images", 0, PROMPT_SCREENSHOTS_MAX)
}

/// The schema of the maximum size of an image.
pub(crate) fn prompt_px() -> Object {
    bounded("The longest side of an image, in pixels", 1, PROMPT_PX_MAX)
}

/// The schema of the maximum length of a prompt.
pub(crate) fn prompt_tokens() -> Object {
    bounded("The maximum number of tokens in the prompt", 1, PROMPT_TOKENS_MAX)
}

/// The schema of the headings.
pub(crate) fn prompt_headings() -> Object {
    let told = "Headings that replace the original's, each on one line; in those of memories and messages, `{agent}` becomes \
        the agent's name";
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
