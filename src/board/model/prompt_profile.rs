//! Prompt profiles: stored selections for a prompt, by name, so that all devices ask alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::settings::LABEL_BYTES_MAX;
use crate::board::json;
use crate::board::json::Exact;
use crate::board::{AgentName, InvalidName, LogName, ProfileName};

/// The most profiles of a session.
pub const PROFILES_MAX: usize = 64;

/// The longest heading, in bytes.
pub const HEADING_BYTES_MAX: usize = 256;

/// The most that all profiles of a session may take, in bytes of JSON: they are part of every description of it.
pub const PROFILES_BYTES_MAX: usize = 256 << 10;

/// The most members of trajectories and memories that a prompt may name.
pub const PROMPT_KEYS_MAX: usize = 1000;

/// The most agents' memories in a prompt.
pub const PROMPT_MEMORIES_MAX: usize = 100;

/// The number of a prompt's parts besides the memories: the four logs, and the state.
const PARTS: usize = 5;

/// The most parts of a prompt.
pub const PROMPT_PARTS_MAX: usize = PARTS + PROMPT_MEMORIES_MAX;

/// The most steps that a prompt may name.
pub const PROMPT_STEPS_MAX: usize = 1000;

/// The most items of each text log in a prompt.
pub const PROMPT_LATEST_MAX: u64 = 1_000_000;

/// The most screenshots with images in a prompt.
pub const PROMPT_SCREENSHOTS_MAX: u64 = 1_000_000;

/// The longest side that an image may be asked for with, in pixels.
pub const PROMPT_PX_MAX: u64 = 16_384;

/// The largest token budget of a prompt.
pub const PROMPT_TOKENS_MAX: u64 = 100_000_000;

/// A session's profiles, by name.
pub type PromptProfiles = BTreeMap<ProfileName, PromptProfile>;

/// The format of a prompt, by provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptFormat {
    /// The original's: content parts of `OpenAI`'s Chat Completions.
    #[default]
    Parts,
    /// Input items of `OpenAI`'s Responses.
    Responses,
    /// Content blocks of Anthropic's Messages.
    Anthropic,
    /// Parts of Google's Gemini.
    Gemini,
    /// Text for people, and for models without eyes.
    Markdown,
}

impl PromptFormat {
    /// All of them, by name.
    pub const NAMED: [(&str, Self); 5] = [
        ("parts", Self::Parts),
        ("responses", Self::Responses),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("markdown", Self::Markdown),
    ];
}

/// The form in which a stored image is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImagesShown {
    /// Its bytes.
    Inline,
    /// Its address.
    Url,
    /// Nothing.
    None,
}

impl ImagesShown {
    /// All of them, by name.
    pub const NAMED: [(&str, Self); 3] =
        [("inline", Self::Inline), ("url", Self::Url), ("none", Self::None)];
}

/// A part of the board that a prompt may show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PromptPart {
    /// One of the four logs, or a memory.
    Log(LogName),
    /// The state.
    State,
}

/// The reason why a text is not a part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPart {
    /// There is no such part.
    #[error(
        "allows questions, requests, trajectories, screenshots, state and memory:{{agent}}, not '{0}'"
    )]
    Unknown(String),
    /// The agent of a memory has no name that an agent may have.
    #[error("memory: {0}")]
    Agent(#[from] InvalidName),
}

impl FromStr for PromptPart {
    type Err = InvalidPart;

    fn from_str(name: &str) -> Result<Self, InvalidPart> {
        if let Some(agent) = name.strip_prefix("memory:") {
            return Ok(Self::Log(LogName::Memory(agent.parse()?)));
        }
        if name == "state" {
            return Ok(Self::State);
        }
        let log = LogName::of_board(name);
        log.map(Self::Log).ok_or_else(|| InvalidPart::Unknown(name.to_owned()))
    }
}

impl PromptPart {
    /// Whether it is what an agent remembers.
    #[must_use]
    pub const fn is_memory(&self) -> bool {
        matches!(self, Self::Log(LogName::Memory(_)))
    }
}

impl fmt::Display for PromptPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(LogName::Memory(agent)) => write!(f, "memory:{agent}"),
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

/// The selections of a prompt. An absent member is not set. A query has the same members and takes precedence.
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
    /// Only the last so many items of each text log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<NonZeroU64>,
    /// Only what this agent did, remembers and saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Only steps with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only these steps: JSON numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<String>>,
    /// The last so many screenshots with their images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshots: Option<u64>,
    /// The form of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesShown>,
    /// The longest side of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_px: Option<NonZeroU64>,
    /// Whether to mark what a provider may cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_marks: Option<bool>,
    /// The token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU64>,
    /// The headings of its parts.
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

    /// Whether the profile is within the limits of this server. An imported one may not be.
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

/// Whether a prompt may be asked for these parts, each once.
#[must_use]
pub fn are_parts(parts: &[PromptPart]) -> bool {
    let distinct: BTreeSet<_> = parts.iter().collect();
    !parts.is_empty()
        && distinct.len() == parts.len()
        && parts.iter().filter(|part| part.is_memory()).count() <= PROMPT_MEMORIES_MAX
}

/// Whether a text is a JSON number that a step may be compared with.
#[must_use]
pub fn is_step(text: &str) -> bool {
    Exact::parse(text).is_some() && json::check(text, 1).is_ok()
}

/// Whether a text may be a heading: one line that is not empty.
#[must_use]
pub fn is_heading(text: &str) -> bool {
    (1..=HEADING_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

/// Whether a session may have these profiles.
pub(crate) fn are_profiles(profiles: &PromptProfiles) -> bool {
    profiles.len() <= PROFILES_MAX
        && profiles.values().all(PromptProfile::is_sound)
        && profiles_bytes(profiles) <= PROFILES_BYTES_MAX
}

/// Counts the bytes of these profiles as JSON.
#[must_use]
pub fn profiles_bytes(profiles: &PromptProfiles) -> usize {
    // Nothing in them has no JSON; if it had, they would be too large.
    serde_json::to_string(profiles).map_or(usize::MAX, |text| text.len())
}

/// Headings of a prompt's parts in place of the original's; an absent one is the original's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Headings {
    /// The opening of the prompt: `[Blackboard:]`.
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
}

impl Headings {
    fn are_sound(&self) -> bool {
        let Self { blackboard, questions, requests, trajectories, state, memory } = self;
        let all = [blackboard, questions, requests, trajectories, state, memory];
        all.into_iter().flatten().all(|heading| is_heading(heading))
    }
}
