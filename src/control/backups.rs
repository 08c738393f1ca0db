//! Backups and checks of the running store.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Done, Refusal, done};
use crate::service::Service;

/// What a backup took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// How many bytes were written; a linked image has none.
    pub bytes: u64,
    /// How many images it has.
    pub images: u64,
}

/// What is wrong in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// A sentence.
    pub damaged: String,
}

/// What a check read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// How many commits there are.
    pub commits: u64,
    /// How many sessions.
    pub sessions: usize,
    /// How many images they have.
    pub images: usize,
}

pub(super) async fn backup(service: &Service, to: &Path) -> Done {
    let copied = service.back_up(absolute(to)?).await?;
    done(&BackedUp { bytes: copied.bytes, images: copied.blobs })
}

fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(path);
    if path.is_absolute() { Ok(path) } else { Err(Refusal::Relative(path)) }
}

pub(super) async fn check(service: &Service, scratch: Option<&Path>, answer: &mut Answer) -> Done {
    let scratch = scratch.map(absolute).transpose()?;
    let soundness = service.check(scratch).await?;
    for damaged in soundness.faults() {
        let mut line = serde_json::to_string(&Fault { damaged }).map_err(Refusal::Unwritten)?;
        line.push('\n');
        answer.lines(&line).await?;
    }
    let (commits, sessions, images) = (soundness.commits, soundness.sessions, soundness.images);
    done(&Checked { commits, sessions, images })
}
