//! Entity tags: a resource's state, and its rendering.
//!
//! The state stands for the resource's last change; a rendering follows after a dash. Tags depend on the store's epoch
//! and the session's identity, so none matches across a deletion or a restored backup. The hash is `SipHash` with the epoch
//! as its key: a client that does not know the epoch cannot make a tag.

use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::push;
use blackboard_board::{
    AgentName, Attention, CheckpointName, Digest, Epoch, LogName, Revision, Seq, SessionId,
    StatePath, Version,
};

/// The parameters that decide when a rendering is shown, not what it shows.
const OF_WAITING: [&str; 3] = ["min_revision=", "wait=", "until="];

/// The number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 16;

/// The capacity that most tags fit into.
const TAG_BYTES: usize = 48;

/// The resource that a tag belongs to.
#[derive(Clone, Debug)]
pub enum Resource {
    /// The whole session.
    Session,
    /// The four logs as one dictionary.
    Blackboard,
    /// One log.
    Log(LogName),
    /// One entry.
    Entry(LogName, Seq),
    /// The bytes of a screenshot's image.
    Image(Seq),
    /// A blob.
    Blob(Digest),
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
    /// One checkpoint.
    Checkpoint(CheckpointName),
    /// All that waits for an agent.
    Attention(AgentName, Attention),
    /// The session's commits.
    Audit,
    /// The difference between two revisions.
    Diff(Revision, Revision),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::Blackboard => f.write_str("blackboard"),
            // Every append names a log and an entry: written without a second formatter.
            Self::Log(log) => f.write_str("log ").and_then(|()| log.fmt(f)),
            Self::Entry(log, seq) => {
                f.write_str("entry ")?;
                seq.fmt(f)?;
                f.write_str(" of ")?;
                log.fmt(f)
            }
            Self::Image(seq) => write!(f, "image {seq}"),
            Self::Blob(sha256) => write!(f, "blob {sha256}"),
            Self::Prompt => f.write_str("prompt"),
            Self::Cost(log) => write!(f, "cost of {log}"),
            Self::State(path) => write!(f, "state {:?}", path.segments()),
            Self::Agents => f.write_str("agents"),
            Self::Agent(agent) => write!(f, "agent {agent}"),
            Self::Checkpoints => f.write_str("checkpoints"),
            Self::Checkpoint(name) => write!(f, "checkpoint {name}"),
            Self::Attention(agent, attention) => write!(f, "attention of {agent}: {attention:?}"),
            Self::Audit => f.write_str("audit"),
            Self::Diff(from, to) => write!(f, "diff from {from} to {to}"),
        }
    }
}

/// Text that is hashed as it is written.
struct Hashed(SipHasher13);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One rendering of a resource, as a version left it.
#[derive(Clone, Debug)]
pub struct Rendering {
    resource: Resource,
    version: Version,
    format: String,
}

impl Rendering {
    /// Creates the plain rendering.
    pub fn of(resource: Resource, version: Version) -> Self {
        Self { resource, version, format: String::new() }
    }

    /// Sets a form other than the plain one.
    pub fn in_format(self, format: impl Into<String>) -> Self {
        Self { format: format.into(), ..self }
    }
}

/// An entity tag, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// Returns the tag of a resource at `version`.
    pub fn new(epoch: Epoch, version: Version, resource: &Resource) -> Self {
        let mut text = String::with_capacity(TAG_BYTES);
        text.push('"');
        write_state(epoch, version, resource, &mut text);
        text.push('"');
        Self(text)
    }

    /// Returns the tag of the rendering by `query` and `format`. The plain rendering has neither.
    pub fn rendering(self, query: &str, format: &str) -> Self {
        let shown =
            query.split('&').filter(|pair| !OF_WAITING.iter().any(|name| pair.starts_with(name)));
        let shown = shown.collect::<Vec<_>>().join("&");
        if shown.is_empty() && format.is_empty() {
            return self;
        }
        let parts = [shown.as_bytes(), format.as_bytes()];
        let rendering = hash_of(SipHasher13::new(), &parts) & 0xffff_ffff;
        Self(format!("{}-{rendering:08x}\"", self.0.trim_end_matches('"')))
    }

    /// Returns the tag of a rendering requested by `query`.
    pub fn of(epoch: Epoch, shown: &Rendering, query: &str) -> Self {
        Self::new(epoch, shown.version, &shown.resource).rendering(query, &shown.format)
    }

    /// Returns the tag of an answer without a revision, by a hash of its bytes.
    pub fn of_bytes(epoch: Epoch, bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(TAG_BYTES);
        text.push('"');
        push_hex(&mut text, hash_of(keyed(epoch), &[bytes]), HASH_DIGITS);
        text.push('"');
        Self(text)
    }

    /// Restores a tag from the text of an earlier answer.
    pub fn again(text: String) -> Self {
        Self(text)
    }

    /// Returns the tag of the resource alone, without a rendering. Conditions accept this tag as well.
    pub fn of_resource(self) -> Self {
        match self.0.split_once('-') {
            Some((state, _)) => Self(format!("{state}\"")),
            None => self,
        }
    }

    /// Returns the tag's text without its quotes.
    pub fn bare(&self) -> &str {
        self.0.trim_matches('"')
    }

    /// Returns the tag's text, with its quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes a state. The hash includes the revision, so that no tag can be derived from another one.
fn write_state(epoch: Epoch, version: Version, resource: &Resource, out: &mut String) {
    let changed = version.changed.0;
    // All parts but the last have a fixed length, so that no two sequences have the same bytes.
    let mut hash = keyed(epoch);
    hash.write(version.session.0.as_bytes());
    hash.write(&changed.to_be_bytes());
    let mut hashed = Hashed(hash);
    push(&mut hashed, format_args!("{resource}"));
    push_hex(out, changed, 1);
    out.push('.');
    push_hex(out, hashed.0.finish(), HASH_DIGITS);
}

/// Appends a number in hexadecimal, with zeros before it if it has fewer digits than these.
fn push_hex(out: &mut String, number: u64, digits_min: usize) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4) as usize;
    for place in (0..digits.max(digits_min)).rev() {
        let digit = (number >> (4 * place) & 0xf) as u32;
        out.extend(char::from_digit(digit, 16));
    }
}

fn keyed(epoch: Epoch) -> SipHasher13 {
    SipHasher13::new_with_key(&epoch.0.to_be_bytes())
}

/// Returns the hash of parts with their lengths, so that no two sequences have the same bytes.
fn hash_of(mut hash: SipHasher13, parts: &[&[u8]]) -> u64 {
    for part in parts {
        hash.write(&(part.len() as u64).to_be_bytes());
        hash.write(part);
    }
    hash.finish()
}

/// Returns the version that a tag of this resource stands for; `None` for any other tag.
pub fn version(
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
    let mut state = String::with_capacity(TAG_BYTES);
    write_state(epoch, version, resource, &mut state);
    (!weak && state == own).then_some(version)
}

#[cfg(test)]
mod tests;
