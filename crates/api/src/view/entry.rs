//! Entries and items as JSON, with selected members and the form of stored images.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::inline_image::Inline;
use super::{Shown, raw, write_json};
use crate::intake::query::{ImagesName, Texts, many, queries};
use crate::params::Params;
use crate::refusal::Refusal;
use crate::schema::shapes::member;
use crate::yielding::Turns;
use blackboard_address::image_url;
use blackboard_board::{
    AgentName, Board, Cancel, Claim, Digest, Done, Entry, Failed, IMAGE_MEMBER, Image, ImagesShown,
    Item, Json, LogName, OpenEntry, Outcome, PastAttempt, Review, Seq, SessionName, Task,
    Timestamp, Verdict, Work, json,
};
use blackboard_service::{ServiceError, SessionHandle};

queries! {
    /// The form of entries.
    pub ShownQuery {
        /// Only these members of each item
        keys: Texts => many(member()),
        /// The form of a screenshot's stored image: `url`, the default, describes the image in the envelope; `inline`
        /// has it in the item, as it was sent; `none` omits it
        images: ImagesName = ImagesShown::Url,
    }
}

/// The form in which items are shown.
#[derive(Clone, Debug)]
pub struct View {
    /// The items' session, whose name is in the addresses of images.
    pub session: SessionName,
    /// The members to show; all if absent.
    pub keys: Option<Arc<[String]>>,
    /// The form of stored images.
    pub images: ImagesShown,
}

/// The place of the item in an envelope. No string within an envelope has these characters: it would escape the quotes.
const NO_ITEM: &str = "\"item\":null";

const NULL: &str = "null";

impl View {
    /// Takes the form of a session's entries.
    pub fn params(session: &SessionName, params: &mut Params) -> Result<Self, Refusal> {
        let ShownQuery { keys, images } = ShownQuery::take(params)?;
        Ok(Self { session: session.clone(), keys: keys.map(Arc::from), images })
    }

    fn shows(&self, member: &str) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key == member))
    }

    /// Writes an entry in its envelope.
    pub async fn write_entry(
        &self,
        session: &SessionHandle,
        board: &Board,
        entry: &Entry,
        out: &mut String,
    ) -> Result<(), ServiceError> {
        match self.begin_entry(session, board, entry, out).await? {
            Some(rest) => rest.write_all(out).await,
            None => Ok(()),
        }
    }

    /// Writes an entry in its envelope, up to its inline image, if it has one.
    pub(crate) async fn begin_entry(
        &self,
        session: &SessionHandle,
        board: &Board,
        entry: &Entry,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        let envelope = EntryBody::of(entry, expires_at(board, entry));
        if self.shows_bytes(&entry.item).is_some() {
            write_json(&envelope, out);
            truncate_item(out);
            let rest = self.begin_item(session, board, &entry.item, out).await?;
            return Ok(rest.map(|rest| rest.and("}")));
        }
        let image = entry.item.image().filter(|_| self.images == ImagesShown::Url);
        let image = image.map(|image| ImageBody::of(image_url(&self.session, entry.seq), image));
        write_json(&EntryBody { image, ..envelope }, out);
        // The item takes the place of its null: as a raw value it would be parsed once more.
        if let Some(place) = out.rfind(NO_ITEM) {
            let end = out.split_off(place + NO_ITEM.len());
            out.truncate(out.len() - NULL.len());
            out.push_str(&self.imageless(&entry.item).await?);
            out.push_str(&end);
        }
        Ok(None)
    }

    /// Writes an entry in its envelope, if that needs neither a selection nor an image.
    pub fn write_whole(&self, board: &Board, entry: &Entry, out: &mut String) -> bool {
        let is_whole = self.keys.is_none() && entry.item.image().is_none();
        if is_whole {
            write_with_item(&EntryBody::of(entry, expires_at(board, entry)), &entry.item, out);
        }
        is_whole
    }

    /// Returns the stored image of an item, if its bytes are shown.
    fn shows_bytes<'a>(&self, item: &'a Item) -> Option<&'a Image> {
        let shows_image = self.images == ImagesShown::Inline && self.shows(IMAGE_MEMBER);
        item.image().filter(|_| shows_image)
    }

    /// Writes an item alone, up to its inline image, if it has one.
    pub async fn begin_item(
        &self,
        session: &SessionHandle,
        board: &Board,
        item: &Item,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        let Some(image) = self.shows_bytes(item) else {
            out.push_str(&self.imageless(item).await?);
            return Ok(None);
        };
        let selected = match self.keys {
            Some(_) => {
                self.worked(item, |view, item| item.selected(|name| view.shows(name))).await?
            }
            None => item.clone(),
        };
        let (before, after) = selected.around_image();
        out.push_str(before);
        Ok(Some(Inline::new(session.image_pieces(board, image).await?, after)))
    }

    /// Returns an item without its stored image, if it has one.
    async fn imageless<'a>(&self, item: &'a Item) -> Result<Cow<'a, str>, ServiceError> {
        if self.keys.is_none() && item.image().is_none() {
            return Ok(Cow::Borrowed(item.text()));
        }
        let select = |view: &Self, item: &Item| {
            let is_shown =
                |name: &str| view.shows(name) && (item.image().is_none() || name != IMAGE_MEMBER);
            json::select(item.text(), is_shown)
        };
        Ok(Cow::Owned(self.worked(item, select).await?))
    }

    /// Computes a value from an item's text, on a thread that may block if the text is long.
    async fn worked<T: Send + 'static>(
        &self,
        item: &Item,
        work: impl FnOnce(&Self, &Item) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (view, item) = (self.clone(), item.clone());
        Turns::default().make(item.bytes(), move || work(&view, &item)).await
    }
}

/// An item in its envelope.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryBody<'a> {
    /// The place in the log, from 1, never used again.
    #[schema(example = 17)]
    seq: u64,
    /// The revision of the last change.
    #[schema(example = 1042)]
    revision: u64,
    /// The time of the append, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Shown<Timestamp>,
    /// The author of the append, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    agent: Option<&'a str>,
    /// The time of the last change, if the entry was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    updated_at: Option<Shown<Timestamp>>,
    /// The author of the last change, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    updated_by: Option<&'a str>,
    /// The deadline of a question for its answer, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    expires_at: Option<Shown<Timestamp>>,
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
    /// The end of a request whose attempts all failed, or whose deadline passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    failed: Option<FailedBody<'a>>,
    /// The end of a request that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cancelled: Option<CancelBody<'a>>,
    /// The cancellation of a claimed request, which ends with the claim, or with the verdict on its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cancel: Option<CancelBody<'a>>,
    /// The priority, if it is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    priority: Option<i8>,
    /// The time before which the request cannot be claimed, until it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    not_before: Option<Shown<Timestamp>>,
    /// The time at which the request fails, unless it ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    deadline: Option<Shown<Timestamp>>,
    /// True if another agent must accept the result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    review: bool,
    /// The requests that must be done before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<u64>>)]
    after: Option<&'a [Seq]>,
    /// Those of `after` that are not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<u64>>)]
    blocked_by: Option<&'a [Seq]>,
    /// Those of `blocked_by` that failed or were cancelled: the request waits until they are retried and done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<Vec<u64>>)]
    stopped_by: Option<&'a [Seq]>,
    /// The number of claims that may end without success before the request fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    attempts: Option<u32>,
    /// With `attempts`: the number of claims that ended without success.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    failures: Option<u32>,
    /// The last ends of claims without success, oldest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    past_attempts: Vec<AttemptBody<'a>>,
    /// The time when its owner acknowledged a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Option<String>, format = DateTime)]
    acked_at: Option<Shown<Timestamp>>,
    /// The item, as it was sent.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    item: &'a RawValue,
    /// The stored image, with `images=url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody<'a>>,
}

impl<'a> EntryBody<'a> {
    /// Creates the envelope of an entry without an image or a deadline, with its item.
    pub fn whole(entry: &'a Entry) -> Self {
        Self { item: entry.item.raw(), ..Self::of(entry, None) }
    }

    /// Creates the envelope of an entry, without the item.
    fn of(entry: &'a Entry, expires_at: Option<Timestamp>) -> Self {
        let Entry { seq, revision, at, agent, updated, work, task, acked_at, .. } = entry;
        let task = task.as_deref();
        let plan = task.map(|task| &task.plan);
        Self {
            seq: seq.0,
            revision: revision.0,
            at: Shown(*at),
            agent: agent.as_ref().map(AgentName::as_str),
            updated_at: updated.as_ref().map(|updated| Shown(updated.at)),
            updated_by: updated
                .as_ref()
                .and_then(|updated| updated.by.as_ref())
                .map(AgentName::as_str),
            expires_at: expires_at.map(Shown),
            claim: work.as_deref().and_then(Work::claim).map(ClaimBody::of),
            done: work.as_deref().and_then(Work::done).map(DoneBody::of),
            in_review: work.as_deref().and_then(Work::in_review).map(DoneBody::in_review),
            failed: work.as_deref().and_then(Work::failed).map(FailedBody::of),
            cancelled: work.as_deref().and_then(Work::cancelled).map(CancelBody::of),
            cancel: task.and_then(|task| task.cancel.as_deref()).map(CancelBody::of),
            priority: plan.map(|plan| plan.priority.get()).filter(|priority| *priority != 0),
            not_before: plan.and_then(|plan| plan.not_before).map(Shown),
            deadline: plan.and_then(|plan| plan.deadline).map(Shown),
            review: plan.is_some_and(|plan| plan.review),
            after: plan.map(|plan| &*plan.after).filter(|after| !after.is_empty()),
            blocked_by: task.map(|task| &*task.blocked_by).filter(|blocked| !blocked.is_empty()),
            stopped_by: task.map(|task| &*task.stopped_by).filter(|stopped| !stopped.is_empty()),
            attempts: plan.and_then(|plan| plan.attempts),
            failures: task.and_then(Task::failures_of_attempts),
            past_attempts: task.map(AttemptBody::all).unwrap_or_default(),
            acked_at: acked_at.map(Shown),
            item: RawValue::NULL,
            image: None,
        }
    }
}

/// A stored image.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImageBody<'a> {
    /// The address of the image's bytes.
    url: String,
    /// The media type.
    #[schema(example = "image/png")]
    media_type: &'a str,
    /// The size in bytes.
    bytes: u64,
    /// The SHA-256 of the bytes, in hexadecimal.
    #[schema(value_type = String)]
    sha256: Shown<Digest>,
    /// The width in pixels, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    width: Option<u32>,
    /// The height in pixels, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    height: Option<u32>,
}

impl<'a> ImageBody<'a> {
    pub(crate) fn of(url: String, image: &'a Image) -> Self {
        Self {
            url,
            media_type: image.media_type(),
            bytes: image.bytes,
            sha256: Shown(image.sha256),
            width: image.size.map(|(width, _)| width),
            height: image.size.map(|(_, height)| height),
        }
    }
}

/// An agent's claim on a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimBody<'a> {
    /// The claiming agent.
    agent: &'a str,
    /// The revision at which the claim was won.
    fence: u64,
    /// The deadline, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Shown<Timestamp>,
}

impl<'a> ClaimBody<'a> {
    /// Returns the claim as it is shown.
    pub fn of(claim: &'a Claim) -> Self {
        let Claim { agent, fence, expires_at, .. } = claim;
        Self { agent: agent.as_str(), fence: fence.0, expires_at: Shown(*expires_at) }
    }
}

/// The end of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DoneBody<'a> {
    /// The author, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    agent: Option<&'a str>,
    /// The time, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Shown<Timestamp>,
    /// The fence of the claim under which the request was finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    result: Option<&'a RawValue>,
    /// The verdict by which the result was accepted, if it was reviewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    verdict: Option<VerdictBody<'a>>,
}

impl<'a> DoneBody<'a> {
    pub(crate) fn of(done: &'a Done) -> Self {
        let Done { agent, at, fence, result, verdict } = done;
        Self {
            agent: agent.as_ref().map(AgentName::as_str),
            at: Shown(*at),
            fence: fence.map(|fence| fence.0),
            result: result.as_ref().map(Json::raw),
            verdict: verdict.as_deref().map(VerdictBody::of),
        }
    }

    pub(crate) fn in_review(review: &'a Review) -> Self {
        Self::of(&review.done)
    }
}

/// The verdict by which a result was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerdictBody<'a> {
    /// The agent that gave it.
    agent: &'a str,
    /// The time, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Shown<Timestamp>,
    /// The reason, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    reason: Option<&'a RawValue>,
}

impl<'a> VerdictBody<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let Verdict { agent, at, reason } = verdict;
        let reason = reason.as_ref().map(Json::raw);
        Self { agent: agent.as_str(), at: Shown(*at), reason }
    }
}

/// The cancellation of a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelBody<'a> {
    /// The reason, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    reason: Option<&'a RawValue>,
    /// The agent that cancelled it, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    agent: Option<&'a str>,
    /// The time, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Shown<Timestamp>,
}

impl<'a> CancelBody<'a> {
    /// Returns the cancellation as it is shown.
    pub fn of(cancel: &'a Cancel) -> Self {
        let Cancel { agent, at, reason } = cancel;
        let agent = agent.as_ref().map(AgentName::as_str);
        Self { reason: reason.as_ref().map(Json::raw), agent, at: Shown(*at) }
    }
}

/// Returns the past attempts of a request as JSON, if it has any.
pub fn past_attempts(entry: &Entry) -> Option<String> {
    let attempts = entry.task.as_deref().map(AttemptBody::all)?;
    let mut text = String::new();
    (!attempts.is_empty()).then(|| write_json(&attempts, &mut text))?;
    Some(text)
}

/// The end of an attempt without success.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptBody<'a> {
    /// The agent that made the attempt, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    agent: Option<&'a str>,
    /// The time at which the claim was won, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    from: Shown<Timestamp>,
    /// The time at which the attempt ended, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    to: Shown<Timestamp>,
    /// The end: `failed`; `lapsed` if the claim expired; `released` if it was given back, or ended by a cancellation, restore or fork;
    /// `refused` if the result was not accepted.
    #[schema(value_type = String)]
    outcome: Outcome,
    /// The reason, if one was given. A reason over 2 KiB is cut, and is a string then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    reason: Option<&'a RawValue>,
}

impl<'a> AttemptBody<'a> {
    fn all(task: &'a Task) -> Vec<Self> {
        task.past_attempts.iter().map(Self::of).collect()
    }

    fn of(attempt: &'a PastAttempt) -> Self {
        let PastAttempt { agent, from, to, outcome, reason } = attempt;
        Self {
            agent: agent.as_ref().map(AgentName::as_str),
            from: Shown(*from),
            to: Shown(*to),
            outcome: *outcome,
            reason: reason.as_ref().map(Json::raw),
        }
    }
}

/// The end of a request whose attempts all failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedBody<'a> {
    /// The agent that held the last claim. A request whose deadline passed may have had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    agent: Option<&'a str>,
    /// The time of the end, RFC 3339 in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Shown<Timestamp>,
    /// The reason: the agent's, if it gave one, or `deadline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Value)]
    reason: Option<&'a RawValue>,
}

impl<'a> FailedBody<'a> {
    pub(crate) fn of(failed: &'a Failed) -> Self {
        let Failed { agent, at, reason, .. } = failed;
        let reason = reason.as_ref().map(Json::raw);
        Self { agent: agent.as_ref().map(AgentName::as_str), at: Shown(*at), reason }
    }
}

/// An open entry, with its session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AskedBody<'a> {
    /// The entry's session.
    #[schema(example = "sess_12345")]
    session: &'a str,
    #[serde(flatten)]
    entry: EntryBody<'a>,
}

/// Renders an open entry as JSON. Neither a board nor an image's bytes are needed.
pub(crate) fn asked(session: &SessionName, question: &OpenEntry) -> Box<RawValue> {
    let OpenEntry { entry, expires_at } = question;
    let item = imageless(&entry.item);
    let image = entry.item.image();
    let image = image.map(|image| ImageBody::of(image_url(session, entry.seq), image));
    let entry = EntryBody { item: &item, image, ..EntryBody::of(entry, *expires_at) };
    let mut text = String::new();
    write_json(&AskedBody { session: session.as_str(), entry }, &mut text);
    raw(text)
}

/// Writes an entry without an image or a deadline in its envelope.
pub(crate) fn write_envelope(entry: &Entry, out: &mut String) {
    write_with_item(&EntryBody::of(entry, None), &entry.item, out);
}

/// Writes an envelope with the item as its last member, which is not parsed again.
fn write_with_item(envelope: &EntryBody<'_>, item: &Item, out: &mut String) {
    write_json(envelope, out);
    truncate_item(out);
    out.push_str(item.text());
    out.push('}');
}

/// Returns the deadline of a question for its answer. Entries of other logs have the same seqs, but no deadline.
fn expires_at(board: &Board, entry: &Entry) -> Option<Timestamp> {
    let awaited = board.asked().awaited(entry.seq)?;
    let question = board.log(&LogName::Questions)?.get(entry.seq)?;
    std::ptr::eq(&raw const **question, entry).then_some(awaited.expires_at)
}

/// Removes the null of the item from an envelope that ends with it, and the brace after it.
fn truncate_item(out: &mut String) {
    out.truncate(out.len().saturating_sub(NULL.len() + "}".len()));
}

/// Returns an item without its stored image, if it has one.
pub(crate) fn imageless(item: &Item) -> Cow<'_, RawValue> {
    match item.image() {
        Some(_) => Cow::Owned(raw(json::select(item.text(), |name| name != IMAGE_MEMBER))),
        None => Cow::Borrowed(item.raw()),
    }
}
