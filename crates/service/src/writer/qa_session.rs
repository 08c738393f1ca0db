//! The Q&A session: copies of all answered questions, as in the original's file.
//!
//! A new session begins with the last of these. The answer and its copy are one durable batch.

use std::sync::Arc;

use super::Writer;
use super::batch::Batch;
use super::verdict::Verdict;
use crate::job::WriteJob;
use crate::options::QaSession;
use blackboard_board as board;
use blackboard_board::{
    BlobRef, Board, Command, Item, LogCommand, LogName, QuestionCommand, Seq, SessionName, Terms,
    Transaction, Write,
};
use blackboard_clock::Reading;

impl Writer {
    /// Returns the questions that a session begins with if it is created now.
    pub(crate) fn qa_pairs(
        &self,
        batch: &mut Batch,
        name: &SessionName,
        reading: Reading,
    ) -> Vec<Item> {
        let Some(QaSession { name: gathered, last }) = &self.qa_session else { return Vec::new() };
        let exists = batch.touched(name).is_some_and(|part| part.staging.board().life().is_some());
        if exists || name == gathered {
            return Vec::new();
        }
        let staging = self.staging(batch, gathered, reading);
        let (is_idle, board) = (staging.is_idle(), Arc::clone(staging.board()));
        if !is_idle {
            batch.links.link(name, gathered);
        }
        let Some(log) = board.log(&LogName::Questions) else { return Vec::new() };
        let skipped = log.len().saturating_sub(last.unwrap_or(usize::MAX));
        log.iter()
            .skip(skipped)
            .map(|entry| &entry.item)
            .filter(|item| is_whole(item))
            .cloned()
            .collect()
    }

    /// Appends the questions answered by this write to the Q&A session.
    pub(crate) fn echo(
        &mut self,
        batch: &mut Batch,
        write: &Write,
        verdict: &Verdict,
        reading: Reading,
    ) {
        let Some(QaSession { name, .. }) = self.qa_session.clone() else { return };
        let Verdict::Done { receipt, .. } = verdict else { return };
        let mut items = answered(&write.command, &receipt.answer, &receipt.board);
        items.retain(is_whole);
        if items.is_empty() || write.session == name {
            return;
        }
        let answered_in = write.session.clone();
        let terms = Terms { author: write.terms.author.clone(), ..Terms::default() };
        let command = Command::Log(LogName::Questions, LogCommand::Append { items });
        let job = WriteJob::of(Write { session: name.clone(), terms, command });
        batch.links.link(&answered_in, &name);
        let staging = self.staging(batch, &name, reading);
        let refused = if staging.is_closed() {
            Some("it was deleted just now")
        } else {
            match self.stage(staging, &job, reading, &[]) {
                Verdict::Failed(error) => Some(error.code().as_str()),
                Verdict::Done { .. } | Verdict::Recalled(_) | Verdict::Cold | Verdict::Moved => {
                    None
                }
            }
        };
        if let Some(why) = refused {
            tracing::warn!(session = %name, why, "an answered question could not be copied to the Q&A session");
        }
    }
}

/// Returns the items of the questions that a command answered.
fn answered(command: &Command, answer: &board::Answer, board: &Board) -> Vec<Item> {
    let one = |question: Seq| {
        let entry = board.log(&LogName::Questions)?.get(question)?;
        Some(entry.item.clone())
    };
    match (command, answer) {
        (Command::Question(question, QuestionCommand::Answer { .. }), _) => {
            one(*question).into_iter().collect()
        }
        (Command::Transact(transaction), board::Answer::Transacted { succeeded, .. }) => {
            let Transaction { then, otherwise, .. } = &**transaction;
            let done = if *succeeded { then } else { otherwise };
            done.iter().flat_map(|command| answered(command, &board::Answer::Done, board)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if an item refers to no blob: those are a session's own.
fn is_whole(item: &Item) -> bool {
    BlobRef::all_in(item.text()).next().is_none()
}

#[cfg(test)]
mod tests;
