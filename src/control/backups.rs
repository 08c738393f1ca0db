//! Backups and checks of the running store.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Done, Refusal, done};
use crate::service::Service;

/// The size of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// The bytes written; a linked image adds none.
    pub bytes: u64,
    /// The number of images.
    pub images: u64,
}

/// Damage at one place of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// A description, for people.
    pub damaged: String,
}

/// The totals of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The number of commits.
    pub commits: u64,
    /// The number of sessions.
    pub sessions: usize,
    /// The number of their images.
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
