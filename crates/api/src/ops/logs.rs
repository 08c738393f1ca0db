//! Logs: append items, replace all logs of the board, find an entry.

use std::sync::Arc;

use utoipa::openapi::schema::ArrayBuilder;

use super::questions::Waiting;
use crate::intake::fields::value_of;
use crate::intake::input::{inputs, kinds, named};
use crate::intake::items::Intake;
use crate::intake::kinds::any_object;
use crate::refusal::{Refusal, array_required, no_entry, object_required, refused};
use crate::schema::ItemBody;
use blackboard_board::json::{self, DEPTH_MAX, Document, Kind};
use blackboard_board::{
    self as board, Board, BoardCommand, Command, Entry, Item, Json, LogCommand, LogName,
    PlanRequest, Rejected, STATE_BYTES_MAX, Seq,
};
use blackboard_service::{ImageBytes, Receipt};

/// The maximum length of a text that is parsed as a state. The writer parses it while all sessions wait, and
/// whitespace between tokens, indents aside, may be as long as the rest.
const STATE_TEXT_BYTES_MAX: u64 = 2 * STATE_BYTES_MAX;

kinds! {
    /// The items of a log that become all of it.
    Questions: Intake = |at, value| all_items(at, value, &LogName::Questions, "questions"), all(), naming ItemBody;
    /// The items of a log that become all of it.
    Requests: Intake = |at, value| all_items(at, value, &LogName::Requests, "requests"), all(), naming ItemBody;
    /// The items of a log that become all of it.
    Trajectories: Intake =
        |at, value| all_items(at, value, &LogName::Trajectories, "trajectories"), all(), naming ItemBody;
    /// The items of a log that become all of it.
    Screenshots: Intake =
        |at, value| all_items(at, value, &LogName::Screenshots, "screenshots"), all(), naming ItemBody;
    /// The whole state.
    WholeState: Json = whole_state, any_object();
}

inputs! {
    /// The new four logs, where an absent log becomes empty, and the new state if it is to change.
    Replacing as "NewBoardBody" {
        /// The questions, with their answers if any.
        questions "questions": Questions = Intake::default(),
        /// The requests.
        requests "requests": Requests = Intake::default(),
        /// The steps that agents did.
        trajectories "trajectories": Trajectories = Intake::default(),
        /// The screenshots.
        screenshots "screenshots": Screenshots = Intake::default(),
        /// The whole state; unchanged if absent.
        state "state": WholeState,
    }
}

impl Replacing {
    /// Returns the command that replaces the board, and the images that its items name.
    pub fn command(self) -> (Command, Vec<ImageBytes>) {
        let Self { questions, requests, trajectories, screenshots, state } = self;
        let mut images = Vec::new();
        let logs = [questions, requests, trajectories, screenshots].map(|intake| {
            images.extend(intake.images);
            intake.items
        });
        (Command::Board(BoardCommand::Replace { logs, state }), images)
    }
}

/// The schema of items that become all of something.
pub(crate) fn all() -> ArrayBuilder {
    ArrayBuilder::new().items(named::<ItemBody>(&[]))
}

/// Reads items that become all of something, which is this member of a body.
pub(crate) fn all_items(
    at: &str,
    value: &str,
    log: &LogName,
    member: &'static str,
) -> Result<Intake, Refusal> {
    if json::kind(value) != Kind::Array {
        return Err(array_required(at.to_owned(), json::kind(value)));
    }
    let mut intake = Intake::default();
    intake.take_array(log, &Document::of(value), Some(member))?;
    Ok(intake)
}

fn whole_state(at: &str, value: &str) -> Result<Json, Refusal> {
    if json::kind(value) != Kind::Object {
        return Err(object_required(at.to_owned(), json::kind(value)));
    }
    let state = value_of(value, DEPTH_MAX, at)?;
    if state.bytes() > STATE_TEXT_BYTES_MAX {
        return Err(refused(&Rejected::StateFull { bytes: state.bytes() }, None));
    }
    Ok(state)
}

/// Returns the command that appends items. Only questions wait, and only requests have a plan.
pub fn append(
    log: LogName,
    items: Vec<Item>,
    plan: PlanRequest,
    waiting: Option<Waiting>,
) -> Command {
    match waiting {
        Some(Waiting { ttl, default }) if log == LogName::Questions => {
            Command::Ask { items, ttl, default }
        }
        Some(_) | None if log == LogName::Requests && !plan.is_empty() => {
            Command::Plan { items, plan }
        }
        Some(_) | None => Command::Log(log, LogCommand::Append { items }),
    }
}

/// The entries that an append has made.
pub struct Appended {
    first: Seq,
    /// The number of the entries.
    pub count: usize,
    /// The number of screenshots that the session's settings discard.
    pub dropped: Option<usize>,
}

impl Appended {
    /// Returns what a write has appended.
    pub fn of(receipt: &Receipt) -> Option<Self> {
        let board::Answer::Added { first, count, dropped } = receipt.answer else { return None };
        Some(Self { first, count, dropped: (dropped > 0).then_some(dropped) })
    }

    /// Returns the places of the new entries.
    pub fn seqs(&self) -> impl Iterator<Item = Seq> + use<> {
        (self.first.0..).map(Seq).take(self.count)
    }
}

/// Returns an entry, which must be there.
pub fn entry<'a>(board: &'a Board, log: &LogName, seq: Seq) -> Result<&'a Arc<Entry>, Refusal> {
    let entry = board.log(log).and_then(|found| found.get(seq));
    entry.ok_or_else(|| no_entry(board, log, seq))
}
