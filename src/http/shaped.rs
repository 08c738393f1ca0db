//! What a write answers, made from its receipt alone.
//!
//! A handler gives its write a shape: a closure that makes the whole answer of a [`Written`], as a plain
//! value. It owns what it needs besides, waits for nothing, and asks nobody, so that any thread may run
//! it, and more than once.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Answer;
use super::etag::{Resource, Tag};
use super::intake::{Skipped, SkippedLines};
use crate::board::{self, Epoch, LogName, Revision, SessionName, Version};
use crate::service::Receipt;

/// What a write came to.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct WrittenBody {
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

/// An entry that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewEntry {
    /// Its place in its log.
    seq: u64,
    /// When, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
}

/// The whole answer to a write, before it is HTTP's.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    status: StatusCode,
    tag: Option<Tag>,
    location: Option<String>,
    revision: Revision,
    /// A JSON text.
    body: String,
}

impl Shaped {
    /// The answer as it leaves.
    pub(super) fn into_response(self) -> Response {
        let mut answer = Answer::of(self.revision).status(self.status);
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
pub(super) type ShapeResult = Result<Shaped, serde_json::Error>;

/// A write that was carried out: all that its answer may tell of.
pub(super) struct Written<'a> {
    pub(super) receipt: &'a Receipt,
    pub(super) session: &'a SessionName,
    pub(super) epoch: Epoch,
}

impl Written<'_> {
    /// The tag of a resource of this session.
    pub(super) fn tag(&self, version: Version, resource: &Resource) -> Tag {
        Tag::new(self.epoch, version, resource)
    }

    /// The tag of a log as the write left it.
    pub(super) fn log_tag(&self, log: &LogName) -> Tag {
        self.tag(self.receipt.board.log_version(log), &Resource::Log(log.clone()))
    }

    /// An answer with this value as its body: 201 with its address where something was made, else 200;
    /// with the tag of what was written.
    pub(super) fn json(
        &self,
        tag: Option<Tag>,
        made: Option<String>,
        value: &impl Serialize,
    ) -> ShapeResult {
        Ok(Shaped {
            status: if made.is_some() { StatusCode::CREATED } else { StatusCode::OK },
            tag,
            location: made,
            revision: self.receipt.board.revision(),
            body: serde_json::to_string(value)?,
        })
    }

    /// The answer to a write that changed one thing, or found it as it was to be.
    pub(super) fn changed(&self, tag: Tag, made: Option<String>) -> ShapeResult {
        self.json(Some(tag), made, &self.body())
    }

    /// The answer to a write that removed entries, or all of a session.
    pub(super) fn removed(&self, tag: Option<Tag>) -> ShapeResult {
        let deleted = match self.receipt.answer {
            board::Answer::Removed { count } => Some(count),
            board::Answer::Done | board::Answer::Added { .. } => None,
        };
        self.json(tag, None, &WrittenBody { deleted, ..self.body() })
    }

    /// The answer to a write that added entries.
    pub(super) fn added(
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
        WrittenBody { revision: self.receipt.board.revision().0, ..WrittenBody::default() }
    }
}
