//! Answers to writes, made from the receipt alone.
//!
//! A handler gives its write a shape: a closure that makes the whole answer of a [`Written`], as a plain
//! value. It owns what it needs besides, waits for nothing, and asks nobody, so that any thread may run
//! it, and more than once.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use crate::api::intake::items::{Skipped, SkippedLines};
use crate::auth::Caller;
use crate::board;
use crate::board::{Epoch, Json, LogName, Revision, Seq, SessionName, Version};
use crate::http::access::visibility::Sight;
use crate::http::response::Answer;
use crate::http::response::tag::{Resource, Tag};
use crate::service::Receipt;

/// The header of an answer that was given before.
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What a write came to.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct WrittenBody {
    /// The session's revision after it.
    revision: u64,
    /// The entries that it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entries: Option<Vec<NewEntry>>,
    /// How many entries it removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted: Option<usize>,
    /// How many screenshots were not kept, because the session is set so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dropped: Option<usize>,
    /// The lines that were passed over, the first 1,000 of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<Skipped>>)]
    skipped: Option<Arc<[Skipped]>>,
    /// How many lines were passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    skipped_count: Option<usize>,
}

impl WrittenBody {
    /// The session is at this revision, and that is all there is to tell.
    pub(crate) fn at(revision: Revision) -> Self {
        Self { revision: revision.0, ..Self::default() }
    }
}

/// An entry that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewEntry {
    /// Its place in its log.
    seq: u64,
    /// When, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
}

/// The whole answer to a write, before it is HTTP's.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    status: StatusCode,
    tag: Option<Tag>,
    location: Option<String>,
    revision: Revision,
    /// A JSON text.
    body: String,
    /// How much it tells of its session.
    sight: Sight,
    /// Whether it was given before.
    replayed: bool,
}

/// An answer as it is kept with its key. It is stored, so a member may come but none may change.
#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    revision: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// Absent where it is all: earlier versions did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sight: Option<Sight>,
    body: Box<RawValue>,
}

impl Shaped {
    /// What is kept of it, to be given again.
    pub(crate) fn keep(&self) -> Option<Json> {
        let kept = KeptAnswer {
            status: self.status.as_u16(),
            revision: self.revision,
            etag: self.tag.as_ref().map(Tag::to_string),
            location: self.location.clone(),
            sight: (self.sight != Sight::Exact).then_some(self.sight),
            body: RawValue::from_string(self.body.clone()).ok()?,
        };
        to_raw_value(&kept).ok().map(Json::from)
    }

    /// The answer that was given before.
    pub(crate) fn again(kept: &Json) -> Result<Self, serde_json::Error> {
        let kept: KeptAnswer = serde_json::from_str(kept.text())?;
        Ok(Self {
            status: StatusCode::from_u16(kept.status).unwrap_or_default(),
            tag: kept.etag.map(Tag::again),
            location: kept.location,
            revision: kept.revision,
            body: String::from(Box::<str>::from(kept.body)),
            sight: kept.sight.unwrap_or(Sight::Exact),
            replayed: true,
        })
    }

    /// The answer for a caller who may see less than the one whom it was given to.
    pub(crate) fn seen_with(mut self, sight: Sight, describes: bool) -> ShapeResult {
        if sight >= self.sight {
            return Ok(self);
        }
        if describes {
            self.body = serde_json::to_string(&WrittenBody::at(self.revision))?;
        }
        self.tag = self.tag.map(Tag::of_resource);
        self.sight = sight;
        Ok(self)
    }

    /// The answer as it leaves.
    pub(crate) fn into_response(self) -> Response {
        let mut answer = Answer::of(self.revision).status(self.status);
        if self.replayed {
            answer = answer.header(REPLAYED_HEADER, HeaderValue::from_static("true"));
        }
        if let Some(tag) = &self.tag {
            answer = answer.tag(tag);
        }
        if let Some(location) = &self.location {
            answer = answer.location(location);
        }
        answer.text(self.body)
    }
}

/// What a shape comes to: nothing but a fault of ours makes it fail.
pub(crate) type ShapeResult = Result<Shaped, serde_json::Error>;

/// A write that was carried out: all that its answer may tell of.
pub(crate) struct Written<'a> {
    pub(crate) receipt: &'a Receipt,
    pub(crate) session: &'a SessionName,
    pub(crate) epoch: Epoch,
    /// Who is answered.
    pub(crate) caller: &'a Caller,
    /// Whether the answer is kept with a key.
    pub(crate) keyed: bool,
}

impl Written<'_> {
    /// The tag of a resource of this session.
    pub(crate) fn tag(&self, version: Version, resource: &Resource) -> Tag {
        Tag::new(self.epoch, version, resource)
    }

    /// The tag that a read of the session by the same caller has, as the write left it.
    pub(crate) fn session_tag(&self) -> Tag {
        let Receipt { board, history_bytes, .. } = self.receipt;
        let sight = Sight::of(self.caller);
        Tag::of(self.epoch, &sight.rendering(board.extent(), *history_bytes), "")
    }

    /// The tag of a log as the write left it.
    pub(crate) fn log_tag(&self, log: &LogName) -> Tag {
        self.tag(self.receipt.board.log_version(log), &Resource::Log(log.clone()))
    }

    /// The tag of an entry as the write left it.
    pub(crate) fn entry_tag(&self, log: &LogName, seq: Seq) -> Tag {
        let board = &self.receipt.board;
        let entry = board.log(log).and_then(|found| found.get(seq));
        let changed = entry.map_or(board.revision(), |entry| entry.revision);
        self.tag(board.at_version(changed), &Resource::Entry(log.clone(), seq))
    }

    /// An answer with this value as its body: 201 with its address where something was made, else 200;
    /// with the tag of what was written.
    pub(crate) fn json(
        &self,
        tag: Option<Tag>,
        made: Option<String>,
        value: &impl Serialize,
    ) -> ShapeResult {
        Ok(self.text(tag, made, serde_json::to_string(value)?))
    }

    /// The same with a JSON text as its body.
    pub(crate) fn text(&self, tag: Option<Tag>, made: Option<String>, body: String) -> Shaped {
        Shaped {
            status: if made.is_some() { StatusCode::CREATED } else { StatusCode::OK },
            tag,
            location: made,
            revision: self.receipt.board.revision(),
            body,
            sight: Sight::of(self.caller),
            replayed: false,
        }
    }

    /// The answer to a write that changed one thing, or found it as it was to be.
    pub(crate) fn changed(&self, tag: Tag, made: Option<String>) -> ShapeResult {
        self.json(Some(tag), made, &self.body())
    }

    /// The answer to a write that removed entries, or all of a session.
    pub(crate) fn removed(&self, tag: Option<Tag>) -> ShapeResult {
        let deleted = self.receipt.answer.removed();
        self.json(tag, None, &WrittenBody { deleted, ..self.body() })
    }

    /// The answer to a write that added entries.
    pub(crate) fn added(
        &self,
        tag: Tag,
        made: Option<String>,
        skipped: Option<&SkippedLines>,
    ) -> ShapeResult {
        let board::Answer::Added { first, count, dropped } = self.receipt.answer else {
            return self.changed(tag, made);
        };
        let at = self.receipt.board.updated_at().to_string();
        let entries = (first.0..).take(count).map(|seq| NewEntry { seq, at: at.clone() }).collect();
        let body = WrittenBody {
            entries: Some(entries),
            dropped: (dropped > 0).then_some(dropped),
            skipped: skipped.map(|skipped| Arc::clone(&skipped.listed)),
            skipped_count: skipped.map(|skipped| skipped.count),
            ..self.body()
        };
        self.json(Some(tag), made, &body)
    }

    fn body(&self) -> WrittenBody {
        WrittenBody::at(self.receipt.board.revision())
    }
}
