//! The writer of a base, part by part.
//!
//! Parts are built on demand. Equal boards give equal bytes.

use std::iter;

use imbl::OrdMap;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Head, Part, StoredLife, StoredLog, StoredOwned, VERSION};
use crate::stored::Unreadable;
use crate::stored::parts::{
    StoredAgent, StoredAwaited, StoredBlob, StoredCheckpoint, StoredEntry, StoredKey,
};
use crate::{AgentName, Board, Log, LogName, State};

/// The maximum size in bytes of a part with several elements. A part with one element may be longer.
const PART_BYTES: usize = 1 << 20;

type Written = Result<Vec<u8>, Unreadable>;

/// Returns the parts of a board's base in order, each a JSON object on one line, built on demand. The parts do not
/// contain the session's id.
///
/// A part is [`Unreadable`] if it cannot be written as JSON, which happens for no valid board.
pub fn base_parts(board: &Board) -> impl Iterator<Item = Written> + '_ {
    let mut parts = iter::once_with(move || encode(&Part::Head(Box::new(Head::from(board)))))
        .chain(chunks("memories", owned(&board.memories)))
        .chain(chunks("messages", owned(&board.messages)))
        .chain(logs(board).flat_map(|(name, log)| entries(&name, log)))
        .chain(iter::once_with(move || encode(&state(&board.state)?)))
        .chain(chunks("expiries", board.state.expiries()))
        .chain(chunks("agents", board.agents.iter().map(StoredAgent::from)))
        .chain(chunks("checkpoints", board.checkpoints.iter().map(StoredCheckpoint::from)))
        .chain(chunks("awaited", board.asked.awaited.iter().map(StoredAwaited::from)))
        .chain(chunks("keys", board.keys.iter().map(StoredKey::from)))
        .chain(chunks("images", board.images.iter()))
        .chain(chunks("blobs", board.blobs.iter().map(StoredBlob::from)));
    let (mut count, mut is_over) = (0, false);
    iter::from_fn(move || {
        if let Some(part) = parts.next() {
            count += 1;
            return Some(part);
        }
        let was_over = std::mem::replace(&mut is_over, true);
        (!was_over).then(|| encode(&Part::End { parts: count }))
    })
}

fn encode(part: &Part<'_>) -> Written {
    Ok(serde_json::to_vec(part)?)
}

fn owned(logs: &OrdMap<AgentName, Log>) -> impl Iterator<Item = StoredOwned> {
    logs.iter().map(|(agent, log)| {
        let StoredLog { last_seq, changed } = StoredLog::from(log);
        StoredOwned { agent: agent.clone(), last_seq, changed }
    })
}

fn logs(board: &Board) -> impl Iterator<Item = (LogName, &Log)> {
    LogName::BOARD.into_iter().zip(&board.logs).chain(board.owned_logs())
}

fn entries<'a>(name: &LogName, log: &'a Log) -> impl Iterator<Item = Written> + use<'a> {
    // Any name can be written as JSON.
    let name = serde_json::to_string(name).unwrap_or_default();
    let open = format!("{{\"entries\":{{\"log\":{name},\"entries\":[");
    pieces(open, "]}}", log.iter().map(|entry| StoredEntry::from(&**entry)))
}

fn state(state: &State) -> Result<Part<'static>, Unreadable> {
    let document = RawValue::from_string(state.text())?;
    Ok(Part::State { document, changed: state.revisions() })
}

/// Returns the parts of this name, each with an array of these elements as its value.
fn chunks<T: Serialize>(
    name: &str,
    elements: impl Iterator<Item = T>,
) -> impl Iterator<Item = Written> {
    pieces(format!("{{\"{name}\":["), "]}", elements)
}

/// Splits the elements into parts of bounded size, each between the two texts. Without elements there is no part.
fn pieces<T: Serialize>(
    open: String,
    close: &'static str,
    elements: impl Iterator<Item = T>,
) -> impl Iterator<Item = Written> {
    let mut texts = elements.map(|element| serde_json::to_vec(&element)).peekable();
    iter::from_fn(move || {
        texts.peek()?;
        let mut part = open.clone().into_bytes();
        let has_room = |part: &Vec<u8>, text: &[u8]| {
            part.len() == open.len() || part.len() + text.len() + close.len() < PART_BYTES
        };
        while let Some(text) =
            texts.next_if(|text| text.as_ref().map_or(true, |text| has_room(&part, text)))
        {
            match text {
                Ok(text) if part.len() == open.len() => part.extend(text),
                Ok(text) => {
                    part.push(b',');
                    part.extend(text);
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
        part.extend_from_slice(close.as_bytes());
        Some(Ok(part))
    })
}

impl From<&Board> for Head {
    fn from(board: &Board) -> Self {
        Self {
            version: VERSION,
            revision: board.revision,
            updated_at: board.updated_at,
            written_at: board.written_at,
            life: board.life.as_ref().map(StoredLife::from),
            logs: board.logs.each_ref().map(StoredLog::from),
            agents_changed: board.agents_changed,
            checkpoints_changed: board.checkpoints_changed,
            floor: board.floor,
            fences_after: board.fences_after,
        }
    }
}
