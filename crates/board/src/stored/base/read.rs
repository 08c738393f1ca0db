//! Reads a base from untrusted bytes.
//!
//! The input is either refused or becomes a board that has all invariants of a board built from commits. The work is
//! linear in the input's length.

use super::{Head, Part, StoredOwned, Unsound, VERSION};
use crate::admit::admit_image;
use crate::json;
use crate::log::Entry;
use crate::model::agent::{AGENTS_MAX, Agent};
use crate::model::board::Life;
use crate::model::checkpoint::CHECKPOINTS_MAX;
use crate::state::StatePath;
use crate::stored::Unreadable;
use crate::stored::parts::{StoredAgent, StoredAwaited, StoredCheckpoint, StoredEntry, StoredKey};
use crate::values::attempt::Cancel;
use crate::values::claim::{Claim, Done, Failed, Review, Work};
use crate::{
    AgentName, Awaited, Blob, Board, Checkpoint, CheckpointName, Digest, Log, LogName,
    REVISION_MAX, Remembered, Revision, Seq, SeqRange, SessionId, State, Timestamp,
};

/// The maximum revision, seq and total of image bytes in a base of this server. No board comes near this limit, and
/// counters can continue from there.
const COUNT_MAX: u64 = REVISION_MAX - (1 << 32);

/// The maximum counter in an imported base, far below [`COUNT_MAX`], so that an imported board can always be read
/// again.
const FOREIGN_COUNT_MAX: u64 = REVISION_MAX / 2;

/// The reader's position, in the order of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin,
    Head,
    Memories,
    Messages,
    Entries,
    State,
    Expiries,
    Agents,
    Checkpoints,
    Awaited,
    Keys,
    Images,
    Blobs,
    End,
    /// A part was refused.
    Broken,
}

/// A reader that builds a board from the parts of a base, one by one.
#[derive(Debug)]
pub struct BaseReader {
    board: Board,
    count_max: u64,
    step: Step,
    parts: u64,
}

impl BaseReader {
    /// Creates a reader of a base that this server wrote. The board gets this session id.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        Self {
            board: Board::absent(id, Revision::default()),
            count_max: COUNT_MAX,
            step: Step::Begin,
            parts: 0,
        }
    }

    /// Creates a reader of an imported base, with lower limits for counters.
    #[must_use]
    pub fn of_foreign(id: SessionId) -> Self {
        Self { count_max: FOREIGN_COUNT_MAX, ..Self::new(id) }
    }

    /// Reads the next part.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the part is malformed or does not fit a consistent board. After an error, every part is
    /// refused.
    pub fn take(&mut self, part: &[u8]) -> Result<(), Unreadable> {
        let taken = self.take_part(part);
        match taken {
            Ok(()) => self.parts += 1,
            Err(_) => self.step = Step::Broken,
        }
        taken
    }

    /// Returns true if all parts were read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.step == Step::End
    }

    /// Returns the board, whose history begins with the base.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if a part is missing or the parts do not fit together.
    pub fn finish(self) -> Result<Board, Unreadable> {
        let Self { mut board, step: Step::End, .. } = self else {
            return Err(Unsound::Order.into());
        };
        let profiles = board.agents.values().map(|agent| agent.profile.item().bytes());
        let logs = board.all_logs().map(Log::bytes);
        let state = board.state.bytes() - State::default().bytes();
        let entries = board.all_logs().map(|log| log.len() as u64).sum();
        board.bytes = logs.chain(profiles).sum::<u64>() + state;
        board.entries = entries;
        board.message_entries = board.messages.values().map(|log| log.len() as u64).sum();
        board.cost = board.memories.values().map(Log::cost).sum();
        check_images(&board)?;
        let nothing = Board {
            updated_at: board.updated_at,
            written_at: board.written_at,
            keys: board.keys.clone(),
            ..Board::absent(board.id, board.revision)
        };
        if board.life.is_none() && board != nothing {
            return Err(Unsound::Lifeless.into());
        }
        Ok(board)
    }

    fn take_part(&mut self, part: &[u8]) -> Result<(), Unreadable> {
        if part.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            return Err(Unsound::LineBreak.into());
        }
        let part: Part<'_> = serde_json::from_slice(part)?;
        self.go(part.step())?;
        match part {
            Part::Head(head) => Ok(self.begin(*head)?),
            Part::Memories(memories) => Ok(each(memories, |memory| self.memory(memory))?),
            Part::Messages(messages) => Ok(each(messages, |log| self.messages(log))?),
            Part::Entries { log, entries } => Ok(self.entries(&log, entries)?),
            Part::State { document, changed } => self.state(document.get(), &changed),
            Part::Expiries(expiries) => Ok(each(expiries, |lifetime| self.lifetime(lifetime))?),
            Part::Agents(agents) => each(agents, |agent| self.agent(agent)),
            Part::Checkpoints(all) => Ok(each(all, |checkpoint| self.checkpoint(checkpoint))?),
            Part::Awaited(awaited) => Ok(each(awaited, |awaited| self.awaited(awaited))?),
            Part::Keys(keys) => Ok(each(keys, |key| self.key(key))?),
            Part::Images(images) => Ok(each(images, |image| self.image(image))?),
            Part::Blobs(blobs) => Ok(each(blobs, |blob| self.blob(blob.into()))?),
            Part::End { parts: declared } => {
                let found = self.parts;
                let misfit = Unsound::Parts { declared, found };
                if declared == found { Ok(()) } else { Err(misfit.into()) }
            }
        }
    }

    fn go(&mut self, next: Step) -> Result<(), Unsound> {
        let skips = |needed: Step| self.step < needed && needed < next;
        let again = next == self.step && !matches!(next, Step::Head | Step::State | Step::End);
        if skips(Step::Head) || skips(Step::State) || (next <= self.step && !again) {
            return Err(Unsound::Order);
        }
        self.step = next;
        Ok(())
    }

    fn begin(&mut self, head: Head) -> Result<(), Unsound> {
        if head.version != VERSION {
            return Err(Unsound::Version { found: head.version });
        }
        let board = &mut self.board;
        count(head.revision.0, self.count_max)?;
        (board.revision, board.oldest) = (head.revision, head.revision);
        (board.updated_at, board.written_at) = (head.updated_at, head.written_at);
        board.agents_changed = head.agents_changed;
        board.checkpoints_changed = head.checkpoints_changed;
        (board.floor, board.fences_after) = (head.floor, head.fences_after);
        board.life = head.life.map(Life::from);
        board.find_tasks();
        for (log, stored) in board.logs.iter_mut().zip(head.logs) {
            count(stored.last_seq.0, self.count_max)?;
            count(stored.changed.0, head.revision.0)?;
            *log = Log::restore(stored.last_seq, stored.changed);
        }
        let life = self.board.life.as_ref();
        let of_life = life.map(|life| life.configured).unwrap_or_default();
        let made = life.map(|life| life.created_at).unwrap_or_default();
        [head.agents_changed, head.checkpoints_changed, head.floor, head.fences_after, of_life]
            .into_iter()
            .try_for_each(|revision| self.past(revision))?;
        [head.updated_at, head.written_at, made].into_iter().try_for_each(moment)
    }

    /// Checks that this revision is not after the board's.
    fn past(&self, revision: Revision) -> Result<(), Unsound> {
        count(revision.0, self.board.revision.0)
    }

    fn memory(&mut self, memory: StoredOwned) -> Result<(), Unsound> {
        let (agent, log) = self.owned(memory)?;
        let known = self.board.memories.insert(agent.clone(), log.with_costs());
        let log = || LogName::Memory(agent);
        known.map_or(Ok(()), |_| Err(Unsound::Owned { log: log() }))
    }

    fn messages(&mut self, messages: StoredOwned) -> Result<(), Unsound> {
        let (agent, log) = self.owned(messages)?;
        let known = self.board.messages.insert(agent.clone(), log);
        let log = || LogName::Messages(agent);
        known.map_or(Ok(()), |_| Err(Unsound::Owned { log: log() }))
    }

    fn owned(&self, stored: StoredOwned) -> Result<(AgentName, Log), Unsound> {
        let StoredOwned { agent, last_seq, changed } = stored;
        count(last_seq.0, self.count_max)?;
        self.past(changed)?;
        Ok((agent, Log::restore(last_seq, changed)))
    }

    fn entries(&mut self, name: &LogName, entries: Vec<StoredEntry<'_>>) -> Result<(), Unsound> {
        if self.board.log(name).is_none() {
            return Err(Unsound::Owned { log: name.clone() });
        }
        for mut entry in entries.into_iter().map(Entry::from) {
            self.check_entry(name, &entry)?;
            if let Some(task) = &mut entry.task {
                // The requests that it waits for come before it.
                task.blocked_by = self.board.blockers(&task.plan.after);
                task.stopped_by = self.board.stoppers(&task.blocked_by);
            }
            let (seq, board) = (entry.seq, &mut self.board);
            if *name == LogName::Questions {
                board.asked.put(&entry);
            }
            if *name == LogName::Requests {
                board.tasks.add(&entry);
            }
            if let LogName::Messages(agent) = name
                && entry.acked_at.is_none()
            {
                board.unacked.add(agent, std::iter::once(seq));
            }
            let log = board.log_mut(name);
            if !log.is_some_and(|log| log.restore_entry(entry)) {
                return Err(Unsound::Seq { log: name.clone(), found: seq });
            }
        }
        Ok(())
    }

    fn check_entry(&self, log: &LogName, entry: &Entry) -> Result<(), Unsound> {
        self.past(entry.revision)?;
        moment(entry.at)?;
        entry.updated.as_ref().map_or(Ok(()), |updated| moment(updated.at))?;
        entry.acked_at.map_or(Ok(()), moment)?;
        let is_placed = |image| admit_image(entry.item.text(), image).is_ok();
        let is_sound = entry.item.is_sound()
            && entry.item.image().is_none_or(is_placed)
            && (*log == LogName::Requests || (entry.work.is_none() && entry.task.is_none()))
            && (entry.acked_at.is_none() || matches!(log, LogName::Messages(_)))
            && entry.task.as_deref().is_none_or(|task| task.is_sound(entry.seq));
        if !is_sound {
            return Err(Unsound::Entry { log: log.clone(), seq: entry.seq });
        }
        match entry.work.as_deref() {
            Some(Work::Claimed(Claim { fence, since, .. })) => {
                self.past(*fence)?;
                moment(*since)
            }
            Some(Work::Lapsed { fence }) => self.past(*fence),
            Some(Work::InReview(Review { since, done: Done { at, .. } })) => {
                moment(*since)?;
                moment(*at)
            }
            Some(Work::Done(Done { at, .. }) | Work::Cancelled(Cancel { at, .. })) => moment(*at),
            Some(Work::Failed(Failed { at, fence, .. })) => {
                fence.map_or(Ok(()), |fence| self.past(fence))?;
                moment(*at)
            }
            None => Ok(()),
        }
    }

    fn state(&mut self, document: &str, changed: &[Revision]) -> Result<(), Unreadable> {
        changed.iter().try_for_each(|revision| self.past(*revision))?;
        json::check(document, json::DEPTH_MAX).map_err(|_| Unreadable::State)?;
        self.board.state = State::restore(document, changed).ok_or(Unreadable::State)?;
        Ok(())
    }

    fn lifetime(&mut self, (path, at): (StatePath, Timestamp)) -> Result<(), Unsound> {
        if self.board.state.restore_expiry(&path, at) {
            Ok(())
        } else {
            Err(Unsound::Lifetime { path })
        }
    }

    fn agent(&mut self, agent: StoredAgent<'_>) -> Result<(), Unreadable> {
        let (name, agent): (AgentName, Agent) = agent.restore()?;
        self.past(agent.changed)?;
        [agent.registered_at, agent.updated_at]
            .into_iter()
            .chain(agent.last_seen)
            .try_for_each(moment)?;
        if !agent.profile.item().is_sound() {
            return Err(Unreadable::Profile);
        }
        let agents = &mut self.board.agents;
        let is_new = agents.insert(name, agent).is_none() && agents.len() <= AGENTS_MAX;
        Ok(once(is_new, "agents")?)
    }

    fn checkpoint(&mut self, stored: StoredCheckpoint) -> Result<(), Unsound> {
        let (name, checkpoint): (CheckpointName, Checkpoint) = stored.into();
        self.past(checkpoint.revision)?;
        moment(checkpoint.at)?;
        let all = &mut self.board.checkpoints;
        let is_new = all.insert(name, checkpoint).is_none() && all.len() <= CHECKPOINTS_MAX;
        once(is_new, "checkpoints")
    }

    fn awaited(&mut self, stored: StoredAwaited<'_>) -> Result<(), Unsound> {
        let (question, awaited): (Seq, Awaited) = stored.into();
        let asked = &mut self.board.asked;
        if !asked.open().contains(&question) || asked.awaited(question).is_some() {
            return Err(Unsound::Awaited { question });
        }
        asked.wait(SeqRange { first: question, last: question }, &awaited);
        Ok(())
    }

    fn key(&mut self, stored: StoredKey<'_>) -> Result<(), Unsound> {
        let (key, remembered): (_, Remembered) = stored.into();
        moment(remembered.at)?;
        once(self.board.keys.restore(key, remembered), "keys")
    }

    fn image(&mut self, (sha256, bytes): (Digest, u64)) -> Result<(), Unsound> {
        let board = &mut self.board;
        let total = board.image_bytes.saturating_add(bytes);
        count(total, self.count_max)?;
        board.image_bytes = total;
        once(board.images.insert(sha256, bytes).is_none(), "images")
    }

    fn blob(&mut self, (sha256, blob): (Digest, Blob)) -> Result<(), Unsound> {
        moment(blob.uploaded_at)?;
        if !self.board.has_image(&sha256) {
            return Err(Unsound::Image { sha256 });
        }
        once(self.board.blobs.insert(sha256, blob).is_none(), "blobs")
    }
}

impl Part<'_> {
    const fn step(&self) -> Step {
        match self {
            Self::Head(_) => Step::Head,
            Self::Memories(_) => Step::Memories,
            Self::Messages(_) => Step::Messages,
            Self::Entries { .. } => Step::Entries,
            Self::State { .. } => Step::State,
            Self::Expiries(_) => Step::Expiries,
            Self::Agents(_) => Step::Agents,
            Self::Checkpoints(_) => Step::Checkpoints,
            Self::Awaited(_) => Step::Awaited,
            Self::Keys(_) => Step::Keys,
            Self::Images(_) => Step::Images,
            Self::Blobs(_) => Step::Blobs,
            Self::End { .. } => Step::End,
        }
    }
}

fn each<T, E>(all: Vec<T>, take: impl FnMut(T) -> Result<(), E>) -> Result<(), E> {
    all.into_iter().try_for_each(take)
}

const fn count(found: u64, max: u64) -> Result<(), Unsound> {
    if found <= max { Ok(()) } else { Err(Unsound::Count { found, max }) }
}

const fn moment(at: Timestamp) -> Result<(), Unsound> {
    if at.0 >= 0 { Ok(()) } else { Err(Unsound::Time) }
}

const fn once(is_new: bool, of: &'static str) -> Result<(), Unsound> {
    if is_new { Ok(()) } else { Err(Unsound::Repeated { of }) }
}

fn check_images(board: &Board) -> Result<(), Unsound> {
    let images = board.all_logs().flat_map(Log::iter).filter_map(|entry| entry.item.image());
    let unknown = images
        .into_iter()
        .find(|image| board.images.get(&image.sha256).is_none_or(|bytes| *bytes != image.bytes));
    unknown.map_or(Ok(()), |image| Err(Unsound::Image { sha256: image.sha256 }))
}
