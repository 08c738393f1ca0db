//! Admission of imported commits and bases.
//!
//! The limits of this server apply besides the checks of `admit`. An admitted history can be applied, shown, extended
//! and expired like a local one.

use super::{Misfit, REVISION_MAX, admit, admit_default};
use crate::commit::restored::Restored;
use crate::commit::{
    COMMIT_ITEMS_MAX, Change, Commit, Contents, IMAGES_FORGOTTEN_MAX, LogChange, SessionChange,
};
use crate::decide::check_fields;
use crate::json;
use crate::json::DEPTH_MAX;
use crate::log::{Entry, LogName};
use crate::model::agent::{
    AGENT_STATES_MAX, AGENTS_MAX, Agent, AgentStates, PROFILE_BYTES_MAX, Profile, Status,
};
use crate::model::blob::BLOBS_MAX;
use crate::model::idempotency::{KEY_CHARS_MAX, KEYS_MAX};
use crate::model::prompt_profile::are_profiles;
use crate::model::settings::{HISTORY_KEYS_MAX, LABEL_BYTES_MAX, LABELS_MAX, Labels, Settings};
use crate::model::tasks::caps::{CAPS_MAX, Cap};
use crate::state::STATE_BYTES_MAX;
use crate::values::attempt::Cancel;
use crate::values::blob_ref::BLOB_BYTES_MAX;
use crate::values::claim::{Done, Failed, Review, Work};
use crate::values::image::IMAGE_BYTES_MAX;
use crate::values::task::{Plan, Task};
use crate::values::time::TTL_DAYS_MAX;
use crate::{Board, Budget, Item, Json, Kept, Revision, Timestamp};

/// The highest revision of an imported history. The session continues from it, far below [`REVISION_MAX`].
pub const FOREIGN_REVISION_MAX: Revision = Revision(REVISION_MAX / 2);

/// The maximum time by which an imported commit may be ahead of this server's clock, in milliseconds. The session's
/// time does not advance until the clock catches up.
pub const CLOCK_AHEAD_MS_MAX: i64 = DAY_MS;

/// The maximum time from the end of an imported history to a deadline, in milliseconds.
const LIFE_MS_MAX: i64 = TTL_DAYS_MAX * DAY_MS;

/// The maximum number of removals of requests in one imported commit. A transaction makes far fewer.
const REMOVALS_MAX: usize = 10_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The reason why an imported commit or base is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// The commit does not fit its board.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A value exceeds a limit that every write to this server obeys.
    #[error("{what} exceeds its limit or is malformed")]
    Beyond {
        /// The name of the value.
        what: &'static str,
    },
    /// The commit's time or a deadline is too far in the future.
    #[error("a timestamp is too far in the future")]
    Late,
    /// The commit or base leaves the session deleted.
    #[error("the history ends with the deletion of its session")]
    Over,
}

/// Checks that a commit of another server may be applied to this board. `now` is this server's time.
///
/// # Errors
///
/// The first [`Foreign`] found.
pub(crate) fn admit_foreign(board: &Board, commit: &Commit, now: Timestamp) -> Result<(), Foreign> {
    check(commit.revision <= FOREIGN_REVISION_MAX, "the revision")?;
    if commit.ends_session() {
        return Err(Foreign::Over);
    }
    let bounds = Bounds::of(now);
    bounds.past(commit.at)?;
    if let Some(kept) = &commit.kept {
        check_kept(board, kept)?;
    }
    let items = commit.changes.iter().map(|change| change.items().len()).sum::<usize>();
    check(items <= COMMIT_ITEMS_MAX, "the number of items")?;
    check_work(&commit.changes)?;
    for change in &commit.changes {
        bounds.check_change(change)?;
    }
    Ok(admit(board, commit)?)
}

/// Limits the changes that scan the whole board, as for commits decided here.
fn check_work(changes: &[Change]) -> Result<(), Foreign> {
    let restores =
        changes.iter().any(|change| matches!(change, Change::Session(SessionChange::Restored(_))));
    check(!restores || changes.len() == 1, "the number of changes beside a restore")?;
    let of_requests = |change: &&Change| {
        matches!(change, Change::Log(LogName::Requests, LogChange::Removed { .. }))
    };
    let removals = changes.iter().filter(of_requests).count();
    check(removals <= REMOVALS_MAX, "the number of removals")
}

/// Checks the size of a board after an imported base or commit.
///
/// # Errors
///
/// [`Foreign::Beyond`] if the state is too large, or if there are too many agents.
pub(crate) fn check_size(board: &Board) -> Result<(), Foreign> {
    check(board.state.bytes() <= STATE_BYTES_MAX, "the state")?;
    check(board.blobs.len() <= BLOBS_MAX, "the number of blobs")?;
    check(board.agents_known() <= AGENTS_MAX, "the number of agents")
}

/// Checks a board that was imported as a base. `now` is this server's time.
///
/// # Errors
///
/// The first [`Foreign`] found.
pub(crate) fn check_foreign(board: &Board, now: Timestamp) -> Result<(), Foreign> {
    check(board.revision <= FOREIGN_REVISION_MAX, "the revision")?;
    let Some(life) = &board.life else { return Err(Foreign::Over) };
    let bounds = Bounds::of(now);
    [board.updated_at, board.written_at, life.created_at]
        .into_iter()
        .try_for_each(|at| bounds.past(at))?;
    check_settings(&life.settings, &life.labels)?;
    for log in board.all_logs() {
        log.iter().try_for_each(|entry| bounds.check_entry(entry))?;
    }
    board.agents.values().try_for_each(|agent| bounds.check_agent(agent))?;
    for checkpoint in board.checkpoints.values() {
        bounds.past(checkpoint.at)?;
    }
    for (key, remembered) in board.keys.iter() {
        bounds.past(remembered.at)?;
        check_key(key)?;
    }
    let files = board.images.values().all(|bytes| *bytes <= BLOB_BYTES_MAX as u64);
    check(files, "an image or blob")?;
    for until in board.asked.awaited.values() {
        check(admit_default(until), "a question's default")?;
        bounds.end(until.expires_at)?;
    }
    let ends = board.state.expiries().map(|(_, at)| at);
    let tasks = [board.tasks.leases(), board.tasks.early(), board.tasks.deadlines()];
    let tasks = tasks.into_iter().flatten().map(|(at, _)| *at);
    ends.chain(tasks).try_for_each(|at| bounds.end(at))?;
    check_size(board)
}

fn check(fits: bool, what: &'static str) -> Result<(), Foreign> {
    if fits { Ok(()) } else { Err(Foreign::Beyond { what }) }
}

fn check_item(item: &Item) -> Result<(), Foreign> {
    check(item.is_sound(), "an item")?;
    let fits = item.image().is_none_or(|image| image.bytes <= IMAGE_BYTES_MAX as u64);
    check(fits, "an image")
}

fn check_profile(profile: &Profile) -> Result<(), Foreign> {
    let item = profile.item();
    let fits = item.is_sound()
        && item.image().is_none()
        && item.text().len() <= PROFILE_BYTES_MAX
        && check_fields(item).is_ok();
    check(fits, "an agent's profile")
}

/// Checks a value: a single line of JSON within the depth limit.
fn check_json(value: &Json) -> Result<(), Foreign> {
    let text = value.text();
    let fits = !text.contains(['\n', '\r']) && json::check(text, DEPTH_MAX).is_ok();
    check(fits, "a value")
}

fn check_kept(board: &Board, kept: &Kept) -> Result<(), Foreign> {
    check_key(&kept.key.key)?;
    let known = board.keys.len().saturating_sub(kept.forgotten.0);
    check(known < KEYS_MAX, "the number of keys")
}

fn check_key(key: &str) -> Result<(), Foreign> {
    check((1..=KEY_CHARS_MAX).contains(&key.len()), "a key")
}

fn check_settings(settings: &Settings, labels: &Labels) -> Result<(), Foreign> {
    let short = |text: &String| text.len() <= LABEL_BYTES_MAX;
    let labelled = labels.len() <= LABELS_MAX
        && labels.iter().all(|(name, value)| short(name) && short(value));
    check(labelled, "a label")?;
    let keys = settings.history_keys.as_ref();
    let named = keys.is_none_or(|keys| keys.len() <= HISTORY_KEYS_MAX && keys.iter().all(short));
    check(named, "a history key")?;
    check(settings.agent_states.as_ref().is_none_or(are_states), "an added status")?;
    check(settings.cost_max.is_none_or(Budget::is_sound), "a budget")?;
    let caps = settings.running_max.as_ref();
    let capped = |caps: &Vec<Cap>| {
        caps.len() <= CAPS_MAX && caps.iter().all(|cap| cap.is_sound(LABEL_BYTES_MAX))
    };
    check(caps.is_none_or(capped), "a cap")?;
    check(settings.profiles.as_ref().is_none_or(are_profiles), "a prompt profile")
}

fn are_states(states: &AgentStates) -> bool {
    let names_max = AGENT_STATES_MAX + Status::BUILT_IN.len();
    let is_status = |name: &String| {
        (1..=LABEL_BYTES_MAX).contains(&name.len())
            && !name.contains(char::is_control)
            && !Status::BUILT_IN.contains(&name.as_str())
    };
    let few = |names: &[String]| {
        names.len() <= names_max && names.iter().all(|name| name.len() <= LABEL_BYTES_MAX)
    };
    states.len() <= AGENT_STATES_MAX
        && states.keys().all(is_status)
        && states.values().all(|moves| few(&moves.from) && few(&moves.to))
}

/// The limits of times in an imported history.
#[derive(Clone, Copy)]
struct Bounds {
    /// The latest time of a commit.
    latest: Timestamp,
    /// The latest deadline.
    last_end: Timestamp,
}

impl Bounds {
    fn of(now: Timestamp) -> Self {
        let latest = now.0.saturating_add(CLOCK_AHEAD_MS_MAX);
        let last_end = latest.saturating_add(LIFE_MS_MAX);
        Self { latest: Timestamp(latest), last_end: Timestamp(last_end) }
    }

    fn past(self, at: Timestamp) -> Result<(), Foreign> {
        if (0..=self.latest.0).contains(&at.0) { Ok(()) } else { Err(Foreign::Late) }
    }

    fn end(self, at: Timestamp) -> Result<(), Foreign> {
        if (0..=self.last_end.0).contains(&at.0) { Ok(()) } else { Err(Foreign::Late) }
    }

    fn check_change(self, change: &Change) -> Result<(), Foreign> {
        let facts = change.facts();
        match facts.contents {
            Contents::Settings(settings, labels) => check_settings(settings, labels)?,
            Contents::Items(items) => items.iter().try_for_each(check_item)?,
            Contents::Value(_, value) => check_json(value)?,
            Contents::Values(values) => values.iter().try_for_each(check_json)?,
            Contents::Profile(profile) => check_profile(profile)?,
            Contents::Images(images) => {
                check(images.len() <= IMAGES_FORGOTTEN_MAX, "forgotten images")?;
            }
            Contents::Blob(bytes) => check(bytes <= BLOB_BYTES_MAX as u64, "a blob")?,
            Contents::Restored(restored) => self.check_restored(restored)?,
            Contents::Nothing | Contents::Requests(_) => {}
        }
        facts.deadline.map_or(Ok(()), |at| self.end(at))
    }

    fn check_restored(self, restored: &Restored) -> Result<(), Foreign> {
        let entries = restored
            .logs
            .iter()
            .flat_map(|(log, restored)| restored.entries.iter().map(move |entry| (log, entry)));
        for (log, entry) in entries {
            self.check_entry(entry)?;
            check(entry.work.is_none() || *log == LogName::Requests, "an entry")?;
        }
        restored.state.iter().filter_map(|(_, value)| value.as_ref()).try_for_each(check_json)?;
        let ends = restored.expiries.iter().map(|(_, at)| *at);
        let ends = ends.chain(restored.awaited.iter().map(|(_, until)| until.expires_at));
        ends.into_iter().try_for_each(|at| self.end(at))?;
        let agents = restored.agents.iter().filter_map(|(_, agent)| agent.as_ref());
        agents.into_iter().try_for_each(|agent| self.check_agent(agent))
    }

    fn check_entry(self, entry: &Entry) -> Result<(), Foreign> {
        check_item(&entry.item)?;
        self.past(entry.at)?;
        entry.updated.as_ref().map_or(Ok(()), |updated| self.past(updated.at))?;
        entry.acked_at.map_or(Ok(()), |at| self.past(at))?;
        if let Some(task) = entry.task.as_deref() {
            self.check_task(task)?;
        }
        let Some(work) = entry.work.as_deref() else { return Ok(()) };
        work.texts().try_for_each(check_json)?;
        match work {
            Work::InReview(Review { since, done: Done { at, .. } }) => {
                self.past(*since)?;
                self.past(*at)
            }
            Work::Done(Done { at, verdict, .. }) => {
                self.past(*at)?;
                verdict.as_deref().map_or(Ok(()), |verdict| self.past(verdict.at))
            }
            Work::Failed(Failed { at, .. }) | Work::Cancelled(Cancel { at, .. }) => self.past(*at),
            Work::Claimed(claim) => {
                self.past(claim.since)?;
                self.end(claim.expires_at)
            }
            Work::Lapsed { .. } => Ok(()),
        }
    }

    fn check_task(self, task: &Task) -> Result<(), Foreign> {
        let Plan { not_before, deadline, .. } = &task.plan;
        not_before.iter().chain(deadline).try_for_each(|at| self.end(*at))?;
        for attempt in task.past_attempts.iter() {
            self.past(attempt.from)?;
            self.past(attempt.to)?;
            attempt.reason.as_ref().map_or(Ok(()), check_json)?;
        }
        let Some(cancel) = &task.cancel else { return Ok(()) };
        self.past(cancel.at)?;
        cancel.reason.as_ref().map_or(Ok(()), check_json)
    }

    fn check_agent(self, agent: &Agent) -> Result<(), Foreign> {
        check_profile(&agent.profile)?;
        [agent.registered_at, agent.updated_at]
            .into_iter()
            .chain(agent.last_seen)
            .try_for_each(|at| self.past(at))
    }
}
