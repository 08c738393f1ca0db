//! Deciding: every rule of a write, as a pure function of the board, the command and the moment.

use std::borrow::Cow;
use std::sync::Arc;

use super::apply::apply_change;
use super::bounds;
use super::command::{Answer, Command, Condition, Matches, Moment, Policy, Rejected, Which, Write};
use super::commit::{Change, Commit};
use super::log::{Entry, Log, LogName, SeqRange, Stamp};
use super::settings::{Labels, LabelsPatch, Set, Settings, SettingsPatch, patch_labels};
use super::{Board, Item, Revision, Seq, Version, json};

/// What is to be done: a commit, unless nothing changes, and what to answer once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What happened.
    pub commit: Option<Commit>,
    /// What to answer.
    pub answer: Answer,
    /// Whether the thing written existed before.
    pub existed: bool,
}

/// Decides a write against the board of its session.
///
/// # Errors
///
/// [`Rejected`] where a rule or the write's condition refuses it.
pub fn decide(board: &Board, write: &Write, moment: Moment<'_>) -> Result<Decision, Rejected> {
    let draft = Draft::open(board, write, moment)?;
    let existed = check_condition(board, write)?;
    let (answer, changes) = draft.carry_out(&write.command)?;
    bounds::check(board, &changes, moment.policy)?;
    let commit = (!changes.is_empty()).then(|| Commit {
        revision: board.revision.next(),
        at: moment.now.max(board.updated_at),
        agent: write.author.clone(),
        nonce: moment.nonce,
        changes,
    });
    Ok(Decision { commit, answer, existed })
}

/// The board that a command meets: with the session made first where this write makes it.
struct Draft<'a> {
    board: Cow<'a, Board>,
    made: bool,
    opening: Vec<Change>,
}

impl<'a> Draft<'a> {
    fn open(board: &'a Board, write: &Write, moment: Moment<'_>) -> Result<Self, Rejected> {
        let mut draft = Self { board: Cow::Borrowed(board), made: false, opening: Vec::new() };
        if board.life.is_some() {
            return Ok(draft);
        }
        if !may_make_session(&write.command, moment.policy) {
            return Err(Rejected::NoSession { session: write.session.clone() });
        }
        let stamp = Stamp {
            revision: board.revision.next(),
            at: moment.now.max(board.updated_at),
            agent: write.author.as_ref(),
        };
        draft.opening = opening(write, moment.policy);
        for change in &draft.opening {
            apply_change(draft.board.to_mut(), change, stamp);
        }
        draft.made = true;
        Ok(draft)
    }

    fn carry_out(self, command: &Command) -> Result<(Answer, Vec<Change>), Rejected> {
        let board = &*self.board;
        let (answer, changes) = match command {
            Command::PutSession { qa_pairs, .. } if !self.made && !qa_pairs.is_empty() => {
                return Err(Rejected::NotAtCreation);
            }
            Command::PutSession { settings, labels, .. } if !self.made => {
                (Answer::Done, configure(board, settings, labels))
            }
            Command::PutSession { .. } => (Answer::Done, Vec::new()),
            Command::DeleteSession => (Answer::Done, vec![Change::Deleted]),
            Command::Append { log, items } => append(board, log, items),
            Command::ReplaceLog { log, items } => replace(board, log, items),
            Command::RemoveEntries { log, which } => remove(board, log, which),
            Command::PutEntry { log, seq, item, basis } => {
                (Answer::Done, put_entry(board, log, *seq, item, *basis)?)
            }
            Command::DeleteEntry { log, seq } => {
                find_entry(board, log, *seq)?;
                let ranges = vec![SeqRange { first: *seq, last: *seq }];
                (Answer::Removed { count: 1 }, vec![Change::Removed { log: log.clone(), ranges }])
            }
            Command::ReplaceBoard { logs } => (Answer::Done, replace_board(board, logs)),
            Command::ClearBoard => clear_board(board),
        };
        // An append of nothing makes no session; a PUT does, whatever it holds.
        if changes.is_empty() && matches!(command, Command::Append { .. }) {
            return Ok((answer, changes));
        }
        let mut all = self.opening;
        all.extend(changes);
        Ok((answer, all))
    }
}

/// Whether this command, on a session that does not exist, makes it.
fn may_make_session(command: &Command, policy: &Policy) -> bool {
    match command {
        Command::PutSession { .. } => true,
        Command::Append { .. } | Command::ReplaceLog { .. } | Command::ReplaceBoard { .. } => {
            policy.auto_create
        }
        Command::DeleteSession
        | Command::RemoveEntries { .. }
        | Command::PutEntry { .. }
        | Command::DeleteEntry { .. }
        | Command::ClearBoard => false,
    }
}

/// The changes that make a session: itself, then the answered questions it starts with.
fn opening(write: &Write, policy: &Policy) -> Vec<Change> {
    let (settings, labels, own) =
        if let Command::PutSession { settings, labels, qa_pairs } = &write.command {
            (
                patched_settings(&Settings::default(), settings),
                patched_labels(&Labels::default(), labels),
                qa_pairs.as_slice(),
            )
        } else {
            (Settings::default(), Labels::default(), &[][..])
        };
    let mut changes = vec![Change::Created {
        name: write.session.clone(),
        settings: Arc::new(settings),
        labels: Arc::new(labels),
    }];
    let items: Vec<Item> = policy.qa_pairs.iter().chain(own).cloned().collect();
    if !items.is_empty() {
        changes.push(Change::Appended { log: LogName::Questions, first: Seq(1), items });
    }
    changes
}

fn patched_settings(settings: &Settings, patch: &Set<SettingsPatch>) -> Settings {
    match patch {
        Set::Keep => settings.clone(),
        Set::Reset => Settings::default(),
        Set::To(patch) => patch.apply(settings),
    }
}

fn patched_labels(labels: &Labels, patch: &Set<LabelsPatch>) -> Labels {
    match patch {
        Set::Keep => labels.clone(),
        Set::Reset => Labels::default(),
        Set::To(patch) => patch_labels(labels, patch),
    }
}

fn configure(
    board: &Board,
    settings: &Set<SettingsPatch>,
    labels: &Set<LabelsPatch>,
) -> Vec<Change> {
    let Some(life) = &board.life else { return Vec::new() };
    let settings = patched_settings(&life.settings, settings);
    let labels = patched_labels(&life.labels, labels);
    if settings == *life.settings && labels == *life.labels {
        return Vec::new();
    }
    vec![Change::Configured { settings: Arc::new(settings), labels: Arc::new(labels) }]
}

fn append(board: &Board, log: &LogName, items: &[Item]) -> (Answer, Vec<Change>) {
    let first = next_seq(board, log);
    let keeps = board.life.as_ref().is_none_or(|life| life.settings.keeps_screenshots());
    if *log == LogName::Screenshots && !keeps {
        return (Answer::Added { first, count: 0, dropped: items.len() }, Vec::new());
    }
    let answer = Answer::Added { first, count: items.len(), dropped: 0 };
    (answer, appended(log, first, items).into_iter().collect())
}

fn appended(log: &LogName, first: Seq, items: &[Item]) -> Option<Change> {
    let items = items.to_vec();
    (!items.is_empty()).then(|| Change::Appended { log: log.clone(), first, items })
}

fn replace(board: &Board, log: &LogName, items: &[Item]) -> (Answer, Vec<Change>) {
    let first = next_seq(board, log);
    let changes = replacement(board, log, items);
    if changes.is_empty() {
        return (Answer::Added { first, count: 0, dropped: 0 }, changes);
    }
    (Answer::Added { first, count: items.len(), dropped: 0 }, changes)
}

/// Nothing where the log holds these very items already, so that a repeated PUT is no new write.
fn replacement(board: &Board, name: &LogName, items: &[Item]) -> Vec<Change> {
    let log = board.log(name);
    let len = log.map_or(0, Log::len);
    let same = |log: &Log| log.iter().map(|entry| &entry.item).eq(items);
    if len == items.len() && log.is_none_or(same) {
        return Vec::new();
    }
    let cleared = (len > 0).then(|| Change::Cleared { log: name.clone() });
    cleared.into_iter().chain(appended(name, next_seq(board, name), items)).collect()
}

fn replace_board(board: &Board, logs: &[Vec<Item>; 4]) -> Vec<Change> {
    LogName::BOARD
        .iter()
        .zip(logs)
        .flat_map(|(log, items)| replacement(board, log, items))
        .collect()
}

fn clear_board(board: &Board) -> (Answer, Vec<Change>) {
    let count = board.logs.iter().map(Log::len).sum();
    let full = LogName::BOARD.into_iter().zip(&board.logs).filter(|(_, log)| !log.is_empty());
    (Answer::Removed { count }, full.map(|(log, _)| Change::Cleared { log }).collect())
}

fn remove(board: &Board, name: &LogName, which: &Which) -> (Answer, Vec<Change>) {
    let none = (Answer::Removed { count: 0 }, Vec::new());
    let Some(log) = board.log(name).filter(|log| !log.is_empty()) else { return none };
    let removed: Vec<Seq> = match which {
        Which::All => {
            let change = Change::Cleared { log: name.clone() };
            return (Answer::Removed { count: log.len() }, vec![change]);
        }
        Which::AllButNewest(keep) => {
            let oldest = log.iter().take(log.len().saturating_sub(*keep));
            oldest.map(|entry| entry.seq).collect()
        }
        Which::Steps(steps) => {
            let step = |entry: &Entry| entry.item.get("step").and_then(json::Exact::parse);
            let found = log.iter().filter(|e| step(e).is_some_and(|step| steps.contains(&step)));
            found.map(|entry| entry.seq).collect()
        }
    };
    if removed.is_empty() {
        return none;
    }
    let change = Change::Removed { log: name.clone(), ranges: ranges(log, &removed) };
    (Answer::Removed { count: removed.len() }, vec![change])
}

/// Ascending seqs of a log's entries as ranges without a kept entry between.
fn ranges(log: &Log, seqs: &[Seq]) -> Vec<SeqRange> {
    let mut ranges: Vec<SeqRange> = Vec::new();
    for &seq in seqs {
        match ranges.last_mut() {
            Some(range) if log.count_through(range.last) + 1 == log.count_through(seq) => {
                range.last = seq;
            }
            Some(_) | None => ranges.push(SeqRange { first: seq, last: seq }),
        }
    }
    ranges
}

fn put_entry(
    board: &Board,
    log: &LogName,
    seq: Seq,
    item: &Item,
    basis: Option<Revision>,
) -> Result<Vec<Change>, Rejected> {
    let entry = find_entry(board, log, seq)?;
    if basis.is_some_and(|basis| basis != entry.revision) {
        return Err(Rejected::Stale);
    }
    // A patch says itself where members go; else existing ones keep their place.
    let item = if basis.is_some() { item.clone() } else { item.in_order_of(&entry.item) };
    if entry.item == item {
        return Ok(Vec::new());
    }
    Ok(vec![Change::Updated { log: log.clone(), seq, item }])
}

fn find_entry<'a>(board: &'a Board, log: &LogName, seq: Seq) -> Result<&'a Arc<Entry>, Rejected> {
    let entry = board.log(log).and_then(|log| log.get(seq));
    entry.ok_or_else(|| Rejected::NoEntry { log: log.clone(), seq })
}

fn next_seq(board: &Board, log: &LogName) -> Seq {
    board.log(log).map_or(Seq(1), Log::next_seq)
}

/// The thing that a command writes: how it stands, or `None` where it does not exist.
fn target(board: &Board, command: &Command) -> Result<Target, Rejected> {
    let exists = board.life.is_some();
    Ok(match command {
        Command::PutSession { .. } | Command::DeleteSession => {
            Target { exists, version: board.version(), entry: None }
        }
        Command::Append { log, .. }
        | Command::ReplaceLog { log, .. }
        | Command::RemoveEntries { log, .. } => Target {
            exists: exists && board.log(log).is_some(),
            version: board.log_version(log),
            entry: None,
        },
        Command::ReplaceBoard { .. } | Command::ClearBoard => {
            Target { exists, version: board.logs_version(), entry: None }
        }
        Command::PutEntry { log, seq, .. } | Command::DeleteEntry { log, seq } => {
            Target::entry(board, find_entry(board, log, *seq)?)
        }
    })
}

struct Target {
    exists: bool,
    version: Version,
    entry: Option<Arc<Entry>>,
}

impl Target {
    fn entry(board: &Board, entry: &Arc<Entry>) -> Self {
        let version = board.at_version(entry.revision);
        Self { exists: true, version, entry: Some(Arc::clone(entry)) }
    }
}

/// Checks the write's condition and tells whether the thing written exists. A missing entry is
/// refused as such before any condition is looked at (RFC 9110, section 13.2.1).
fn check_condition(board: &Board, write: &Write) -> Result<bool, Rejected> {
    let target = target(board, &write.command)?;
    meets(board, &write.condition, &target)?;
    Ok(target.exists)
}

fn meets(board: &Board, condition: &Condition, target: &Target) -> Result<(), Rejected> {
    let matches = match &condition.matches {
        None => true,
        Some(Matches::Any) => target.exists,
        Some(Matches::Versions(versions)) => {
            board.life.is_some() && versions.contains(&target.version)
        }
    };
    if matches && !(condition.absent && target.exists) {
        return Ok(());
    }
    let present = board.life.is_some().then_some(target.version);
    Err(Rejected::Precondition { present, current: target.entry.clone() })
}

/// The entry that a patch is to be applied to, if it exists and is as the condition wants it.
///
/// # Errors
///
/// [`Rejected::NoSession`], [`Rejected::NoEntry`] or [`Rejected::Precondition`].
pub fn patchable<'a>(
    board: &'a Board,
    log: &LogName,
    seq: Seq,
    condition: &Condition,
) -> Result<&'a Arc<Entry>, Rejected> {
    let entry = find_entry(board, log, seq)?;
    meets(board, condition, &Target::entry(board, entry))?;
    Ok(entry)
}
