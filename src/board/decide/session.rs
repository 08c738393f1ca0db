//! Making a session, and changing its settings and labels.

use std::sync::Arc;

use crate::board::command::{Command, Policy, Write};
use crate::board::commit::Change;
use crate::board::log::LogName;
use crate::board::settings::{Labels, LabelsPatch, Set, Settings, SettingsPatch, patch_labels};
use crate::board::{Board, Item, Seq};

/// The changes that make a session: itself, then the answered questions it starts with.
pub(super) fn opening(write: &Write, policy: &Policy) -> Vec<Change> {
    let (settings, labels, own) =
        if let Command::PutSession { settings, labels, qa_pairs } = &write.command {
            (
                patched_settings(&Settings::default(), settings),
                patched_labels(&Labels::default(), labels),
                qa_pairs.as_slice(),
            )
        } else {
            (Settings::default(), Labels::default(), &[][..])
        };
    let mut changes = vec![Change::Created {
        name: write.session.clone(),
        settings: Arc::new(settings),
        labels: Arc::new(labels),
    }];
    let items: Vec<Item> = policy.qa_pairs.iter().chain(own).cloned().collect();
    if !items.is_empty() {
        changes.push(Change::Appended { log: LogName::Questions, first: Seq(1), items });
    }
    changes
}

fn patched_settings(settings: &Settings, patch: &Set<SettingsPatch>) -> Settings {
    match patch {
        Set::Keep => settings.clone(),
        Set::Reset => Settings::default(),
        Set::To(patch) => patch.apply(settings),
    }
}

fn patched_labels(labels: &Labels, patch: &Set<LabelsPatch>) -> Labels {
    match patch {
        Set::Keep => labels.clone(),
        Set::Reset => Labels::default(),
        Set::To(patch) => patch_labels(labels, patch),
    }
}

pub(super) fn configure(
    board: &Board,
    settings: &Set<SettingsPatch>,
    labels: &Set<LabelsPatch>,
) -> Vec<Change> {
    let Some(life) = &board.life else { return Vec::new() };
    let settings = patched_settings(&life.settings, settings);
    let labels = patched_labels(&life.labels, labels);
    if settings == *life.settings && labels == *life.labels {
        return Vec::new();
    }
    vec![Change::Configured { settings: Arc::new(settings), labels: Arc::new(labels) }]
}
