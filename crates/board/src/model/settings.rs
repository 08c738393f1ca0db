//! Settings and labels of a session.
//!
//! Most settings are the original's.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::agent::AgentStates;
use super::tasks::caps::Cap;
use crate::{Budget, LogName, PromptProfiles, Ttl};

/// The maximum number of keys in `history_keys`.
pub const HISTORY_KEYS_MAX: usize = 256;

/// The maximum number of labels in a session.
pub const LABELS_MAX: usize = 64;

/// The maximum length of a label's name or value, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// A session's labels, by name.
pub type Labels = BTreeMap<String, String>;

macro_rules! settings {
    ($($(#[doc = $meaning:literal])+ $name:ident: $value:ty;)+) => {
        /// The settings of a session. An absent member has its default.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(
                $(#[doc = $meaning])+
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$value>,
            )+
        }

        /// A change of settings, member by member and each as a whole.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct SettingsPatch {
            $(
                $(#[doc = $meaning])+
                pub $name: Set<$value>,
            )+
        }

        impl SettingsPatch {
            /// Returns the settings after this change.
            #[must_use]
            pub fn apply(&self, settings: &Settings) -> Settings {
                let mut settings = settings.clone();
                $(self.$name.onto(&mut settings.$name);)+
                settings
            }
        }
    };
}

settings! {
    /// The members of trajectories and memories that a prompt shows, by default all.
    history_keys: Vec<String>;
    /// True to keep posted screenshots, which is the default.
    screenshot_to_memory: bool;
    /// The number of items that each log keeps, by default all.
    max_items: MaxItems;
    /// The time to live after the session's last write, by default unlimited.
    ttl: Ttl;
    /// The retention of the history, by default unlimited.
    history: History;
    /// The statuses of agents besides the built-in ones.
    agent_states: AgentStates;
    /// The prompt profiles, by name.
    profiles: PromptProfiles;
    /// The budget of all agents together, by default unlimited.
    cost_max: Budget;
    /// The caps on requests that are claimed at once, by default none.
    running_max: Vec<Cap>;
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
    /// The same limit for every log and memory, but not for messages, which are limited by name only.
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
    /// The limit for the messages to every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<NonZeroUsize>,
}

impl MaxItems {
    fn of(&self, log: &LogName) -> Option<NonZeroUsize> {
        let each = match self {
            Self::All(max) => {
                return Some(*max).filter(|_| !matches!(log, LogName::Messages(_)));
            }
            Self::Each(each) => each,
        };
        match log {
            LogName::Questions => each.questions,
            LogName::Requests => each.requests,
            LogName::Trajectories => each.trajectories,
            LogName::Screenshots => each.screenshots,
            LogName::Memory(_) => each.memory,
            LogName::Messages(_) => each.messages,
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
