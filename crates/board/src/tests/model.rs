//! A plain reference model of logs and agents, for the tests of this layer.

use std::collections::{BTreeMap, BTreeSet};

use super::board::*;
use crate::*;
use crate::{AgentCommand, BoardCommand, LogCommand, QuestionCommand, SessionCommand};

/// A plain model of the commands: the entries and the last seq of each log, and the agents' statuses.
#[derive(Default)]
pub(crate) struct Model {
    /// Which logs were appended to by the last write.
    pub(crate) grown: BTreeSet<LogName>,
    pub(crate) logs: BTreeMap<LogName, Vec<(Seq, Item)>>,
    pub(crate) last: BTreeMap<LogName, u64>,
    pub(crate) agents: BTreeMap<AgentName, String>,
}

impl Model {
    pub(crate) fn of(board: &Board) -> Self {
        let mut model = Self::default();
        model.restore(board);
        model.last = named_logs(board).map(|(name, log)| (name, log.last_seq().0)).collect();
        model
    }

    /// All but the counters.
    fn restore(&mut self, then: &Board) {
        let entries = |log: &Log| log.iter().map(|e| (e.seq, e.item.clone())).collect();
        self.logs = named_logs(then).map(|(name, log)| (name, entries(log))).collect();
        let agents = then.agents.iter();
        let status = |agent: &Agent| agent.profile.status().to_string();
        self.agents = agents.map(|(name, agent)| (name.clone(), status(agent))).collect();
    }

    pub(crate) fn append(&mut self, log: &LogName, items: &[Item]) {
        if let LogName::Memory(agent) = log
            && !items.is_empty()
        {
            self.agents.entry(agent.clone()).or_insert_with(|| "CONTINUE".to_owned());
        }
        for item in items {
            self.grown.insert(log.clone());
            let last = self.last.entry(log.clone()).or_default();
            *last += 1;
            self.logs.entry(log.clone()).or_default().push((Seq(*last), item.clone()));
        }
    }

    fn replace(&mut self, log: &LogName, items: &[Item]) {
        let entries = self.logs.entry(log.clone()).or_default();
        if !entries.iter().map(|(_, item)| item).eq(items) {
            entries.clear();
            self.append(log, items);
        }
    }

    fn remove(&mut self, log: &LogName, which: &Which) {
        let entries = self.logs.entry(log.clone()).or_default();
        let over = |keep: usize| entries.len().saturating_sub(keep);
        match which {
            Which::All => entries.clear(),
            Which::AllButNewest(keep) => drop(entries.drain(..over(*keep))),
            Which::Steps(steps) => entries.retain(|(_, item)| {
                let step = item.get("step").and_then(json::Exact::parse);
                step.is_none_or(|step| !steps.contains(&step))
            }),
        }
    }

    /// Applies an accepted write.
    pub(crate) fn follow(&mut self, command: &Command, answer: &Answer, keeps_screenshots: bool) {
        match command {
            Command::Session(SessionCommand::Put { qa_pairs, .. }) => {
                self.append(&LogName::Questions, qa_pairs);
            }
            Command::Session(SessionCommand::Delete) => *self = Self::default(),
            Command::Log(LogName::Screenshots, LogCommand::Append { .. }) if !keeps_screenshots => {
            }
            Command::Log(log, LogCommand::Append { items }) => self.append(log, items),
            Command::Log(log, LogCommand::Replace { items }) => self.replace(log, items),
            Command::Log(log, LogCommand::Remove { which }) => self.remove(log, which),
            Command::Log(log, LogCommand::PutEntry { seq, item, basis }) => {
                self.change(log, *seq, |old| {
                    if basis.is_some() { item.clone() } else { item.in_order_of(old) }
                });
            }
            Command::Log(log, LogCommand::DeleteEntry { seq }) => {
                self.logs.entry(log.clone()).or_default().retain(|(own, _)| own != seq);
            }
            Command::Board(BoardCommand::Replace { logs, .. }) => {
                LogName::BOARD.iter().zip(logs).for_each(|(log, items)| self.replace(log, items));
            }
            Command::Board(BoardCommand::Clear { .. }) => {
                LogName::BOARD.iter().for_each(|log| self.remove(log, &Which::All));
            }
            Command::Ask { items, .. } => self.append(&LogName::Questions, items),
            Command::Question(question, QuestionCommand::Skip) => {
                self.change(&LogName::Questions, *question, |old| {
                    let rest = json::merge_patch(old.text(), r#"{"skipped":null}"#);
                    let rest = rest.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
                    let comma = if rest.is_empty() { "" } else { "," };
                    item(&format!("{{{rest}{comma}\"answer\":null,\"skipped\":true}}"))
                });
            }
            Command::Session(SessionCommand::Restore { then }) => self.restore(then),
            Command::Checkpoint(_, _)
            | Command::Session(
                SessionCommand::Adopt { .. }
                | SessionCommand::ForgetImages { .. }
                | SessionCommand::PutBlob { .. },
            ) => {}
            Command::Question(question, QuestionCommand::Answer { answer }) => {
                let patch = serde_json::json!({ "answer": answer }).to_string();
                let answered = |old: &Item| item(&json::merge_patch(old.text(), &patch));
                self.change(&LogName::Questions, *question, answered);
            }
            Command::Agent(agent, AgentCommand::Put { .. } | AgentCommand::Patch { .. }) => {
                let Answer::Status(status) = answer else { panic!("{answer:?}") };
                self.agents.insert(agent.clone(), status.to_string());
            }
            Command::Agent(agent, AgentCommand::Remove) => {
                self.agents.remove(agent).expect("removing no agent is refused");
                for log in LogName::owned_by(agent) {
                    self.remove(&log, &Which::All);
                }
            }
            Command::RemoveAgents => {
                self.agents.clear();
                let owned: Vec<_> =
                    self.logs.keys().filter(|l| l.owner().is_some()).cloned().collect();
                owned.iter().for_each(|log| self.remove(log, &Which::All));
            }
            Command::Plan { items, .. } => self.append(&LogName::Requests, items),
            Command::Ack { .. }
            | Command::State(_, _)
            | Command::Request(_, _)
            | Command::ClaimNext { .. } => {}
            Command::Transact(transaction) => {
                let Answer::Transacted { succeeded, results } = answer else { panic!() };
                let Transaction { then, otherwise, .. } = &**transaction;
                let commands = if *succeeded { then } else { otherwise };
                assert_eq!(commands.len(), results.len());
                for (command, answer) in commands.iter().zip(results) {
                    self.follow(command, answer, keeps_screenshots);
                }
            }
        }
    }

    pub(crate) fn change(&mut self, log: &LogName, seq: Seq, change: impl Fn(&Item) -> Item) {
        let entries = self.logs.entry(log.clone()).or_default();
        let entry = entries.iter_mut().find(|(own, _)| *own == seq);
        let old = &mut entry.expect("changing no entry is refused").1;
        *old = change(old);
    }

    /// That each operation evicts at once comes to the same. A log that was restored keeps what it had until
    /// it grows, or the settings change.
    pub(crate) fn evict(&mut self, settings: &Settings, everywhere: bool) {
        let grown = std::mem::take(&mut self.grown);
        let logs = self.logs.iter_mut().filter(|(log, _)| everywhere || grown.contains(log));
        for (log, entries) in logs {
            let max = settings.items_max(log).unwrap_or(usize::MAX);
            entries.drain(..entries.len().saturating_sub(max));
        }
    }
}

/// All logs by name.
fn named_logs(board: &Board) -> impl Iterator<Item = (LogName, &Log)> {
    LogName::BOARD.into_iter().zip(board.logs()).chain(board.owned_logs())
}
