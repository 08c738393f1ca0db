//! One way for a write: its condition read, the command carried out, and what it came to.

use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Answer;
use super::etag::{Resource, Tag, condition};
use super::intake::{Skipped, SkippedLines};
use super::problem::Problem;
use super::view::{Images, View};
use crate::board::{self, AgentName, Command, Rejected, SessionName, Version, Write};
use crate::service::{ImageBytes, Patch, Receipt, Service, ServiceError};

/// Up to this size a refused condition shows the resource as it is.
const CURRENT_BYTES_MAX: usize = 64 << 10;

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
    #[schema(nullable = false)]
    skipped: Option<Vec<Skipped>>,
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

/// A write on its way to the service.
pub(super) struct Writing<'a> {
    pub(super) service: &'a Service,
    pub(super) session: SessionName,
    pub(super) author: Option<AgentName>,
    pub(super) headers: &'a HeaderMap,
}

impl Writing<'_> {
    /// Carries out a command that writes `resource`, on the condition that the headers name.
    pub(super) async fn write(
        &self,
        resource: Resource,
        command: Command,
        images: Vec<ImageBytes>,
    ) -> Result<Receipt, Problem> {
        let write = Write {
            session: self.session.clone(),
            command,
            condition: self.condition(&resource)?,
            author: self.author.clone(),
        };
        let result = self.service.write(write, images).await;
        self.receipt(&resource, result).await
    }

    /// Patches an entry, on the condition that the headers name.
    pub(super) async fn patch(
        &self,
        log: board::LogName,
        seq: board::Seq,
        patch: &Patch,
    ) -> Result<Receipt, Problem> {
        let resource = Resource::Entry(log.clone(), seq);
        let condition = self.condition(&resource)?;
        let (session, author) = (self.session.clone(), self.author.clone());
        let result = self.service.patch_entry(session, log, seq, patch, condition, author).await;
        self.receipt(&resource, result).await
    }

    fn condition(&self, resource: &Resource) -> Result<board::Condition, Problem> {
        let published = self.service.published(&self.session)?;
        let session = published.map(|published| published.board.id());
        condition(self.headers, self.service.epoch(), session, resource)
    }

    /// A condition that was refused comes with the present tag, and with the present entry.
    async fn receipt(
        &self,
        resource: &Resource,
        result: Result<Receipt, ServiceError>,
    ) -> Result<Receipt, Problem> {
        let error = match result {
            Ok(receipt) => return Ok(receipt),
            Err(error) => error,
        };
        let ServiceError::Rejected {
            rejected: Rejected::Precondition { present, current }, ..
        } = &error
        else {
            return Err(error.into());
        };
        let (present, current) = (*present, current.clone());
        let mut problem = Problem::from(error);
        if let Some(version) = present {
            problem = problem.header(header::ETAG, self.tag(version, resource).value());
        }
        if let Some(entry) = current
            && let Some(text) = self.current(&entry).await
        {
            problem = problem.member("current", &text);
        }
        Err(problem)
    }

    async fn current(&self, entry: &board::Entry) -> Option<Box<serde_json::value::RawValue>> {
        let view = View { session: self.session.clone(), keys: None, images: Images::Url };
        let published = self.service.published(&self.session).ok()??;
        let mut text = String::new();
        view.write_entry(self.service, &published.board, entry, &mut text).await.ok()?;
        if text.len() > CURRENT_BYTES_MAX {
            return None;
        }
        serde_json::value::RawValue::from_string(text).ok()
    }

    /// The tag of a resource of this session.
    pub(super) fn tag(&self, version: Version, resource: &Resource) -> Tag {
        Tag::new(self.service.epoch(), version, resource)
    }
}

/// The answer to a write that removed entries, or all of a session.
pub(super) fn removed(receipt: &Receipt, tag: Option<&Tag>) -> Result<Response, Problem> {
    let deleted = match receipt.answer {
        board::Answer::Removed { count } => Some(count),
        board::Answer::Done | board::Answer::Added { .. } => None,
    };
    let revision = receipt.board.revision();
    let answer = Answer::of(revision);
    let answer = if let Some(tag) = tag { answer.tag(tag) } else { answer };
    answer.json(&WrittenBody { revision: revision.0, deleted, ..WrittenBody::default() })
}

/// 201 with its address where something was made, else 200; with the tag of what was written.
fn answer_of(receipt: &Receipt, tag: &Tag, made: Option<&str>) -> Answer {
    let answer = Answer::of(receipt.board.revision()).tag(tag);
    match made {
        Some(location) => answer.created(location),
        None => answer,
    }
}

/// The answer to a write that changed one thing, or found it as it was to be.
pub(super) fn changed(
    receipt: &Receipt,
    tag: &Tag,
    made: Option<&str>,
) -> Result<Response, Problem> {
    let revision = receipt.board.revision();
    let answer = answer_of(receipt, tag, made);
    answer.json(&WrittenBody { revision: revision.0, ..WrittenBody::default() })
}

/// The answer to a write that added entries.
pub(super) fn added(
    receipt: &Receipt,
    tag: &Tag,
    made: Option<&str>,
    skipped: Option<SkippedLines>,
) -> Result<Response, Problem> {
    let board::Answer::Added { first, count, dropped } = receipt.answer else {
        return changed(receipt, tag, made);
    };
    let revision = receipt.board.revision();
    let answer = answer_of(receipt, tag, made);
    let at = receipt.board.updated_at().to_string();
    let entries = (first.0..).take(count).map(|seq| NewEntry { seq, at: at.clone() }).collect();
    answer.json(&WrittenBody {
        revision: revision.0,
        entries: Some(entries),
        dropped: (dropped > 0).then_some(dropped),
        skipped_count: skipped.as_ref().map(|skipped| skipped.count),
        skipped: skipped.map(|skipped| skipped.listed),
        ..WrittenBody::default()
    })
}
