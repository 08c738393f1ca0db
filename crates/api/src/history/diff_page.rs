//! A page of differences between two revisions of a session, as JSON.

use std::borrow::Cow;
use std::sync::Arc;
use std::vec::IntoIter;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::diff::{Difference, Differences, How, Sides};
use crate::offload::work;
use crate::pieces::{PIECE_BYTES, Pieces};
use crate::push;
use crate::refusal::Refusal;
use crate::view::Shown;
use crate::view::change::{labels_text, settings_text};
use crate::view::entry::{CancelBody, ClaimBody, DoneBody, FailedBody, ImageBody, imageless};
use crate::view::state::text_of;
use crate::view::{raw, write_json};
use blackboard_address::{agent_path, image_url, log_path};
use blackboard_auth::Caller;
use blackboard_board::{
    Board, Entry, LogName, Revision, Seq, SessionName, Settings, StatePath, Timestamp, Work,
};
use blackboard_service::ServiceError;

/// A page of differences.
#[derive(ToSchema)]
#[expect(dead_code, reason = "written by hand: its three lists are made piece by piece")]
pub struct DiffBody {
    /// The revision compared from.
    from: u64,
    /// The revision compared to.
    to: u64,
    /// The places present only in `to`.
    added: Vec<DifferenceBody<'static>>,
    /// The places present in both, with different values.
    changed: Vec<DifferenceBody<'static>>,
    /// The places present only in `from`.
    removed: Vec<DifferenceBody<'static>>,
    /// True if more differences follow.
    more: bool,
    /// The value of `after` for the next page.
    next: u64,
}

/// A difference at one place of the board.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct DifferenceBody<'a> {
    /// The place, as an address within the session.
    #[schema(example = "trajectories/17")]
    path: String,
    /// The item of an entry that was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Object>)]
    item: Option<Cow<'a, RawValue>>,
    /// The value of any other place that was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Value>)]
    value: Option<Cow<'a, RawValue>>,
    /// The old item or value of a place that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Value>)]
    before: Option<Cow<'a, RawValue>>,
    /// The new item or value of a place that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Value>)]
    after: Option<Cow<'a, RawValue>>,
    /// The entry's stored image; the last one if the entry was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'a>>,
    /// The claim on a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    claim: Option<ClaimBody<'a>>,
    /// The end of a request, and its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    done: Option<DoneBody<'a>>,
    /// The result of a request that waits for a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    in_review: Option<DoneBody<'a>>,
    /// The end of a request that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cancelled: Option<CancelBody<'a>>,
    /// The end of a request whose attempts all failed, or whose deadline passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    failed: Option<FailedBody<'a>>,
    /// The requests of the plan that are not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<u64>>)]
    blocked_by: Option<&'a [Seq]>,
    /// The time when its owner acknowledged a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    acked_at: Option<Shown<Timestamp>>,
}

/// Compares on another thread if there is much to compare.
pub async fn compared(
    caller: Caller,
    before: Arc<Board>,
    after: Arc<Board>,
    skip: usize,
    limit: usize,
) -> Result<Differences, Refusal> {
    let bytes = usize::try_from(before.bytes().saturating_add(after.bytes()));
    let compare = move || Ok(Differences::between(&caller, &before, &after, skip, limit));
    work(bytes.unwrap_or(usize::MAX), compare).await
}

/// A page of differences, written piece by piece.
pub struct DiffPieces {
    session: SessionName,
    /// The revisions compared from and to.
    ends: (Revision, Revision),
    /// Each list with its name.
    lists: IntoIter<(&'static str, Vec<Difference>)>,
    /// The rest of the list being written.
    left: IntoIter<Difference>,
    next: usize,
    more: bool,
    begun: bool,
    first: bool,
    /// The text that ends the previous list.
    closes: &'static str,
}

impl DiffPieces {
    /// Begins a page after `skip` differences.
    pub fn new(
        session: SessionName,
        ends: (Revision, Revision),
        skip: usize,
        page: Differences,
    ) -> Self {
        let (mut added, mut changed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let next = skip.saturating_add(page.found.len());
        for difference in page.found {
            match difference.how() {
                How::Added => added.push(difference),
                How::Changed => changed.push(difference),
                How::Removed => removed.push(difference),
            }
        }
        let lists = vec![("added", added), ("changed", changed), ("removed", removed)];
        Self {
            session,
            ends,
            lists: lists.into_iter(),
            left: Vec::new().into_iter(),
            next,
            more: page.more,
            begun: false,
            first: true,
            closes: "",
        }
    }

    fn write_one(&self, difference: &Difference, out: &mut String) {
        let settings = |settings: &Arc<Settings>| Cow::Owned(raw(settings_text(settings)));
        let body = match difference {
            Difference::Entry(log, sides) => self.entry(log, sides),
            Difference::State(step, sides) => {
                let names = step.names().into_iter().map(StatePath::escape);
                let path = names.fold("state".to_owned(), |path, name| format!("{path}/{name}"));
                DifferenceBody::of(path, sides, |value| Cow::Owned(raw(text_of(value))))
            }
            Difference::Agent(agent, sides) => {
                DifferenceBody::of(agent_path(agent), sides, |item| Cow::Borrowed(item.raw()))
            }
            Difference::Settings(sides) => {
                DifferenceBody::of("settings".to_owned(), sides, settings)
            }
            Difference::Labels(sides) => DifferenceBody::of("labels".to_owned(), sides, |labels| {
                Cow::Owned(raw(labels_text(labels)))
            }),
        };
        write_json(&body, out);
    }

    /// Shows an entry as an item, with its image and work after the change, or before its removal.
    fn entry<'a>(&self, log: &LogName, sides: &'a Sides<Arc<Entry>>) -> DifferenceBody<'a> {
        let path = |entry: &Entry| format!("{}/{}", log_path(log), entry.seq);
        let Some(entry) = sides.after.as_ref().or(sides.before.as_ref()) else {
            return DifferenceBody::default();
        };
        let body = DifferenceBody::of(path(entry), sides, |entry| imageless(&entry.item));
        let at = if sides.after.is_some() { self.ends.1 } else { self.ends.0 };
        let image = entry.item.image().map(|image| {
            ImageBody::of(format!("{}?at={at}", image_url(&self.session, entry.seq)), image)
        });
        let work = entry.work.as_deref();
        DifferenceBody {
            item: body.value,
            value: None,
            image,
            claim: work.and_then(Work::claim).map(ClaimBody::of),
            done: work.and_then(Work::done).map(DoneBody::of),
            in_review: work.and_then(Work::in_review).map(DoneBody::in_review),
            failed: work.and_then(Work::failed).map(FailedBody::of),
            cancelled: work.and_then(Work::cancelled).map(CancelBody::of),
            blocked_by: entry.task.as_deref().map(|task| &*task.blocked_by),
            acked_at: entry.acked_at.map(Shown),
            ..body
        }
    }
}

impl<'a> DifferenceBody<'a> {
    /// Shows both sides, or the only side as the value.
    fn of<T>(
        path: String,
        sides: &'a Sides<T>,
        shown: impl Fn(&'a T) -> Cow<'a, RawValue>,
    ) -> Self {
        let (before, after) = (sides.before.as_ref().map(&shown), sides.after.as_ref().map(&shown));
        match (before, after) {
            (before @ Some(_), after @ Some(_)) => Self { path, before, after, ..Self::default() },
            (value, None) | (None, value) => Self { path, value, ..Self::default() },
        }
    }
}

impl Pieces for DiffPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let start = out.len();
        if !self.begun {
            self.begun = true;
            let (from, to) = self.ends;
            push(out, format_args!("{{\"from\":{from},\"to\":{to}"));
        }
        loop {
            while let Some(difference) = self.left.next() {
                if !std::mem::take(&mut self.first) {
                    out.push(',');
                }
                self.write_one(&difference, out);
                if out.len() - start >= PIECE_BYTES {
                    return Ok(true);
                }
            }
            let Some((name, list)) = self.lists.next() else { break };
            push(out, format_args!("{},\"{name}\":[", std::mem::replace(&mut self.closes, "]")));
            (self.left, self.first) = (list.into_iter(), true);
        }
        let Self { more, next, closes, .. } = self;
        push(out, format_args!("{closes},\"more\":{more},\"next\":{next}}}\n"));
        Ok(false)
    }
}
