//! Tests of replay: stored commits rebuild the live board, and a base continues like the board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::board::*;
use super::model::Model;
use super::plan::{Step, in_time, steps};
use crate::stored::Body;
use crate::*;
use crate::{LogChange, SessionChange, SessionCommand};

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
    /// When the last commit was that was somebody's write.
    written_at: Timestamp,
    /// Every image that a commit named.
    images: BTreeMap<Digest, u64>,
    /// The boards of the session so far.
    past: Vec<Arc<Board>>,
    /// The boards of all sessions so far.
    elders: Vec<Arc<Board>>,
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
            written_at: Timestamp::default(),
            images: BTreeMap::new(),
            past: Vec::new(),
            elders: Vec::new(),
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
        self.past.clear();
    }

    fn take(&mut self, step: &Step, nonce: u64) {
        let moment = step.moment(&mut self.clock, nonce);
        self.expire(moment.now);
        if nonce.is_multiple_of(4) {
            self.forget_images(moment);
        }
        let fork = SessionId(Uuid::from_u128(1_000 + u128::from(nonce)));
        let write = in_time(step.write(&self.live), &self.past, &self.elders, fork);
        if let Some(key) = &write.terms.key {
            let known = self.live.keys().recall(key, moment.now);
            assert_eq!(known, self.based.keys().recall(key, moment.now));
            if !matches!(known, Ok(None)) {
                return;
            }
        }
        let decided = decide_and_keep(&self.live, &write, moment);
        let decided_by_base = decide_and_keep(&self.based, &write, moment);
        let Ok(decision) = decided else {
            return assert_eq!(decided, decided_by_base, "a base refuses as the board");
        };
        self.check_decision(&decision, &decided_by_base.unwrap(), write.terms.key.is_some());
        if let Command::Session(SessionCommand::Adopt { board, .. }) = &write.command {
            self.adopt(board, decision.commit.as_ref().unwrap());
        }
        let configures = |change: &Change| {
            matches!(
                change,
                Change::Session(SessionChange::Created { .. } | SessionChange::Configured { .. })
            )
        };
        let everywhere = decision.commit.iter().flat_map(|c| &c.changes).any(configures);
        let made = self.live.life.is_none() && decision.commit.is_some();
        if made {
            self.model.append(&LogName::Questions, &moment.policy.qa_pairs);
        }
        let keeps = self.live.life().is_none_or(|life| life.settings.keeps_screenshots());
        if let Some(commit) = &decision.commit {
            self.check_commit(commit);
            self.written_at = commit.at;
            self.commit(commit);
        }
        assert_eq!(self.live, decision.board, "what was decided is what is replayed");
        self.model.follow(&write.command, &decision.answer, keeps);
        if let Some(life) = self.live.life() {
            self.model.evict(&life.settings, everywhere);
        }
        self.check_boards();
        if self.live.life.is_none() {
            return self.begin();
        }
        let now = Arc::new(self.live.clone());
        self.past.push(Arc::clone(&now));
        self.elders.push(now);
    }

    /// The history that comes to the name goes on.
    fn adopt(&mut self, coming: &Board, commit: &Commit) {
        let last = coming.revision.max(self.live.revision);
        assert_eq!(commit.revision, last.next());
        for board in [&mut self.live, &mut self.replica, &mut self.based] {
            *board = coming.clone();
        }
        self.model = Model::of(coming);
        self.images = coming.images().map(|(digest, bytes)| (*digest, *bytes)).collect();
        self.past.clear();
    }

    /// Expires due values first, as the service does.
    fn expire(&mut self, now: Timestamp) {
        while let Some(commit) = expire(&self.live, now, Nonce(0)) {
            assert!(commit.is_system() && commit.only_removes());
            assert_eq!(Some(&commit), expire(&self.based, now, Nonce(0)).as_ref());
            self.check_commit(&commit);
            for change in &commit.changes {
                if let Change::Log(log, LogChange::Updated { seq, item: answered }) = change {
                    assert_eq!(answered.get("expired"), Some("true"));
                    self.model.change(log, *seq, |_| answered.clone());
                }
            }
            self.commit(&commit);
            if self.live.life.is_none() {
                self.model = Model::default();
                self.check_boards();
                return self.begin();
            }
            self.check_boards();
        }
        assert!(self.live.next_due().is_none_or(|next| next > now));
        assert_eq!(self.live.due(now, usize::MAX), []);
    }

    /// All images that no entry names: what names them in the history does not count here.
    fn forget_images(&mut self, moment: Moment<'_>) {
        let images = self.images.keys().copied().chain([Digest::of(b"none")]).collect();
        let write = write(Command::Session(SessionCommand::ForgetImages {
            seen: self.live.version(),
            images,
        }));
        let Ok(decision) = decide(&self.live, &write, moment) else {
            return assert!(self.live.life.is_none());
        };
        let named: BTreeSet<Digest> = self.live.named_images().map(|image| image.sha256).collect();
        self.images.retain(|sha256, _| named.contains(sha256));
        if let Some(commit) = &decision.commit {
            assert!(commit.is_system() && commit.only_removes());
            self.commit(commit);
        }
        assert_eq!(self.live, decision.board);
        self.check_boards();
        let write = Write {
            command: Command::Session(SessionCommand::ForgetImages {
                seen: Version { changed: Revision(0), ..self.live.version() },
                images: BTreeSet::new(),
            }),
            ..write
        };
        assert_eq!(decide(&self.live, &write, moment), Err(Rejected::Stale));
    }

    /// A base decides as the board, and nothing is committed where nothing changes.
    fn check_decision(&self, decision: &Decision, by_base: &Decision, keyed: bool) {
        assert_eq!(decision.commit, by_base.commit);
        assert_eq!((&decision.answer, decision.existed), (&by_base.answer, by_base.existed));
        match &decision.commit {
            None => assert_eq!(decision.board, self.live),
            Some(commit) if commit.changes.is_empty() => assert!(keyed),
            Some(_) => assert_ne!(content(&decision.board), content(&self.live)),
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
        assert!(commit.kind() == "adopted" || commit.revision == self.live.revision.next());
        assert!(commit.at >= self.live.updated_at, "time does not go back");
        assert!(!commit.changes.is_empty() || commit.kept.is_some());
        for image in commit.changes.iter().flat_map(Change::items).filter_map(Item::image) {
            self.images.insert(image.sha256, image.bytes);
        }
        for change in &commit.changes {
            if let Change::Session(SessionChange::BlobPut { sha256, bytes, .. }) = change {
                self.images.insert(*sha256, *bytes);
            }
        }
    }

    fn check_boards(&self) {
        let live = &self.live;
        assert_eq!(&self.replica, live);
        assert_eq!(Board { oldest: live.oldest, ..self.based.clone() }, *live);
        let owned = live.owned_logs().map(|(name, _)| name);
        let logs: BTreeSet<_> =
            self.model.logs.keys().cloned().chain(LogName::BOARD).chain(owned).collect();
        let mut bytes = 0;
        for log in &logs {
            let expected = self.model.logs.get(log).map(Vec::as_slice).unwrap_or_default();
            let entries: Vec<_> = live.log(log).into_iter().flat_map(Log::iter).collect();
            let found: Vec<_> = entries.iter().map(|e| (e.seq, e.item.clone())).collect();
            assert_eq!(found, expected, "{log}");
            let last = live.log(log).map_or(0, |log| log.last_seq().0);
            assert_eq!(last, self.model.last.get(log).copied().unwrap_or(0), "{log}");
            let own = entries.iter().map(|entry| bytes_of(entry)).sum::<u64>();
            assert_eq!(live.log(log).map_or(0, Log::bytes), own, "{log}");
            bytes += own;
        }
        let agents = live.agents.iter();
        let statuses =
            agents.map(|(name, agent)| (name.clone(), agent.profile.status().to_string()));
        assert_eq!(statuses.collect::<BTreeMap<_, _>>(), self.model.agents);
        let profiles = live.agents.values().map(|agent| agent.profile.item().text().len() as u64);
        let state = live.state.text().len() as u64 - 2;
        assert_eq!(live.bytes, bytes + profiles.sum::<u64>() + state);
        let images = live.images().map(|(digest, bytes)| (*digest, *bytes));
        assert!(live.life.is_none() || images.eq(self.images.clone()));
        assert_eq!(live.image_bytes, live.images.values().sum::<u64>());
        let keys =
            live.keys.iter().map(|(key, kept)| (key.len() + kept.answer.text().len()) as u64);
        assert_eq!(live.keys.bytes(), keys.sum::<u64>());
        self.check_deadlines();
    }

    /// Checks the deadlines against a scan of the whole board.
    fn check_deadlines(&self) {
        let live = &self.live;
        let requests = live.log(&LogName::Requests).into_iter().flat_map(Log::iter);
        let claims = requests.filter_map(|entry| Some((entry.work.as_ref()?.claim()?, entry.seq)));
        let claim_deadlines: BTreeSet<_> =
            claims.map(|(claim, seq)| (claim.expires_at, seq)).collect();
        assert!(claim_deadlines.iter().eq(live.tasks().leases()));
        let ttl = live.life().and_then(|life| life.settings.ttl);
        let end = ttl.map(|ttl| Timestamp(self.written_at.0 + ttl.ms()));
        let paths = live.state.expiries().map(|(_, at)| at);
        let awaited = live.asked.awaited.values().map(|awaited| awaited.expires_at);
        let plans = live.log(&LogName::Requests).into_iter().flat_map(Log::iter);
        let plans = plans.filter(|entry| !entry.work.as_deref().is_some_and(Work::is_ended));
        let is_free = |work| matches!(work, None | Some(&Work::Lapsed { .. }));
        let times = plans.filter_map(|entry| {
            let plan = &entry.task.as_deref()?.plan;
            let not_before = plan.not_before.filter(|_| is_free(entry.work.as_deref()));
            Some([not_before, plan.deadline])
        });
        let times = times.flatten().flatten().collect::<Vec<_>>();
        let all = claim_deadlines.iter().map(|(at, _)| *at).chain(end).chain(paths).chain(awaited);
        let all = all.chain(times);
        check_asked(live);
        check_unacked(live);
        check_tasks(live);
        check_cost(live);
        assert_eq!(live.next_due(), all.min());
    }

    fn rebase(&mut self) {
        self.based = rebased(&self.live);
        assert_eq!(self.based.oldest(), self.live.revision);
        assert_eq!(Board { oldest: self.live.oldest, ..self.based.clone() }, self.live);
    }
}

/// Checks the claimable and the blocked requests against a scan of the log.
fn check_tasks(board: &Board) {
    let [_, requests, ..] = board.logs();
    for entry in requests.iter() {
        if let Some(task) = entry.task.as_deref() {
            assert_eq!(task.blocked_by, board.blockers(&task.plan.after), "{}", entry.seq);
            assert_eq!(task.stopped_by, board.stoppers(&task.blocked_by), "{}", entry.seq);
            let work = entry.work.as_deref();
            assert!(!task.is_spent() || work.is_some_and(Work::is_ended), "{}", entry.seq);
            assert!(task.cancel.is_none() || work.is_some_and(|work| work.claim().is_some()));
            assert!(task.is_sound(entry.seq));
        }
    }
    assert_eq!(*board.tasks(), Tasks::of(requests, board.caps()));
}

/// Checks the sum of the memories' costs against a scan of them.
fn check_cost(board: &Board) {
    let entries = board.memories.values().flat_map(Log::iter);
    assert_eq!(board.cost(), entries.map(|entry| entry.item.cost()).sum());
}

/// The bytes of an entry's item, and of the result of a request that is done.
fn bytes_of(entry: &Entry) -> u64 {
    let texts = entry.work.iter().flat_map(|work| work.texts());
    let texts = texts.map(|text| text.text().len() as u64).sum::<u64>();
    entry.item.text().len() as u64 + texts + entry.task.as_deref().map_or(0, Task::bytes)
}

/// A board without what every commit moves.
fn content(board: &Board) -> Board {
    let mut board = board.clone();
    (board.revision, board.updated_at, board.written_at) = Default::default();
    board.fences_after = Revision::default();
    let agents = board.agents.into_iter();
    board.agents = agents.map(|(name, agent)| (name, Agent { last_seen: None, ..agent })).collect();
    board
}

/// Returns the commit as it is read after storing.
fn stored(board: &Board, commit: &Commit) -> Commit {
    let body = stored::encode_commit(commit).unwrap();
    let frame = Frame::encode(board.id, commit.revision, &Body::plain(&body)).unwrap();
    let read = Frame::decode(board.id, commit.revision, &frame).unwrap();
    stored::decode_commit(&read).unwrap()
}

proptest! {
    // Faults at the meeting of two rare events need many plans to show.
    #![proptest_config(ProptestConfig::with_cases(512))]
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
