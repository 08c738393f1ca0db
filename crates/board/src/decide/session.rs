//! Rules for sessions: creation, settings and labels.

use std::sync::Arc;

use super::Draft;
use crate::Item;
use crate::Seq;
use crate::command::rejected::Rejected;
use crate::command::{Answer, Command, Moment, SessionCommand, Write};
use crate::commit::{Change, LogChange, SessionChange};
use crate::log::LogName;
use crate::model::settings::{Labels, LabelsPatch, Set, Settings, SettingsPatch, patch_labels};

/// Returns the changes that create a session, then those that append its first answered questions.
pub(super) fn opening(write: &Write, moment: Moment<'_>) -> Vec<Change> {
    let (settings, labels, own) = if let Command::Session(SessionCommand::Put {
        settings,
        labels,
        qa_pairs,
    }) = &write.command
    {
        (
            patched_settings(&Settings::default(), settings),
            patched_labels(&Labels::default(), labels),
            qa_pairs.as_slice(),
        )
    } else {
        (Settings::default(), Labels::default(), &[][..])
    };
    let mut changes = vec![Change::Session(SessionChange::Created {
        name: write.session.clone(),
        settings: Arc::new(settings),
        labels: Arc::new(labels),
    })];
    let items: Vec<Item> =
        moment.policy.qa_pairs.iter().chain(moment.qa_pairs).chain(own).cloned().collect();
    if !items.is_empty() {
        changes.push(Change::Log(LogName::Questions, LogChange::Appended { first: Seq(1), items }));
    }
    changes
}

impl Draft<'_> {
    pub(super) fn put_session(
        &mut self,
        settings: &Set<SettingsPatch>,
        labels: &Set<LabelsPatch>,
        qa_pairs: &[Item],
    ) -> Result<Answer, Rejected> {
        if self.opening > 0 {
            // The opening has applied everything.
            self.evict_everywhere();
            return Ok(Answer::Done);
        }
        if !qa_pairs.is_empty() {
            return Err(Rejected::NotAtCreation);
        }
        let Some(life) = &self.board.life else { return Ok(Answer::Done) };
        let settings = patched_settings(&life.settings, settings);
        let labels = patched_labels(&life.labels, labels);
        // As of a value of the state, each PUT renews the time to live.
        if settings != *life.settings || labels != *life.labels || settings.ttl.is_some() {
            let (settings, labels) = (Arc::new(settings), Arc::new(labels));
            self.change(Change::Session(SessionChange::Configured { settings, labels }));
            self.evict_everywhere();
        }
        Ok(Answer::Done)
    }

    fn evict_everywhere(&mut self) {
        let owned = self.board.owned_logs().map(|(log, _)| log);
        let logs: Vec<LogName> = LogName::BOARD.into_iter().chain(owned).collect();
        logs.iter().for_each(|log| self.evict(log));
    }
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
