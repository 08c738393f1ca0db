//! Entity tags, and the conditions that name them.
//!
//! A tag says how a resource was left by its last change, and behind a dash which rendering of it
//! this is. A condition on a write compares the first half only: it is about the resource. Tags hold
//! the store's epoch and the session's identity, so none matches across a deletion or a restore.

use std::fmt;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use sha2::{Digest as _, Sha256};

use crate::board::{
    AgentName, Code, Condition, Epoch, LogName, Matches, Revision, Seq, SessionId, StatePath,
    Version,
};
use crate::http::response::problem::Problem;

/// The parameters that say when a rendering is shown, and not what is shown.
const OF_WAITING: [&str; 3] = ["min_revision=", "wait=", "until="];

/// How many bytes of a tag are its quotes.
const QUOTES: usize = 2;

/// How long most tags are at most.
const TAG_BYTES: usize = 48;

/// How many tags a condition may name.
const TAGS_MAX: usize = 64;

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

/// Whether a read's `If-None-Match` names this tag, so that the answer is 304. It compares weakly, as
/// RFC 9110 has it for reads.
pub(crate) fn is_known(headers: &HeaderMap, tag: &Tag) -> Result<bool, Problem> {
    Ok(match tags(headers, &header::IF_NONE_MATCH)? {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::These(tags)) => tags.iter().any(|known| known.text == tag.0),
    })
}

/// The condition of a write on `resource` of a session that is `session` now, if it exists.
pub(crate) fn condition(
    headers: &HeaderMap,
    epoch: Epoch,
    session: Option<SessionId>,
    resource: &Resource,
) -> Result<Condition, Problem> {
    let absent = match tags(headers, &header::IF_NONE_MATCH)? {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::These(_)) => {
            let detail = "on a write, If-None-Match takes only *";
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    };
    let matches = match tags(headers, &header::IF_MATCH)? {
        None => None,
        Some(Tags::Any) => Some(Matches::Any),
        Some(Tags::These(tags)) => {
            let named = |tag: &Named<'_>| version(tag.text, tag.weak, epoch, session?, resource);
            Some(Matches::Versions(tags.iter().filter_map(named).collect()))
        }
    };
    Ok(Condition { matches, absent })
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

struct Named<'a> {
    weak: bool,
    /// With its quotes.
    text: &'a str,
}

enum Tags<'a> {
    Any,
    These(Vec<Named<'a>>),
}

/// The tags of a condition (RFC 9110, section 13.1).
fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Tags<'a>>, Problem> {
    let malformed = || {
        let detail = format!("{name} is * or a list of entity tags in double quotes");
        Problem::new(Code::InvalidParameter, detail)
    };
    let mut tags = Vec::new();
    for value in headers.get_all(name) {
        let mut rest = value.to_str().map_err(|_| malformed())?.trim();
        if rest == "*" {
            return Ok(Some(Tags::Any));
        }
        while !rest.is_empty() {
            let (tag, after) = one_tag(rest).ok_or_else(malformed)?;
            tags.push(tag);
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with(',') {
                return Err(malformed());
            }
            rest = after.trim_start_matches([' ', '\t', ',']);
        }
        if tags.len() > TAGS_MAX {
            let detail = format!("{name} has at most {TAGS_MAX} entity tags");
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    }
    if tags.is_empty() && headers.contains_key(name) {
        return Err(malformed());
    }
    Ok((!tags.is_empty()).then_some(Tags::These(tags)))
}

fn one_tag(text: &str) -> Option<(Named<'_>, &str)> {
    let weak = text.strip_prefix("W/");
    let tag = weak.unwrap_or(text);
    let inner = tag.strip_prefix('"')?.find('"')?;
    let (text, after) = tag.split_at_checked(inner + QUOTES)?;
    Some((Named { weak: weak.is_some(), text }, after))
}

#[cfg(test)]
mod tests;
