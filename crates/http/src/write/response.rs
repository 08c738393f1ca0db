//! Responses to writes, made from the receipt alone.
//!
//! A handler gives its write a shape: a closure that makes the whole response from a [`Written`], as a plain value.
//! The closure owns its other inputs, and neither waits nor queries. So any thread may run it, more than once.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use crate::access::session_detail::Sight;
use crate::response::Answer;
use blackboard_address::{entry_url, log_url};
use blackboard_api::intake::items::{Remarks, Skipped};
use blackboard_api::ops::logs::Appended;
use blackboard_api::refusal::Fault;
use blackboard_api::tag::{Resource, Tag};
use blackboard_auth::Caller;
use blackboard_board::{Epoch, Json, LogName, Revision, Seq, SessionName, Version};
use blackboard_service::Receipt;

/// The header that marks a replayed response.
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The capacity that most bodies fit into.
const BODY_BYTES: usize = 256;

/// The maximum number of new entries that a response shows with their tags.
const TAGS_MAX: usize = 100;

/// The outcome of a write.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct WrittenBody {
    /// The session's revision after the write.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with; after an append, the log's.
    /// Absent if the session was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    etag: Option<String>,
    /// The new entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entries: Option<Vec<NewEntry>>,
    /// The number of entries removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted: Option<usize>,
    /// The number of screenshots discarded by the session's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dropped: Option<usize>,
    /// The first 1,000 skipped lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<Skipped>>)]
    skipped: Option<Arc<[Skipped]>>,
    /// The number of skipped lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    skipped_count: Option<usize>,
    /// The strings in `image_str` that are not images, that cannot be shown, or that a provider would reject as they are; at
    /// most 100. They were kept, as in the original.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<Fault>,
}

impl WrittenBody {
    /// Creates a response with the session's revision and the tag of the written resource only.
    fn at(revision: Revision, etag: Option<&Tag>) -> Self {
        let etag = etag.map(|tag| tag.as_str().to_owned());
        Self { revision: revision.0, etag, ..Self::default() }
    }
}

/// A new entry.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewEntry {
    /// The entry's place in its log.
    seq: u64,
    /// The time of the append, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// The entry's tag, if the request made at most 100 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    etag: Option<String>,
}

/// The whole response to a write, independent of HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    status: StatusCode,
    tag: Option<Tag>,
    location: Option<String>,
    revision: Revision,
    /// The JSON text of the body.
    body: String,
    /// The detail in which the response shows its session.
    sight: Sight,
    /// True if the response is a replay.
    replayed: bool,
}

/// A response as stored with its key. Members may be added to the stored form, but not changed.
#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    revision: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// Absent if the response shows everything; earlier versions did not store this member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sight: Option<Sight>,
    body: Box<RawValue>,
}

impl Shaped {
    /// Sets another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Returns the form to store for a replay.
    pub(crate) fn keep(&self) -> Option<Json> {
        let kept = KeptAnswer {
            status: self.status.as_u16(),
            revision: self.revision,
            etag: self.tag.as_ref().map(Tag::to_string),
            location: self.location.clone(),
            sight: (self.sight != Sight::Whole).then_some(self.sight),
            body: RawValue::from_string(self.body.clone()).ok()?,
        };
        to_raw_value(&kept).ok().map(Json::from)
    }

    /// Reads a stored response.
    pub(crate) fn again(kept: &Json) -> Result<Self, serde_json::Error> {
        let kept: KeptAnswer = serde_json::from_str(kept.text())?;
        Ok(Self {
            status: StatusCode::from_u16(kept.status).unwrap_or_default(),
            tag: kept.etag.map(Tag::again),
            location: kept.location,
            revision: kept.revision,
            body: String::from(Box::<str>::from(kept.body)),
            sight: kept.sight.unwrap_or(Sight::Whole),
            replayed: true,
        })
    }

    /// Reduces the response for a caller with fewer rights than the original caller.
    pub(crate) fn seen_with(mut self, sight: Sight, describes: bool) -> ShapeResult {
        if sight >= self.sight {
            return Ok(self);
        }
        let tag = self.tag.clone().map(Tag::of_resource);
        if describes {
            self.body = serde_json::to_string(&WrittenBody::at(self.revision, tag.as_ref()))?;
        } else if let (Some(shown), Some(tag)) = (&self.tag, &tag) {
            let literal = |tag: &Tag| serde_json::to_string(tag.as_str());
            self.body = self.body.replacen(&literal(shown)?, &literal(tag)?, 1);
        }
        self.tag = tag;
        self.sight = sight;
        Ok(self)
    }

    /// Renders the response.
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

/// The result of a shape, which only a bug of the server makes fail.
pub(crate) type ShapeResult = Result<Shaped, serde_json::Error>;

/// A completed write, with everything that its response may show.
pub(crate) struct Written<'a> {
    pub(crate) receipt: &'a Receipt,
    pub(crate) session: &'a SessionName,
    pub(crate) epoch: Epoch,
    /// The caller that gets the response.
    pub(crate) caller: &'a Caller,
    /// True if the response is stored with a key.
    pub(crate) keyed: bool,
}

impl Written<'_> {
    /// Returns the tag of a resource of this session.
    pub(crate) fn tag(&self, version: Version, resource: &Resource) -> Tag {
        Tag::new(self.epoch, version, resource)
    }

    /// Returns the tag that a read of the session by this caller has after the write.
    pub(crate) fn session_tag(&self) -> Tag {
        let Receipt { board, history_bytes, .. } = self.receipt;
        let sight = Sight::of(self.caller);
        Tag::of(self.epoch, &sight.rendering(board.extent(), *history_bytes), "")
    }

    /// Returns the tag of a log after the write.
    pub(crate) fn log_tag(&self, log: &LogName) -> Tag {
        self.tag(self.receipt.board.log_version(log), &Resource::Log(log.clone()))
    }

    /// Returns the tag of an entry after the write.
    pub(crate) fn entry_tag(&self, log: &LogName, seq: Seq) -> Tag {
        let board = &self.receipt.board;
        let entry = board.log(log).and_then(|found| found.get(seq));
        let changed = entry.map_or(board.revision(), |entry| entry.revision);
        self.tag(board.at_version(changed), &Resource::Entry(log.clone(), seq))
    }

    /// Creates a response with this value as its body and the tag of the written resource. Its status is 201, with
    /// the address, if the write created a resource, and 200 otherwise.
    pub(crate) fn json(
        &self,
        tag: Option<Tag>,
        made: Option<String>,
        value: &impl Serialize,
    ) -> ShapeResult {
        // With room for most answers, and for the end of the line.
        let mut body = Vec::with_capacity(BODY_BYTES);
        serde_json::to_writer(&mut body, value)?;
        let body = String::from_utf8(body).map_err(serde_json::Error::custom)?;
        Ok(self.text(tag, made, body))
    }

    /// Creates a response with a JSON text as its body.
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

    /// Creates the response to a write of one resource, changed or already the same.
    pub(crate) fn changed(&self, tag: Tag, made: Option<String>) -> ShapeResult {
        let body = self.body(Some(&tag));
        self.json(Some(tag), made, &body)
    }

    /// Creates the response to a write that removed entries, or a whole session.
    pub(crate) fn removed(&self, tag: Option<Tag>) -> ShapeResult {
        let deleted = self.receipt.answer.removed();
        let body = WrittenBody { deleted, ..self.body(tag.as_ref()) };
        self.json(tag, None, &body)
    }

    /// Creates the response to an append. `Location` and `ETag` are those of a single new entry (RFC 9110, section
    /// 15.3.2); several entries have no address, and the log's tag.
    pub(crate) fn appended(&self, log: &LogName, remarks: &Remarks) -> ShapeResult {
        let tag = self.log_tag(log);
        let Some(appended) = Appended::of(self.receipt) else {
            return self.changed(tag, None);
        };
        let body = self.added(log, &tag, remarks);
        let mut seqs = appended.seqs();
        if let (Some(only), None) = (seqs.next(), seqs.next()) {
            let location = entry_url(self.session, log, only);
            let tag = body.entries.iter().flatten().find_map(|entry| entry.etag.clone());
            return self.json(tag.map(Tag::again), Some(location), &body);
        }
        let shaped = self.json(Some(tag), None, &body)?;
        let status = if appended.count > 0 { StatusCode::CREATED } else { shaped.status };
        Ok(Shaped { status, ..shaped })
    }

    /// Creates the response to a replacement of a log, with its address if the request created it.
    pub(crate) fn replaced(&self, log: &LogName, remarks: &Remarks) -> ShapeResult {
        let tag = self.log_tag(log);
        let made = self.receipt.committed && !self.receipt.existed;
        let body = self.added(log, &tag, remarks);
        self.json(Some(tag), made.then(|| log_url(self.session, log)), &body)
    }

    fn added(&self, log: &LogName, tag: &Tag, remarks: &Remarks) -> WrittenBody {
        let skipped = remarks.skipped.as_ref();
        let body = self.body(Some(tag));
        let Some(appended) = Appended::of(self.receipt) else { return body };
        let board = &self.receipt.board;
        let at = board.updated_at().to_string();
        // A new entry's last change is this write.
        let version = board.at_version(board.revision());
        let etag = |seq| self.tag(version, &Resource::Entry(log.clone(), seq)).as_str().to_owned();
        let entries = appended.seqs().map(|seq| NewEntry {
            seq: seq.0,
            at: at.clone(),
            etag: (appended.count <= TAGS_MAX).then(|| etag(seq)),
        });
        WrittenBody {
            entries: Some(entries.collect()),
            dropped: appended.dropped,
            skipped: skipped.map(|skipped| Arc::clone(&skipped.listed)),
            skipped_count: skipped.map(|skipped| skipped.count),
            warnings: remarks.warnings.clone(),
            ..body
        }
    }

    fn body(&self, etag: Option<&Tag>) -> WrittenBody {
        WrittenBody::at(self.receipt.board.revision(), etag)
    }
}
