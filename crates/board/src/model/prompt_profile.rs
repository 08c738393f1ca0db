//! Prompt profiles: named selections of entries for a prompt.
//!
//! All devices can request the same prompt by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::settings::LABEL_BYTES_MAX;
use crate::json;
use crate::json::Exact;
use crate::{AgentName, InvalidName, LogName, ProfileName, PromptFormat};

/// The maximum number of profiles in a session.
pub const PROFILES_MAX: usize = 64;

/// The maximum length of a heading, in bytes.
pub const HEADING_BYTES_MAX: usize = 256;

/// The maximum total size of a session's profiles, in bytes of JSON. Every description of the session includes them.
pub const PROFILES_BYTES_MAX: usize = 256 << 10;

/// The maximum number of members of trajectories and memories that a prompt may name.
pub const PROMPT_KEYS_MAX: usize = 1000;

/// The maximum number of agents' logs in a prompt: memories and messages together.
pub const PROMPT_MEMORIES_MAX: usize = 100;

/// The number of a prompt's parts without the agents' logs: the four logs and the state.
const PARTS: usize = 5;

/// The maximum number of parts in a prompt.
pub const PROMPT_PARTS_MAX: usize = PARTS + PROMPT_MEMORIES_MAX;

/// The maximum number of steps that a prompt may name.
pub const PROMPT_STEPS_MAX: usize = 1000;

/// The maximum number of items from each text log in a prompt.
pub const PROMPT_LATEST_MAX: u64 = 1_000_000;

/// The maximum number of screenshots with images in a prompt.
pub const PROMPT_SCREENSHOTS_MAX: u64 = 1_000_000;

/// The maximum of `max_px`, in pixels.
pub const PROMPT_PX_MAX: u64 = 16_384;

/// The largest token budget of a prompt.
pub const PROMPT_TOKENS_MAX: u64 = 100_000_000;

/// A session's profiles, by name.
pub type PromptProfiles = BTreeMap<ProfileName, PromptProfile>;

/// The form in which a stored image is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImagesShown {
    /// The image's bytes.
    Inline,
    /// The image's address.
    Url,
    /// No image.
    None,
}

impl ImagesShown {
    /// All forms, by name.
    pub const NAMED: [(&str, Self); 3] =
        [("inline", Self::Inline), ("url", Self::Url), ("none", Self::None)];
}

/// A part of the board that a prompt may show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PromptPart {
    /// One of the four logs, an agent's memory, or the unacknowledged messages to an agent.
    Log(LogName),
    /// The state.
    State,
}

/// The reason why a text is not a part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPart {
    /// The part does not exist.
    #[error(
        "allows questions, requests, trajectories, screenshots, state, memory:{{agent}} and messages:{{agent}}, not '{0}'"
    )]
    Unknown(String),
    /// The name of the log's agent is invalid.
    #[error("memory or messages: {0}")]
    Agent(#[from] InvalidName),
}

impl FromStr for PromptPart {
    type Err = InvalidPart;

    fn from_str(name: &str) -> Result<Self, InvalidPart> {
        if let Some(agent) = name.strip_prefix("memory:") {
            return Ok(Self::Log(LogName::Memory(agent.parse()?)));
        }
        if let Some(agent) = name.strip_prefix("messages:") {
            return Ok(Self::Log(LogName::Messages(agent.parse()?)));
        }
        if name == "state" {
            return Ok(Self::State);
        }
        let log = LogName::of_board(name);
        log.map(Self::Log).ok_or_else(|| InvalidPart::Unknown(name.to_owned()))
    }
}

impl PromptPart {
    /// Returns true for a log that belongs to an agent.
    #[must_use]
    pub const fn is_owned(&self) -> bool {
        matches!(self, Self::Log(LogName::Memory(_) | LogName::Messages(_)))
    }
}

impl fmt::Display for PromptPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(LogName::Memory(agent)) => write!(f, "memory:{agent}"),
            Self::Log(LogName::Messages(agent)) => write!(f, "messages:{agent}"),
            Self::Log(log) => log.fmt(f),
            Self::State => f.write_str("state"),
        }
    }
}

impl TryFrom<String> for PromptPart {
    type Error = InvalidPart;

    fn try_from(name: String) -> Result<Self, InvalidPart> {
        name.parse()
    }
}

impl From<PromptPart> for String {
    fn from(part: PromptPart) -> Self {
        part.to_string()
    }
}

/// The selections of a prompt. An absent member is unset. A query has the same members and overrides the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptProfile {
    /// The format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<PromptFormat>,
    /// Only these parts, in any order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<PromptPart>>,
    /// Only these members of trajectories and memories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Only this number of the newest items of each text log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<NonZeroU64>,
    /// Only entries of this agent, and only its own memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Only steps with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only these steps, written as JSON numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<String>>,
    /// The number of newest screenshots shown with their images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshots: Option<u64>,
    /// The form of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesShown>,
    /// The maximum length of an image's longer side, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_px: Option<NonZeroU64>,
    /// True to mark the parts that a provider may cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_marks: Option<bool>,
    /// The token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU64>,
    /// The headings of the prompt's parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headings: Option<Headings>,
}

impl PromptProfile {
    /// Returns this profile, with unset members taken from another one.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            format: self.format.or(other.format),
            include: self.include.or_else(|| other.include.clone()),
            keys: self.keys.or_else(|| other.keys.clone()),
            latest: self.latest.or(other.latest),
            agent: self.agent.or_else(|| other.agent.clone()),
            status: self.status.or_else(|| other.status.clone()),
            steps: self.steps.or_else(|| other.steps.clone()),
            screenshots: self.screenshots.or(other.screenshots),
            images: self.images.or(other.images),
            max_px: self.max_px.or(other.max_px),
            cache_marks: self.cache_marks.or(other.cache_marks),
            max_tokens: self.max_tokens.or(other.max_tokens),
            headings: self.headings.or_else(|| other.headings.clone()),
        }
    }

    /// Returns true if the profile is within this server's limits. An imported profile may exceed them.
    pub(crate) fn is_sound(&self) -> bool {
        let short = |text: &String| text.len() <= LABEL_BYTES_MAX;
        let within = |number: Option<NonZeroU64>, max: u64| number.is_none_or(|n| n.get() <= max);
        self.include.as_ref().is_none_or(|parts| are_parts(parts))
            && self.keys.as_ref().is_none_or(|keys| {
                (1..=PROMPT_KEYS_MAX).contains(&keys.len()) && keys.iter().all(short)
            })
            && within(self.latest, PROMPT_LATEST_MAX)
            && self.status.as_ref().is_none_or(short)
            && self.steps.as_ref().is_none_or(|steps| {
                (1..=PROMPT_STEPS_MAX).contains(&steps.len()) && steps.iter().all(|s| is_step(s))
            })
            && self.screenshots.is_none_or(|count| count <= PROMPT_SCREENSHOTS_MAX)
            && within(self.max_px, PROMPT_PX_MAX)
            && within(self.max_tokens, PROMPT_TOKENS_MAX)
            && self.headings.as_ref().is_none_or(Headings::are_sound)
    }
}

/// Returns true if a prompt may consist of these parts, each once.
#[must_use]
pub fn are_parts(parts: &[PromptPart]) -> bool {
    let distinct: BTreeSet<_> = parts.iter().collect();
    !parts.is_empty()
        && distinct.len() == parts.len()
        && parts.iter().filter(|part| part.is_owned()).count() <= PROMPT_MEMORIES_MAX
}

/// Returns true if the text is a JSON number that can be compared with a step.
#[must_use]
pub fn is_step(text: &str) -> bool {
    Exact::parse(text).is_some() && json::check(text, 1).is_ok()
}

/// Returns true if the text is a valid heading: a non-empty line of at most [`HEADING_BYTES_MAX`] bytes.
#[must_use]
pub fn is_heading(text: &str) -> bool {
    (1..=HEADING_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

/// Returns true if a session may have these profiles.
pub(crate) fn are_profiles(profiles: &PromptProfiles) -> bool {
    profiles.len() <= PROFILES_MAX
        && profiles.values().all(PromptProfile::is_sound)
        && profiles_bytes(profiles) <= PROFILES_BYTES_MAX
}

/// Returns the size of these profiles in bytes of JSON.
#[must_use]
pub fn profiles_bytes(profiles: &PromptProfiles) -> usize {
    // Serialization cannot fail. If it did, the profiles would count as too large.
    serde_json::to_string(profiles).map_or(usize::MAX, |text| text.len())
}

/// The headings of a prompt's parts. An absent heading is the original's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Headings {
    /// The prompt's first line: `[Blackboard:]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackboard: Option<String>,
    /// `[Questions & Answers:]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<String>,
    /// `[Request History:]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// `[Step Trajectories Completed Previously:]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectories: Option<String>,
    /// `[State:]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `[Memory of {agent}:]`, with the agent's name for `{agent}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// `[Messages to {agent}:]`, with the agent's name for `{agent}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<String>,
}

impl Headings {
    fn are_sound(&self) -> bool {
        let Self { blackboard, questions, requests, trajectories, state, memory, messages } = self;
        let all = [blackboard, questions, requests, trajectories, state, memory, messages];
        all.into_iter().flatten().all(|heading| is_heading(heading))
    }
}
