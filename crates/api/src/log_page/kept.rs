//! Plain pages of a log, from texts that are cached with its runs.

use std::ops::Range;

use bytes::Bytes;

use super::one_by_one::EntryText;
use super::{EntryPage, LIMIT_DEFAULT, LogQuery};
use crate::segments::Segments;
use crate::view::entry::write_envelope;
use crate::view::write_page_end;
use crate::yielding::{TURN_BYTES_MAX, Turns};
use blackboard_board::{
    Board, Entry, ImagesShown, Log, LogName, Order, Run, RunText, Seq, TextForm, TextKind,
};
use blackboard_prompt::{Cost, Estimator};
use blackboard_service::ServiceError;

/// The number of a run's entries from which its text is cached. Few entries are written faster than all that are stored
/// with them.
const CACHED_FROM: usize = 16;

/// The kind of the cached texts.
const ENVELOPES: TextKind = TextKind { form: TextForm::Envelopes, keys: None };

/// The separator of two entries, with which the text of each begins.
const COMMA: &str = ",";

impl LogQuery {
    /// Returns the page as a body whose entries are cached, if it is an unfiltered one whose entries show nothing besides
    /// themselves, and none is long. Entries at its ends may be few of their run: these are written anew.
    pub async fn kept(
        &self,
        board: &Board,
        name: &LogName,
    ) -> Result<Option<Segments>, ServiceError> {
        let is_plain = self.selection.order == Order::Ascending && self.is_plain(name);
        let Some(log) = board.log(name).filter(|_| is_plain) else { return Ok(None) };
        let range = self.indexes(log);
        let runs: Vec<Run> = log.runs(range.clone()).collect();
        let is_written = |run: &Run| is_cacheable(run) || is_short(run);
        if !runs.iter().any(is_cacheable) || !runs.iter().all(is_written) {
            return Ok(None);
        }
        let (mut segments, mut turns) = (Segments::default(), Turns::default());
        segments.push_str("{\"entries\":[");
        let mut comma = COMMA.len();
        for run in runs {
            let texts: Vec<Bytes> = if is_cacheable(&run) {
                envelopes(run, &mut turns).await?.whole().collect()
            } else {
                vec![written(run, &mut turns).await?]
            };
            for text in texts {
                segments.push_bytes(text.slice(comma.min(text.len())..));
                comma = 0;
            }
        }
        let mut end = String::new();
        write_page_end(&self.end(log, board.log_version(name).changed.0, range), &mut end);
        end.push('\n');
        segments.push_str(&end);
        Ok(Some(segments))
    }

    /// Returns true if each entry is shown as it is. Those of other logs show images by address, and deadlines.
    pub(super) fn is_plain(&self, name: &LogName) -> bool {
        let is_of_items = match name {
            LogName::Requests
            | LogName::Trajectories
            | LogName::Memory(_)
            | LogName::Messages(_) => true,
            LogName::Questions | LogName::Screenshots => false,
        };
        is_of_items
            && !self.lines
            && self.view.keys.is_none()
            && self.view.images == ImagesShown::Url
            && self.selection.filter.is_empty()
    }

    /// Returns the indexes of the page's entries.
    pub(super) fn indexes(&self, log: &Log) -> Range<usize> {
        if let Some(latest) = self.latest {
            return log.len().saturating_sub(latest)..log.len();
        }
        let Range { start, end } = self.selection.indexes(log);
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT);
        match self.selection.order {
            Order::Ascending => start..end.min(start.saturating_add(limit)),
            Order::Descending => start.max(end.saturating_sub(limit))..end,
        }
    }

    /// Returns the members after the entries.
    fn end(&self, log: &Log, revision: u64, shown: Range<usize>) -> EntryPage<'static> {
        let last = shown.end.checked_sub(1).filter(|_| !shown.is_empty());
        let last = last.and_then(|last| log.at(last)).map(|entry| entry.seq);
        let Seq(next) = last.or(self.selection.after).unwrap_or_default();
        let more = self.latest.is_none() && shown.end < self.selection.indexes(log).end;
        EntryPage { entries: Vec::new(), next, more, count: log.len(), revision }
    }
}

/// Returns true if the text of a run is cached, or can be without much work.
fn is_cacheable(run: &Run) -> bool {
    run.has_text(&ENVELOPES) || run.len() >= CACHED_FROM && run.bytes() <= 2 * TURN_BYTES_MAX as u64
}

/// Returns true if a run has little text.
fn is_short(run: &Run) -> bool {
    run.bytes() <= TURN_BYTES_MAX as u64
}

/// Returns the entries of a run, each after a comma. The text is cached with the run.
async fn envelopes(run: Run, turns: &mut Turns) -> Result<RunText, ServiceError> {
    let bytes = if run.has_text(&ENVELOPES) { 0 } else { run.bytes() };
    turns.make(bytes, move || run.text(&ENVELOPES, write_after_comma)).await
}

/// Returns the entries of a run, each after a comma, and caches nothing.
async fn written(run: Run, turns: &mut Turns) -> Result<Bytes, ServiceError> {
    let bytes = run.bytes();
    let write = move || {
        let mut text = String::new();
        run.entries().for_each(|entry| write_after_comma(entry, &mut text));
        text.into()
    };
    turns.make(bytes, write).await
}

fn write_after_comma(entry: &Entry, out: &mut String) {
    out.push_str(COMMA);
    write_envelope(entry, out);
}

/// Returns the entries of a run as JSON with their costs, which are cached with the run; `None` if they are not cached and
/// much work.
pub(super) async fn weighed(
    run: &Run,
    estimator: Estimator,
    turns: &mut Turns,
) -> Result<Option<Vec<EntryText>>, ServiceError> {
    let tokenizer = estimator.tokenizer();
    let bytes = run.unweighed_bytes(&ENVELOPES, tokenizer);
    if bytes > TURN_BYTES_MAX as u64 {
        return Ok(None);
    }
    turns.worked(bytes).await;
    let text = envelopes(run.clone(), turns).await?;
    let json = |text: &[u8]| {
        let json = text.get(COMMA.len()..).unwrap_or_default();
        String::from_utf8_lossy(json).into_owned()
    };
    let weigh = |text: &[u8]| estimator.text(&json(text)).thousandths();
    let weights = run.weights(&ENVELOPES, tokenizer, &text, weigh);
    let costs = weights.each().map(Cost::of_thousandths);
    let entries = run
        .entries()
        .zip(text.each())
        .zip(costs)
        .map(|((entry, text), cost)| EntryText { seq: entry.seq, json: json(&text), cost });
    Ok(Some(entries.collect()))
}
