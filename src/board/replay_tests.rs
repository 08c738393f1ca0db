//! Whatever is written, the stored commits give the live board again, and a base goes on as the board.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::board_tests::*;
use super::plan_tests::{Step, steps};
use super::*;

/// A session that is written to, and everything that is to agree with it.
struct Play {
    live: Board,
    /// Follows by the stored commits alone.
    replica: Board,
    /// Follows them too, from a base that was made on the way.
    based: Board,
    model: Model,
    clock: i64,
    sessions: u128,
    /// Every image that a commit named.
    images: BTreeMap<Digest, u64>,
}

/// What the commands mean, in the plainest way: each log's entries, and the seq that was given last.
#[derive(Default)]
struct Model {
    logs: BTreeMap<LogName, Vec<(Seq, Item)>>,
    last: BTreeMap<LogName, u64>,
}

impl Model {
    fn append(&mut self, log: &LogName, items: &[Item]) {
        for item in items {
            let last = self.last.entry(log.clone()).or_default();
            *last += 1;
            self.logs.entry(log.clone()).or_default().push((Seq(*last), item.clone()));
        }
    }

    fn replace(&mut self, log: &LogName, items: &[Item]) {
        let entries = self.logs.entry(log.clone()).or_default();
        if !entries.iter().map(|(_, item)| item).eq(items) {
            entries.clear();
            self.append(log, items);
        }
    }

    fn remove(&mut self, log: &LogName, which: &Which) {
        let entries = self.logs.entry(log.clone()).or_default();
        let over = |keep: usize| entries.len().saturating_sub(keep);
        match which {
            Which::All => entries.clear(),
            Which::AllButNewest(keep) => drop(entries.drain(..over(*keep))),
            Which::Steps(steps) => entries.retain(|(_, item)| {
                let step = item.get("step").and_then(json::Exact::parse);
                step.is_none_or(|step| !steps.contains(&step))
            }),
        }
    }

    /// What a write that was not refused does; `made` is whether it made the session.
    fn follow(&mut self, command: &Command, made: bool, seeds: &[Item], keeps_screenshots: bool) {
        if made {
            self.append(&LogName::Questions, seeds);
        }
        match command {
            Command::PutSession { qa_pairs, .. } => self.append(&LogName::Questions, qa_pairs),
            Command::DeleteSession => *self = Self::default(),
            Command::Append { log: LogName::Screenshots, .. } if !keeps_screenshots => {}
            Command::Append { log, items } => self.append(log, items),
            Command::ReplaceLog { log, items } => self.replace(log, items),
            Command::RemoveEntries { log, which } => self.remove(log, which),
            Command::PutEntry { log, seq, item, basis } => {
                let entries = self.logs.entry(log.clone()).or_default();
                let entry = entries.iter_mut().find(|(own, _)| own == seq);
                let old = &mut entry.expect("a put of no entry is refused").1;
                *old = if basis.is_some() { item.clone() } else { item.in_order_of(old) };
            }
            Command::DeleteEntry { log, seq } => {
                self.logs.entry(log.clone()).or_default().retain(|(own, _)| own != seq);
            }
            Command::ReplaceBoard { logs } => {
                LogName::BOARD.iter().zip(logs).for_each(|(log, items)| self.replace(log, items));
            }
            Command::ClearBoard => {
                LogName::BOARD.iter().for_each(|log| self.remove(log, &Which::All));
            }
        }
    }
}

impl Play {
    fn new() -> Self {
        let mut play = Self {
            live: absent(),
            replica: absent(),
            based: absent(),
            model: Model::default(),
            clock: 0,
            sessions: 0,
            images: BTreeMap::new(),
        };
        play.begin();
        play
    }

    /// A deleted session's name goes on with another session, as the service has it.
    fn begin(&mut self) {
        self.sessions += 1;
        let session = SessionId(Uuid::from_u128(self.sessions));
        self.live = Board::absent(session, self.live.revision);
        self.replica = self.live.clone();
        self.based = self.live.clone();
        self.images.clear();
    }

    fn take(&mut self, step: &Step, nonce: u64) {
        let write = step.write(&self.live);
        let moment = step.moment(&mut self.clock, nonce);
        let decided = decide(&self.live, &write, moment);
        assert_eq!(decided, decide(&self.based, &write, moment), "a base decides as the board");
        let Ok(decision) = decided else { return };
        let makes = self.live.life.is_none() && decision.commit.is_some();
        if let Some(commit) = &decision.commit {
            self.check_commit(commit);
            self.commit(commit);
        }
        let keeps = self.live.life().is_none_or(|life| life.settings.keeps_screenshots());
        self.model.follow(&write.command, makes, &moment.policy.qa_pairs, keeps);
        self.check_boards();
        if self.live.life.is_none() {
            self.begin();
        }
    }

    fn commit(&mut self, commit: &Commit) {
        let stored = stored(&self.live, commit);
        assert_eq!(&stored, commit);
        apply(&mut self.live, commit);
        for board in [&mut self.replica, &mut self.based] {
            admit(board, &stored).unwrap();
            apply(board, &stored);
        }
    }

    fn check_commit(&mut self, commit: &Commit) {
        assert_eq!(commit.revision, self.live.revision.next());
        assert!(commit.at >= self.live.updated_at, "time does not go back");
        assert!(!commit.changes.is_empty());
        for image in commit.changes.iter().flat_map(Change::items).filter_map(Item::image) {
            self.images.insert(image.sha256, image.bytes);
        }
    }

    fn check_boards(&self) {
        let live = &self.live;
        assert_eq!(&self.replica, live);
        assert_eq!(Board { oldest: live.oldest, ..self.based.clone() }, *live);
        let memories = live.memories.keys().cloned().map(LogName::Memory);
        let logs: BTreeSet<_> =
            self.model.logs.keys().cloned().chain(LogName::BOARD).chain(memories).collect();
        let mut bytes = 0;
        for log in &logs {
            let expected = self.model.logs.get(log).map(Vec::as_slice).unwrap_or_default();
            let entries = live.log(log).into_iter().flat_map(Log::iter);
            let found: Vec<_> = entries.map(|entry| (entry.seq, entry.item.clone())).collect();
            assert_eq!(found, expected, "{log}");
            let last = live.log(log).map_or(0, |log| log.last_seq().0);
            assert_eq!(last, self.model.last.get(log).copied().unwrap_or(0), "{log}");
            let own = found.iter().map(|(_, item)| item.text().len() as u64).sum::<u64>();
            assert_eq!(live.log(log).map_or(0, Log::bytes), own, "{log}");
            bytes += own;
        }
        assert_eq!(live.bytes, bytes);
        let images = live.images().map(|(digest, bytes)| (*digest, *bytes));
        assert!(live.life.is_none() || images.eq(self.images.clone()));
        assert_eq!(live.image_bytes, live.images.values().sum::<u64>());
    }

    fn rebase(&mut self) {
        self.based = stored::decode_base(&stored::encode_base(&self.live).unwrap()).unwrap();
        assert_eq!(self.based.oldest(), self.live.revision);
        assert_eq!(Board { oldest: self.live.oldest, ..self.based.clone() }, self.live);
    }
}

/// What a commit is after it was stored.
fn stored(board: &Board, commit: &Commit) -> Commit {
    let body = stored::encode_commit(commit).unwrap();
    let frame = Frame::encode(board.id, commit.revision, &body).unwrap();
    let read = Frame::decode(board.id, commit.revision, &frame).unwrap();
    stored::decode_commit(read).unwrap()
}

proptest! {
    #[test]
    fn stored_commits_give_the_live_board(steps in steps(60), base_at in 0_usize..60) {
        let mut play = Play::new();
        for (index, step) in steps.iter().enumerate() {
            if index == base_at {
                play.rebase();
            }
            play.take(step, index as u64);
        }
        play.rebase();
        play.check_boards();
    }
}
