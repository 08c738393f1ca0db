//! The record of what each session of a host was told, in the folder of the user's state.
//!
//! One file an agent, locked while it is read and written. A file that is damaged is an empty one: a thing is then told
//! again rather than never.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::lists::Kind;
use super::notice::Reader;
use super::waiting::Thing;
use crate::system::{make_dir, open_state, state_home};

/// The maximum size of a file, in bytes.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// The sessions of hosts that are kept for an agent; the one that was asked for least recently goes first.
const SESSIONS_MAX: usize = 32;

/// The things that are kept for a session of a host; the oldest go first. At most 100 are in an agent's lists at once.
const TOLD_MAX: usize = 1_000;

/// The time to wait for another hook of the same agent, and between two tries.
const LOCK_MAX: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The file of one agent.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
}

/// What the file holds.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Contents {
    /// The revision up to which answers were told to some session.
    next: Option<u64>,
    sessions: BTreeMap<String, Told>,
}

/// What one session of a host was told.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Told {
    /// When it was asked for last, in seconds.
    at: i64,
    /// The revision up to which it was told everything.
    pub(super) after: Option<u64>,
    /// The hook that waits for it.
    pub(super) waiter: Option<String>,
    keys: Vec<String>,
}

impl Contents {
    /// Returns what a session of a host was told, which is nothing the first time.
    pub(super) fn session(&mut self, name: &str) -> &mut Told {
        if !self.sessions.contains_key(name) && self.sessions.len() >= SESSIONS_MAX {
            let oldest = self.sessions.iter().min_by_key(|(_, told)| told.at);
            let oldest = oldest.map(|(name, _)| name.clone()).unwrap_or_default();
            self.sessions.remove(&oldest);
        }
        let told = self.sessions.entry(name.to_owned()).or_default();
        told.at = Timestamp::now().as_second();
        told
    }

    /// Returns what is new to a session of a host. An answer from before the first look at an agent is not.
    pub(super) fn news<'a>(&mut self, name: &str, things: &'a [Thing]) -> Vec<&'a Thing> {
        let next = self.next;
        let told = self.session(name);
        let is_past = |thing: &Thing| {
            let is_first = told.after.is_none() && thing.kind == Kind::Answers;
            is_first && next.is_none_or(|next| thing.revision <= next)
        };
        let is_new = |thing: &&Thing| !told.keys.contains(&thing.key) && !is_past(thing);
        things.iter().filter(is_new).collect()
    }

    /// Notes that a session of a host was told these things, and if they were all, up to which revision.
    pub(super) fn tell(&mut self, name: &str, things: &[&Thing], whole: Option<u64>) {
        let told = self.session(name);
        told.keys.extend(things.iter().map(|thing| thing.key.clone()));
        let surplus = told.keys.len().saturating_sub(TOLD_MAX);
        told.keys.drain(..surplus);
        if whole.is_some() {
            told.after = whole;
            self.next = self.next.max(whole);
        }
    }
}

impl Record {
    /// Returns the record of an agent at a server.
    pub(super) fn of(url: &str, reader: Reader<'_>) -> io::Result<Self> {
        let home = state_home().ok_or(io::ErrorKind::NotFound)?;
        let folder = home.join("blackboard").join("attention");
        make_dir(&folder)?;
        let Reader { session, agent } = reader;
        let name = Sha256::digest(format!("{url}\n{session}\n{agent}"));
        Ok(Self { path: folder.join(format!("{name:x}.json")) })
    }

    /// Reads and changes the record, alone among the hooks of this agent. An error of `work` changes nothing.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&mut Contents) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut file = open_state(&self.path)?;
        locked(&file)?;
        let mut contents = read(&mut file)?;
        let done = work(&mut contents)?;
        let text = serde_json::to_string(&contents).map_err(io::Error::other)?;
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        Ok(done)
    }
}

fn read(file: &mut File) -> io::Result<Contents> {
    let mut text = Vec::new();
    file.take(RECORD_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).unwrap_or_default())
}

/// Locks a file until it is closed.
fn locked(file: &File) -> io::Result<()> {
    let end = Instant::now() + LOCK_MAX;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
