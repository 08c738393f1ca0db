//! Settings of a session, most of them the original's, and its labels.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::agent::AgentStates;
use crate::board::{LogName, PromptProfiles, Ttl};

/// How many keys `history_keys` may name.
pub const HISTORY_KEYS_MAX: usize = 256;

/// How many labels a session may have.
pub const LABELS_MAX: usize = 64;

/// The longest label, name or value, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// A session's labels, by name.
pub type Labels = BTreeMap<String, String>;

/// What is set; an absent member has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The members of trajectories and memories that a prompt shows; all of them where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_keys: Option<Vec<String>>,
    /// Whether posted screenshots are kept; they are where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot_to_memory: Option<bool>,
    /// How many items its logs keep; all of them where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<MaxItems>,
    /// How long it lives after its last write; for ever where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// How much of its history is kept besides the board; all of it where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The statuses that its agents may have besides the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_states: Option<AgentStates>,
    /// What its prompts may be asked for by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<PromptProfiles>,
}

/// How much of a session's history is kept; what is older is let go soon after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum History {
    /// The last so many revisions.
    Revisions(u64),
    /// The last so many bytes of commits.
    Bytes(u64),
    /// What is younger.
    Age(Ttl),
}

/// How many items are kept; the oldest go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxItems {
    /// By every log and every memory.
    All(NonZeroUsize),
    /// By each of them.
    Each(MaxItemsEach),
}

/// How many items each log keeps; all of them where it is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names of the logs")]
pub struct MaxItemsEach {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<NonZeroUsize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<NonZeroUsize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trajectories: Option<NonZeroUsize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshots: Option<NonZeroUsize>,
    /// Of every agent's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<NonZeroUsize>,
}

impl MaxItems {
    fn of(&self, log: &LogName) -> Option<NonZeroUsize> {
        let each = match self {
            Self::All(max) => return Some(*max),
            Self::Each(each) => each,
        };
        match log {
            LogName::Questions => each.questions,
            LogName::Requests => each.requests,
            LogName::Trajectories => each.trajectories,
            LogName::Screenshots => each.screenshots,
            LogName::Memory(_) => each.memory,
        }
    }
}

impl Settings {
    /// How many items this log keeps.
    #[must_use]
    pub fn items_max(&self, log: &LogName) -> Option<usize> {
        self.max_items.as_ref()?.of(log).map(NonZeroUsize::get)
    }

    /// Whether posted screenshots are kept.
    #[must_use]
    pub fn keeps_screenshots(&self) -> bool {
        self.screenshot_to_memory.unwrap_or(true)
    }
}

/// What becomes of one member: it stays, goes back to its default, or gets a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Set<T> {
    /// It was not named.
    #[default]
    Keep,
    /// It was null.
    Reset,
    /// It has a new value.
    To(T),
}

impl<T: Clone> Set<T> {
    fn onto(&self, value: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Reset => *value = None,
            Self::To(new) => *value = Some(new.clone()),
        }
    }
}

/// A change of settings, member by member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsPatch {
    /// Of `history_keys`.
    pub history_keys: Set<Vec<String>>,
    /// Of `screenshot_to_memory`.
    pub screenshot_to_memory: Set<bool>,
    /// Of `max_items`.
    pub max_items: Set<MaxItems>,
    /// Of `ttl`.
    pub ttl: Set<Ttl>,
    /// Of `history`.
    pub history: Set<History>,
    /// Of `agent_states`, all of them together.
    pub agent_states: Set<AgentStates>,
    /// Of `profiles`, all of them together.
    pub profiles: Set<PromptProfiles>,
}

impl SettingsPatch {
    /// The settings after this change.
    #[must_use]
    pub fn apply(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        self.history_keys.onto(&mut settings.history_keys);
        self.screenshot_to_memory.onto(&mut settings.screenshot_to_memory);
        self.max_items.onto(&mut settings.max_items);
        self.ttl.onto(&mut settings.ttl);
        self.history.onto(&mut settings.history);
        self.agent_states.onto(&mut settings.agent_states);
        self.profiles.onto(&mut settings.profiles);
        settings
    }
}

/// A change of labels, label by label: a value sets one, null removes it.
pub type LabelsPatch = BTreeMap<String, Option<String>>;

/// The labels after this change.
#[must_use]
pub fn patch_labels(labels: &Labels, patch: &LabelsPatch) -> Labels {
    let mut labels = labels.clone();
    for (name, value) in patch {
        match value {
            Some(value) => labels.insert(name.clone(), value.clone()),
            None => labels.remove(name),
        };
    }
    labels
}
