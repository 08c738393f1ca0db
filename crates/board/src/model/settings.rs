//! Settings and labels of a session.
//!
//! Most settings are the original's.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::agent::AgentStates;
use crate::{Budget, LogName, PromptProfiles, Ttl};

/// The maximum number of keys in `history_keys`.
pub const HISTORY_KEYS_MAX: usize = 256;

/// The maximum number of labels in a session.
pub const LABELS_MAX: usize = 64;

/// The maximum length of a label's name or value, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// A session's labels, by name.
pub type Labels = BTreeMap<String, String>;

/// The settings of a session. An absent member has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The members of trajectories and memories that a prompt shows, by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_keys: Option<Vec<String>>,
    /// True to keep posted screenshots, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot_to_memory: Option<bool>,
    /// The number of items that each log keeps, by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<MaxItems>,
    /// The time to live after the session's last write, by default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// The retention of the history, by default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The statuses of agents besides the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_states: Option<AgentStates>,
    /// The prompt profiles, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<PromptProfiles>,
    /// The budget of all agents together, by default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_max: Option<Budget>,
}

/// The retention of a session's history. Older commits are deleted soon after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum History {
    /// This number of the newest revisions.
    Revisions(u64),
    /// This number of bytes of the newest commits.
    Bytes(u64),
    /// Commits up to this age.
    Age(Ttl),
}

/// Retention by count: the oldest items are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxItems {
    /// The same limit for every log and memory.
    All(NonZeroUsize),
    /// A limit for each log.
    Each(MaxItemsEach),
}

/// The maximum number of items in each log, by default unlimited.
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
    /// The limit for every agent's memory.
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
    /// Returns the maximum number of items in this log, if limited.
    #[must_use]
    pub fn items_max(&self, log: &LogName) -> Option<usize> {
        self.max_items.as_ref()?.of(log).map(NonZeroUsize::get)
    }

    /// Returns true if posted screenshots are kept.
    #[must_use]
    pub fn keeps_screenshots(&self) -> bool {
        self.screenshot_to_memory.unwrap_or(true)
    }
}

/// A change of one member: keep, reset to its default, or set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Set<T> {
    /// The member was absent.
    #[default]
    Keep,
    /// The member was null.
    Reset,
    /// The member has a new value.
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
    /// The change of `history_keys`.
    pub history_keys: Set<Vec<String>>,
    /// The change of `screenshot_to_memory`.
    pub screenshot_to_memory: Set<bool>,
    /// The change of `max_items`.
    pub max_items: Set<MaxItems>,
    /// The change of `ttl`.
    pub ttl: Set<Ttl>,
    /// The change of `history`.
    pub history: Set<History>,
    /// The change of `agent_states` as a whole.
    pub agent_states: Set<AgentStates>,
    /// The change of `profiles` as a whole.
    pub profiles: Set<PromptProfiles>,
    /// The change of `cost_max`.
    pub cost_max: Set<Budget>,
}

impl SettingsPatch {
    /// Returns the settings after this change.
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
        self.cost_max.onto(&mut settings.cost_max);
        settings
    }
}

/// A change of labels, label by label. A value sets a label, null removes it.
pub type LabelsPatch = BTreeMap<String, Option<String>>;

/// Returns the labels after this change.
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
