//! Entity tags: the state of a resource, and behind a dash its rendering.
//!
//! The state is how the last change left the resource. Tags hold the store's epoch and the session's identity, so
//! none matches across a deletion or a restored backup.

use std::fmt;

use axum::http::HeaderValue;
use sha2::{Digest as _, Sha256};

use crate::board::{AgentName, Epoch, LogName, Revision, Seq, SessionId, StatePath, Version};

/// The parameters that say when a rendering is shown, and not what is shown.
const OF_WAITING: [&str; 3] = ["min_revision=", "wait=", "until="];

/// How long most tags are at most.
const TAG_BYTES: usize = 48;

/// What a tag is about.
#[derive(Clone, Debug)]
pub(crate) enum Resource {
    /// The whole session.
    Session,
    /// Its four logs together, as a dictionary.
    Blackboard,
    /// One log.
    Log(LogName),
    /// One entry.
    Entry(LogName, Seq),
    /// The bytes of a screenshot's image.
    Image(Seq),
    /// A prompt made from the board.
    Prompt,
    /// The cost of an agent's memory.
    Cost(LogName),
    /// A value of the state.
    State(StatePath),
    /// All agents together.
    Agents,
    /// One agent.
    Agent(AgentName),
    /// All checkpoints together.
    Checkpoints,
    /// Its commits.
    Audit,
    /// The difference between it at the one revision and at the other.
    Diff(Revision, Revision),
}

impl Resource {
    fn key(&self) -> String {
        match self {
            Self::Session => "session".to_owned(),
            Self::Blackboard => "blackboard".to_owned(),
            Self::Log(log) => format!("log {log}"),
            Self::Entry(log, seq) => format!("entry {seq} of {log}"),
            Self::Image(seq) => format!("image {seq}"),
            Self::Prompt => "prompt".to_owned(),
            Self::Cost(log) => format!("cost of {log}"),
            Self::State(path) => format!("state {:?}", path.segments()),
            Self::Agents => "agents".to_owned(),
            Self::Agent(agent) => format!("agent {agent}"),
            Self::Checkpoints => "checkpoints".to_owned(),
            Self::Audit => "audit".to_owned(),
            Self::Diff(from, to) => format!("diff from {from} to {to}"),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One rendering of a resource, as a version left it.
#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    resource: Resource,
    version: Version,
    format: String,
}

impl Rendering {
    /// The plain one.
    pub(crate) fn of(resource: Resource, version: Version) -> Self {
        Self { resource, version, format: String::new() }
    }

    /// In another form than the plain one.
    pub(crate) fn in_format(self, format: impl Into<String>) -> Self {
        Self { format: format.into(), ..self }
    }
}

/// An entity tag, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag(String);

impl Tag {
    /// The tag of a resource as `version` left it.
    pub(crate) fn new(epoch: Epoch, version: Version, resource: &Resource) -> Self {
        let mut text = String::with_capacity(TAG_BYTES);
        text.push('"');
        text.push_str(&state(epoch, version, resource));
        text.push('"');
        Self(text)
    }

    /// The tag of one rendering of it: `query` and `format` tell which. The plain one has neither.
    pub(crate) fn rendering(self, query: &str, format: &str) -> Self {
        let shown =
            query.split('&').filter(|pair| !OF_WAITING.iter().any(|name| pair.starts_with(name)));
        let shown = shown.collect::<Vec<_>>().join("&");
        if shown.is_empty() && format.is_empty() {
            return self;
        }
        let rendering = short_hash(&[shown.as_bytes(), format.as_bytes()]) & 0xffff_ffff;
        Self(format!("{}-{rendering:08x}\"", self.0.trim_end_matches('"')))
    }

    /// The tag of a rendering that `query` asked for.
    pub(crate) fn of(epoch: Epoch, shown: &Rendering, query: &str) -> Self {
        Self::new(epoch, shown.version, &shown.resource).rendering(query, &shown.format)
    }

    /// The tag of an answer that has no revision: of its bytes.
    pub(crate) fn of_bytes(epoch: Epoch, bytes: &[u8]) -> Self {
        Self(format!("\"{:016x}\"", short_hash(&[&epoch.0.to_be_bytes(), bytes])))
    }

    /// A tag that was given before, as its text says it.
    pub(crate) fn again(text: String) -> Self {
        Self(text)
    }

    /// The tag of the resource alone, whichever rendering this is of: a condition takes it as well.
    pub(crate) fn of_resource(self) -> Self {
        match self.0.split_once('-') {
            Some((state, _)) => Self(format!("{state}\"")),
            None => self,
        }
    }

    /// The tag's text, with its quotes.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag as a header's value.
    pub(crate) fn value(&self) -> HeaderValue {
        // A tag is printable ASCII by construction.
        HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
    }
}

/// The revision is in the hash too, so that no tag can be made from another one.
fn state(epoch: Epoch, version: Version, resource: &Resource) -> String {
    let changed = version.changed.0;
    // All but the last have one length, so that no two of these have the same bytes. As they are, they
    // mostly fit into one block of the hash.
    let mut hash = Sha256::new();
    hash.update(epoch.0.to_be_bytes());
    hash.update(version.session.0.as_bytes());
    hash.update(changed.to_be_bytes());
    hash.update(resource.key().as_bytes());
    let hash = shortened(hash);
    format!("{changed:x}.{hash:016x}")
}

fn short_hash(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    shortened(hash)
}

fn shortened(hash: Sha256) -> u64 {
    let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// The version that a tag of this resource stands for; `None` for any other tag.
pub(crate) fn version(
    text: &str,
    weak: bool,
    epoch: Epoch,
    session: SessionId,
    resource: &Resource,
) -> Option<Version> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let own = inner.split('-').next()?;
    let changed = u64::from_str_radix(own.split('.').next()?, 16).ok()?;
    let version = Version { session, changed: Revision(changed) };
    (!weak && state(epoch, version, resource) == own).then_some(version)
}

#[cfg(test)]
mod tests;
