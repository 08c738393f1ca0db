//! Prompt profiles: parsing and their JSON form.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::fields::{flag, members};
use super::fields::{names, text_of};
use super::query::ImagesName;
use crate::refusal::Refusal;
use crate::refusal::{child, invalid_field, object_required, unknown_field};
use crate::schema;
use blackboard_board::json;
use blackboard_board::json::Kind;
use blackboard_board::{
    HEADING_BYTES_MAX, Headings, ImagesShown, PROFILES_BYTES_MAX, PROFILES_MAX, PROMPT_KEYS_MAX,
    PROMPT_LATEST_MAX, PROMPT_MEMORIES_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX,
    PROMPT_SCREENSHOTS_MAX, PROMPT_STEPS_MAX, PROMPT_TOKENS_MAX, ProfileName, PromptFormat,
    PromptPart, PromptProfile, PromptProfiles, are_parts, is_heading, is_step, profiles_bytes,
};

/// Profiles by name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = BTreeMap<String, PromptProfileBody>)]
pub(crate) struct PromptProfilesBody(BTreeMap<String, PromptProfileBody>);

/// Defaults for the parameters of a prompt. Each member is overridden by the parameter of the same name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptProfileBody {
    /// The format; `parts` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_format)]
    format: Option<PromptFormat>,
    /// Only these parts, at most 100 of them memories. Their order in the prompt is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_parts)]
    include: Option<Vec<String>>,
    /// Only these members of trajectories and memories, each of at most 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_items = 1, max_items = 1000)]
    keys: Option<Vec<String>>,
    /// Only the last N items of each text log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_latest)]
    latest: Option<u64>,
    /// Only this agent's trajectories, memory items and screenshots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_agent)]
    agent: Option<String>,
    /// Only steps with this status, of at most 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 256)]
    status: Option<String>,
    /// Only steps with one of these numbers, compared by value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<f64>>, min_items = 1, max_items = 1000)]
    steps: Option<Vec<Box<RawValue>>>,
    /// Show the images of only the last K screenshots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_screenshots)]
    screenshots: Option<u64>,
    /// The form of a stored image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ImagesName>)]
    images: Option<ImagesShown>,
    /// The maximum length of an image's longest side, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_px)]
    max_px: Option<u64>,
    /// True to mark the end of the prefix that a provider may cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cache_marks: Option<bool>,
    /// The token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_tokens)]
    max_tokens: Option<u64>,
    /// Headings that replace the original's, each of one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = schema::profiles::prompt_headings)]
    headings: Option<Headings>,
}

impl From<&PromptProfiles> for PromptProfilesBody {
    fn from(profiles: &PromptProfiles) -> Self {
        Self(profiles.iter().map(|(name, profile)| (name.to_string(), profile.into())).collect())
    }
}

impl From<&PromptProfile> for PromptProfileBody {
    fn from(profile: &PromptProfile) -> Self {
        // Stored steps are valid JSON numbers, each as it was sent.
        let number = |step: &String| RawValue::from_string(step.clone()).unwrap_or_default();
        Self {
            format: profile.format,
            include: profile.include.as_ref().map(|parts| strings(parts)),
            keys: profile.keys.clone(),
            latest: profile.latest.map(NonZeroU64::get),
            agent: profile.agent.as_ref().map(ToString::to_string),
            status: profile.status.clone(),
            steps: profile.steps.as_ref().map(|steps| steps.iter().map(number).collect()),
            screenshots: profile.screenshots,
            images: profile.images,
            max_px: profile.max_px.map(NonZeroU64::get),
            cache_marks: profile.cache_marks,
            max_tokens: profile.max_tokens.map(NonZeroU64::get),
            headings: profile.headings.clone(),
        }
    }
}

fn strings(parts: &[PromptPart]) -> Vec<String> {
    parts.iter().map(ToString::to_string).collect()
}

/// Reads the setting `profiles`. It replaces all profiles, so no member may be null.
pub(crate) fn profiles(at: &str, value: &str) -> Result<PromptProfiles, Refusal> {
    if json::kind(value) != Kind::Object {
        return Err(object_required(at.to_owned(), json::kind(value)));
    }
    let mut profiles = PromptProfiles::new();
    for member in json::members(value) {
        let pointer = child(at, member.name);
        let name: ProfileName = text_of(member.name, &pointer)?.parse().map_err(|why| {
            invalid_field(pointer.clone(), format!("invalid profile name: {why}"))
        })?;
        profiles.insert(name, profile(&pointer, member.value)?);
        if profiles.len() > PROFILES_MAX {
            return Err(invalid_field(
                at.to_owned(),
                format!("expected at most {PROFILES_MAX} profiles"),
            ));
        }
    }
    let bytes = profiles_bytes(&profiles);
    if bytes > PROFILES_BYTES_MAX {
        let why = format!("expected at most {PROFILES_BYTES_MAX} bytes in total, found {bytes}");
        return Err(invalid_field(at.to_owned(), why));
    }
    Ok(profiles)
}

/// The members of a profile.
const MEMBERS: [&str; 13] = [
    "format",
    "include",
    "keys",
    "latest",
    "agent",
    "status",
    "steps",
    "screenshots",
    "images",
    "max_px",
    "cache_marks",
    "max_tokens",
    "headings",
];

fn profile(parent: &str, value: &str) -> Result<PromptProfile, Refusal> {
    let mut profile = PromptProfile::default();
    for (at, value) in members(parent, value)? {
        match at.strip_prefix(parent).unwrap_or_default() {
            "/format" => profile.format = Some(word(&at, value, &PromptFormat::NAMED)?),
            "/include" => profile.include = Some(include(&at, value)?),
            "/keys" => profile.keys = Some(some_names(&at, value, PROMPT_KEYS_MAX)?),
            "/latest" => profile.latest = Some(positive(&at, value, PROMPT_LATEST_MAX)?),
            "/agent" => {
                let agent = string(&at, value)?.parse();
                let agent =
                    agent.map_err(|why| invalid_field(at, format!("invalid agent name: {why}")))?;
                profile.agent = Some(agent);
            }
            "/status" => profile.status = Some(string(&at, value)?),
            "/steps" => profile.steps = Some(steps(&at, value)?),
            "/screenshots" => {
                profile.screenshots = Some(number(&at, value, 0, PROMPT_SCREENSHOTS_MAX)?);
            }
            "/images" => profile.images = Some(word(&at, value, &ImagesShown::NAMED)?),
            "/max_px" => profile.max_px = Some(positive(&at, value, PROMPT_PX_MAX)?),
            "/cache_marks" => profile.cache_marks = Some(flag(&at, value)?),
            "/max_tokens" => profile.max_tokens = Some(positive(&at, value, PROMPT_TOKENS_MAX)?),
            "/headings" => profile.headings = Some(headings(&at, value)?),
            _ => return Err(unknown_field(at, &MEMBERS)),
        }
    }
    Ok(profile)
}

fn headings(parent: &str, value: &str) -> Result<Headings, Refusal> {
    let mut headings = Headings::default();
    for (at, value) in members(parent, value)? {
        let heading = match at.strip_prefix(parent).unwrap_or_default() {
            "/blackboard" => &mut headings.blackboard,
            "/questions" => &mut headings.questions,
            "/requests" => &mut headings.requests,
            "/trajectories" => &mut headings.trajectories,
            "/state" => &mut headings.state,
            "/memory" => &mut headings.memory,
            "/messages" => &mut headings.messages,
            _ => return Err(unknown_field(at, &schema::profiles::HEADINGS)),
        };
        let text = string(&at, value)?;
        if !is_heading(&text) {
            let why = format!(
                "expected one line of 1 to {HEADING_BYTES_MAX} bytes without control characters"
            );
            return Err(invalid_field(at, why));
        }
        *heading = Some(text);
    }
    Ok(headings)
}

/// Reads the parts of a prompt, and drops repeated parts.
fn include(at: &str, value: &str) -> Result<Vec<PromptPart>, Refusal> {
    let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, name) in some_names(at, value, PROMPT_PARTS_MAX)?.iter().enumerate() {
        let part: PromptPart =
            name.parse().map_err(|why| invalid_field(format!("{at}/{index}"), format!("{why}")))?;
        if seen.insert(part.clone()) {
            parts.push(part);
        }
    }
    if are_parts(&parts) {
        Ok(parts)
    } else {
        Err(invalid_field(
            at.to_owned(),
            format!("expected at most {PROMPT_MEMORIES_MAX} memories and messages"),
        ))
    }
}

fn some_names(at: &str, value: &str, max: usize) -> Result<Vec<String>, Refusal> {
    let names = names(at, value, max)?;
    if names.is_empty() {
        return Err(invalid_field(at.to_owned(), "expected at least one name"));
    }
    Ok(names)
}

/// Reads an array of JSON numbers, each as it was sent.
fn steps(at: &str, value: &str) -> Result<Vec<String>, Refusal> {
    let why = format!("expected an array of 1 to {PROMPT_STEPS_MAX} numbers");
    if json::kind(value) != Kind::Array {
        return Err(invalid_field(at.to_owned(), why));
    }
    let mut steps = Vec::new();
    for (index, step) in json::elements(value).enumerate() {
        if index == PROMPT_STEPS_MAX {
            return Err(invalid_field(at.to_owned(), why));
        }
        if !is_step(step) {
            return Err(invalid_field(format!("{at}/{index}"), "expected a number"));
        }
        steps.push(step.to_owned());
    }
    if steps.is_empty() { Err(invalid_field(at.to_owned(), why)) } else { Ok(steps) }
}

fn string(at: &str, value: &str) -> Result<String, Refusal> {
    if json::kind(value) != Kind::String {
        return Err(invalid_field(at.to_owned(), "expected a string"));
    }
    text_of(value, at)
}

fn word<T: Copy>(at: &str, value: &str, named: &[(&str, T)]) -> Result<T, Refusal> {
    let text = string(at, value)?;
    let found = named.iter().find(|(name, _)| *name == text).map(|(_, word)| *word);
    let words = || named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| invalid_field(at.to_owned(), format!("expected one of {}", words())))
}

fn positive(at: &str, value: &str, max: u64) -> Result<NonZeroU64, Refusal> {
    // The number is at least 1 here.
    number(at, value, 1, max).map(|number| NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
}

fn number(at: &str, value: &str, min: u64, max: u64) -> Result<u64, Refusal> {
    let is_number = json::kind(value) == Kind::Number;
    let number = is_number.then(|| json::whole(value)).flatten();
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        let why = format!("expected a whole number from {min} to {max}");
        invalid_field(at.to_owned(), why)
    })
}

#[cfg(test)]
mod tests;
