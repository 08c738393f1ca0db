//! The stored body of a commit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::change::StoredChange;
use crate::packed::{Body, PackedText, Packing};
use crate::{
    AgentName, Change, Commit, Digest, Forgotten, Json, Kept, Key, LogChange, Nonce, Revision,
    Timestamp, TraceId,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCommit<'a> {
    revision: Revision,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, AgentName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<TraceId>,
    nonce: Nonce,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency: Option<StoredKept<'a>>,
    changes: Vec<StoredChange<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKept<'a> {
    key: Cow<'a, str>,
    fingerprint: Digest,
    answer: Cow<'a, RawValue>,
    #[serde(default, skip_serializing_if = "is_none")]
    forgotten: Forgotten,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(forgotten: &Forgotten) -> bool {
    forgotten.0 == 0
}

/// Encodes the body of a commit, as contained in its frame.
///
/// # Errors
///
/// [`Unreadable`] if the commit cannot be written as JSON, which happens for no valid commit.
pub fn encode_commit(commit: &Commit) -> Result<Vec<u8>, Unreadable> {
    let mut body = Vec::with_capacity(expected_bytes(commit));
    serde_json::to_writer(&mut body, &StoredCommit::from(commit))?;
    Ok(body)
}

/// Encodes the body of a commit for its frame. A large one is compressed; its texts that are packed are not compressed
/// again.
///
/// # Errors
///
/// [`Unreadable`] as for [`encode_commit`].
pub fn encode_body(commit: &Commit, texts: &[&PackedText]) -> Result<Body<'static>, Unreadable> {
    if texts.is_empty() {
        return encode_commit(commit).map(|body| Body::of(Cow::Owned(body)));
    }
    let mut packing = Packing::new(texts);
    serde_json::to_writer(&mut packing, &StoredCommit::from(commit))?;
    let packed = packing.finish().map_err(serde_json::Error::io)?;
    Ok(Body::Packed(packed))
}

impl<'a> From<&'a Commit> for StoredCommit<'a> {
    fn from(commit: &'a Commit) -> Self {
        Self {
            revision: commit.revision,
            at: commit.at,
            agent: commit.agent.as_ref().map(Cow::Borrowed),
            trace: commit.trace,
            nonce: commit.nonce,
            idempotency: commit.kept.as_ref().map(StoredKept::from),
            changes: commit.changes.iter().map(StoredChange::from).collect(),
        }
    }
}

/// Estimates the size of an appending commit's body, so that the buffer is not reallocated.
fn expected_bytes(commit: &Commit) -> usize {
    const ITSELF: usize = 256;
    const ITEM_ITSELF: usize = 1;
    let of = |change: &Change| {
        let Change::Log(_, LogChange::Appended { items, .. }) = change else { return 0 };
        items.iter().map(|item| item.text().len() + ITEM_ITSELF).sum()
    };
    ITSELF + commit.changes.iter().map(of).sum::<usize>()
}

/// Reads the body of a commit.
///
/// # Errors
///
/// [`Unreadable`] if the body is not in this format.
pub fn decode_commit(body: &[u8]) -> Result<Commit, Unreadable> {
    let stored: StoredCommit<'_> = serde_json::from_slice(body)?;
    let revision = stored.revision;
    let changes = stored.changes.into_iter().map(|change| change.restore(revision));
    Ok(Commit {
        revision,
        at: stored.at,
        agent: stored.agent.map(Cow::into_owned),
        trace: stored.trace,
        nonce: stored.nonce,
        kept: stored.idempotency.map(Kept::from),
        changes: changes.collect::<Result<_, _>>()?,
    })
}

impl<'a> From<&'a Kept> for StoredKept<'a> {
    fn from(kept: &'a Kept) -> Self {
        Self {
            key: Cow::Borrowed(&kept.key.key),
            fingerprint: kept.key.fingerprint,
            answer: Cow::Borrowed(kept.answer.raw()),
            forgotten: kept.forgotten,
        }
    }
}

impl From<StoredKept<'_>> for Kept {
    fn from(stored: StoredKept<'_>) -> Self {
        Self {
            key: Key { key: stored.key.into(), fingerprint: stored.fingerprint },
            answer: Json::from(stored.answer.into_owned()),
            forgotten: stored.forgotten,
        }
    }
}
