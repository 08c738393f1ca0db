//! Backups and checks of the running store.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};

use super::answer::{Answer, Done, Refusal, done};
use blackboard_service::{Service, ServiceError};
use blackboard_store::{Progress, Reached};

/// The time between two lines of progress.
const STEP_EVERY: Duration = Duration::from_millis(250);

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

/// How far the work has come, for clients that ask to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The stage and its counters.
    pub progress: Reached,
}

/// A line of a check before the last one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Finding {
    /// Damage.
    Fault(Fault),
    /// Progress.
    Step(Step),
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

pub(super) async fn backup(service: &Service, to: &Path, tells: bool, answer: &mut Answer) -> Done {
    let progress = Arc::new(Progress::default());
    let work = service.maintenance().back_up(absolute(to)?, Arc::clone(&progress));
    let copied = telling(work, tells.then_some(&*progress), answer).await?;
    done(&BackedUp { bytes: copied.bytes, images: copied.blobs })
}

fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(path);
    if path.is_absolute() { Ok(path) } else { Err(Refusal::Relative(path)) }
}

/// Waits for work, and writes a line of its progress from time to time if there are counters.
async fn telling<T>(
    work: impl Future<Output = Result<T, ServiceError>>,
    progress: Option<&Progress>,
    answer: &mut Answer,
) -> Result<T, Refusal> {
    let Some(progress) = progress else { return Ok(work.await?) };
    let mut work = pin!(work);
    let mut ticks = interval(STEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done?),
            _ = ticks.tick() => {
                answer.lines(&json_line(&Step { progress: progress.reached() })?).await?;
            }
        }
    }
}

fn json_line(told: &impl Serialize) -> Result<String, Refusal> {
    let mut line = serde_json::to_string(told).map_err(Refusal::Unwritten)?;
    line.push('\n');
    Ok(line)
}

pub(super) async fn check(
    service: &Service,
    scratch: Option<&Path>,
    tells: bool,
    answer: &mut Answer,
) -> Done {
    let scratch = scratch.map(absolute).transpose()?;
    let progress = Arc::new(Progress::default());
    let work = service.maintenance().check(scratch, Arc::clone(&progress));
    let soundness = telling(work, tells.then_some(&*progress), answer).await?;
    for damaged in soundness.faults() {
        answer.lines(&json_line(&Fault { damaged })?).await?;
    }
    let (commits, sessions, images) = (soundness.commits, soundness.sessions, soundness.images);
    done(&Checked { commits, sessions, images })
}
