//! Index of sessions by label, so that a filtered list reads only the rarest label's sessions.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;

use super::directory::some;
use blackboard_board::{Labels, SessionName};

/// The label's name and its value.
pub(crate) type Label = (String, String);

/// Index of the existing sessions by label.
#[derive(Debug, Default)]
pub(crate) struct LabelIndex(RwLock<Indexed>);

#[derive(Debug, Default)]
struct Indexed {
    /// The indexed labels of each session that has any.
    labels: HashMap<SessionName, Arc<Labels>>,
    sessions: HashMap<Label, BTreeSet<SessionName>>,
}

impl LabelIndex {
    /// Notes the labels of a session; `None` if it does not exist.
    pub(crate) fn note(&self, name: &SessionName, labels: Option<&Arc<Labels>>) {
        let labels = labels.filter(|labels| !labels.is_empty());
        // Most commits change no label, and take no write lock.
        let is_noted = match (self.0.read().labels.get(name), labels) {
            (None, None) => true,
            (Some(noted), Some(labels)) => Arc::ptr_eq(noted, labels) || noted == labels,
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !is_noted {
            self.0.write().replace(name, labels);
        }
    }

    /// Returns the number of sessions that have the rarest of these labels.
    pub(crate) fn count(&self, labels: &[Label]) -> usize {
        self.0.read().rarest(labels).map_or(0, BTreeSet::len)
    }

    /// Returns at most `limit` names of sessions that have the rarest of these labels.
    pub(crate) fn names(
        &self,
        labels: &[Label],
        start: Bound<&str>,
        prefix: &str,
        limit: usize,
    ) -> Vec<SessionName> {
        let indexed = self.0.read();
        indexed.rarest(labels).map(|names| some(names, start, prefix, limit)).unwrap_or_default()
    }
}

impl Indexed {
    fn replace(&mut self, name: &SessionName, labels: Option<&Arc<Labels>>) {
        let before = match labels {
            Some(labels) => self.labels.insert(name.clone(), Arc::clone(labels)),
            None => self.labels.remove(name),
        };
        for (label, value) in before.iter().flat_map(|labels| labels.iter()) {
            let label = (label.clone(), value.clone());
            if let Some(sessions) = self.sessions.get_mut(&label) {
                sessions.remove(name);
                if sessions.is_empty() {
                    self.sessions.remove(&label);
                }
            }
        }
        for (label, value) in labels.into_iter().flat_map(|labels| labels.iter()) {
            let sessions = self.sessions.entry((label.clone(), value.clone())).or_default();
            sessions.insert(name.clone());
        }
    }

    /// Returns the sessions with the rarest label; `None` if a label is unknown or none is given.
    fn rarest(&self, labels: &[Label]) -> Option<&BTreeSet<SessionName>> {
        let sessions: Option<Vec<_>> =
            labels.iter().map(|label| self.sessions.get(label)).collect();
        sessions?.into_iter().min_by_key(|sessions| sessions.len())
    }
}
