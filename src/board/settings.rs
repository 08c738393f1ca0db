//! What a session is set to: the original's own settings, and free labels to find it by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
}

impl Settings {
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
}

impl SettingsPatch {
    /// The settings after this change.
    #[must_use]
    pub fn apply(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        self.history_keys.onto(&mut settings.history_keys);
        self.screenshot_to_memory.onto(&mut settings.screenshot_to_memory);
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
