//! Requests against a plain model: priority, caps, times, cancellation, review and retries together, with expiry, crashes,
//! restores and forks.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::board::*;
use super::task_model::{Model, State, Told};
use crate::*;
use crate::{RequestCommand, SessionCommand};
use LogName::Requests;

#[derive(Clone, Debug)]
enum Op {
    Post { device: Option<u8>, plan: PlanRequest },
    Claim { seq: u64, ttl: i64 },
    Next { device: Option<u8>, ttl: i64 },
    Release { seq: u64 },
    Finish { seq: u64, with_fence: bool },
    Fail { seq: u64, retry_in: Option<i64> },
    Cancel { seq: u64 },
    Judge { seq: u64, accepted: bool },
    Retry { seq: u64 },
    Caps(Vec<Cap>),
    Restore(Index),
    Fork(Index),
    Crash,
}

/// An operation, by one of three agents, so many milliseconds after the one before.
type Step = (Op, &'static str, i64);

fn duration(ms: i64) -> Ttl {
    format!("{ms}ms").parse().unwrap()
}

/// A board beside its model.
struct Play {
    board: Board,
    model: Model,
    now: i64,
    past: Vec<(Arc<Board>, Model)>,
    forks: u128,
}

impl Play {
    fn new() -> Self {
        let board = board_of([append(LogName::Trajectories, items(["{}"]))]);
        let past = vec![(Arc::new(board.clone()), Model::default())];
        Self { board, model: Model::default(), now: 1_000, past, forks: 0 }
    }

    fn take(&mut self, (op, agent, pause): &Step) {
        self.now += pause;
        while let Some(commit) = expire(&self.board, Timestamp(self.now), Nonce(1)) {
            admit(&self.board, &commit).unwrap();
            apply(&mut self.board, &commit);
        }
        self.model.expire(self.now);
        self.check();
        match op {
            Op::Crash => self.board = rebased(&self.board),
            Op::Restore(at) => self.restore(*at),
            Op::Fork(at) => self.fork(*at),
            op => self.write(op, agent),
        }
        self.check();
        // A base begins a history of its own.
        if matches!(op, Op::Crash | Op::Fork(_)) {
            self.past.clear();
        }
        self.past.push((Arc::new(self.board.clone()), self.model.clone()));
    }

    fn write(&mut self, op: &Op, agent: &str) {
        let (command, expected) = self.expect(op, agent);
        let found = take(&mut self.board, &write_by(agent, command), self.now);
        let found = match &found {
            Ok(decision) => match &decision.answer {
                Answer::Next(next) => Ok(next.as_ref().map(|(seq, _)| seq.0)),
                _ => Ok(None),
            },
            Err(Rejected::NotClaimable { why, .. }) => Err(why.word()),
            Err(Rejected::AlreadyFailed { .. }) => Err("failed"),
            Err(rejected) => Err(rejected.code().as_str()),
        };
        assert_eq!(found, expected, "{op:?} by {agent}: {:#?}", self.model);
    }

    fn restore(&mut self, at: Index) {
        let (then, told) = at.get(&self.past).clone();
        let command = Command::Session(SessionCommand::Restore { then });
        take(&mut self.board, &write(command), self.now).unwrap();
        self.model = told.freed(&self.model);
    }

    fn fork(&mut self, point: Index) {
        let (then, told) = point.get(&self.past).clone();
        self.forks += 1;
        let fork = then.forked(SessionId(uuid::Uuid::from_u128(100 + self.forks)));
        let adopt = SessionCommand::Adopt { board: Arc::new(fork), fork_of: None };
        let vacant = Board::absent(SessionId(uuid::Uuid::from_u128(900 + self.forks)), Revision(0));
        let adopt = write(Command::Session(adopt));
        let decision = decide(&vacant, &adopt, at(self.now, &POLICY)).unwrap();
        self.board = decision.board;
        self.model = told.freed(&told);
    }

    /// Returns the command, and what the contract says of it: the request that is claimed next, or why it is rejected.
    fn expect(&mut self, op: &Op, by: &str) -> (Command, Result<Option<u64>, &'static str>) {
        let (now, revision) = (self.now, self.board.revision().0 + 1);
        let model = &mut self.model;
        let request = |seq: u64, command| Command::Request(Seq(seq), command);
        match op {
            Op::Post { device, plan } => {
                let text =
                    device.map_or("{}".to_owned(), |device| format!("{{\"device\":{device}}}"));
                let after: Vec<u64> = plan.after.iter().map(|seq| seq.0).collect();
                let known = after.iter().all(|seq| model.get(*seq).is_some());
                let timed = |when: Option<When>| when.map(|when| when.at(Timestamp(now)).0);
                let not_before = timed(plan.not_before).filter(|at| *at > now);
                let deadline = timed(plan.deadline);
                let plan = plan.clone();
                let told = Told {
                    device: *device,
                    priority: plan.priority.get().into(),
                    after,
                    attempts: plan.attempts,
                    not_before,
                    deadline,
                    review: plan.review,
                    failures: 0,
                    cancel: false,
                    state: State::Free,
                    past: Vec::new(),
                };
                let inverted = not_before.zip(deadline).is_some_and(|(a, b)| b <= a);
                let expected = if known && !inverted { Ok(None) } else { Err("invalid-field") };
                if expected.is_ok() {
                    model.last += 1;
                    model.requests.insert(model.last, told);
                }
                let command = if plan.is_empty() {
                    append(Requests, vec![item(&text)])
                } else {
                    Command::Plan { items: vec![item(&text)], plan }
                };
                (command, expected)
            }
            Op::Next { device, ttl } => {
                let first = model.first(*device);
                if let Some(seq) = first {
                    let (agent, expires) = (by.to_owned(), now + ttl);
                    model.get_mut(seq).state = State::Claimed { agent, fence: revision, expires };
                }
                let wanted =
                    device.map(|device| ("device".to_owned(), json(&format!("{device}.0"))));
                let wanted = Wanted(wanted.into_iter().collect());
                let ttl = duration(*ttl);
                (Command::ClaimNext { wanted, from: Rank::FIRST, ttl }, Ok(first))
            }
            Op::Caps(caps) => {
                model.caps.clone_from(caps);
                let running_max = Set::To(caps.clone());
                let patch = SettingsPatch { running_max, ..SettingsPatch::default() };
                let (settings, labels) = (Set::To(patch), Set::Keep);
                let put = SessionCommand::Put { settings, labels, qa_pairs: Vec::new() };
                (Command::Session(put), Ok(None))
            }
            Op::Claim { seq, ttl } => {
                let command = request(*seq, RequestCommand::Claim { ttl: duration(*ttl) });
                (command, self.claim(*seq, by, now + ttl, revision))
            }
            Op::Release { seq } => (request(*seq, RequestCommand::Release), self.release(*seq, by)),
            Op::Finish { seq, with_fence } => {
                let fence = self.fence(*seq).filter(|_| *with_fence).map(Revision);
                let finish = RequestCommand::Finish { fence, result: Some(json("7")) };
                (request(*seq, finish), self.finish(*seq, by, fence.is_some()))
            }
            Op::Fail { seq, retry_in } => {
                let (reason, pause) = (Some(json("\"so\"")), retry_in.map(duration));
                let fail = RequestCommand::Fail { fence: None, reason, retry_in: pause };
                (request(*seq, fail), self.fail(*seq, by, retry_in.map(|pause| now + pause)))
            }
            Op::Cancel { seq } => {
                (request(*seq, RequestCommand::Cancel { reason: None }), self.cancel(*seq))
            }
            Op::Judge { seq, accepted } => {
                let fence = match self.model.get(*seq).map(|told| &told.state) {
                    Some(State::InReview { fence, .. }) => fence.map(Revision),
                    _ => None,
                };
                let (accepted, reason) = (*accepted, None);
                let judge = RequestCommand::Judge { fence, accepted, reason };
                (request(*seq, judge), self.judge(*seq, by, accepted))
            }
            Op::Retry { seq } => {
                (request(*seq, RequestCommand::Retry { deadline: None }), self.retry(*seq))
            }
            Op::Restore(_) | Op::Fork(_) | Op::Crash => unreachable!("no write"),
        }
    }

    fn fence(&self, seq: u64) -> Option<u64> {
        match self.model.get(seq)?.state {
            State::Claimed { fence, .. } | State::Lapsed(fence) => Some(fence),
            _ => None,
        }
    }

    fn claim(
        &mut self,
        seq: u64,
        by: &str,
        expires: i64,
        revision: u64,
    ) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq) else { return Err("entry-not-found") };
        if let State::Claimed { agent, fence, .. } = told.state.clone()
            && agent == by
        {
            // Within the five minutes after a cancellation, which no play outlasts.
            self.model.get_mut(seq).state = State::Claimed { agent, fence, expires };
            return Ok(None);
        }
        if let Some(why) = self.model.why(told) {
            return Err(why);
        }
        let agent = by.to_owned();
        self.model.get_mut(seq).state = State::Claimed { agent, fence: revision, expires };
        Ok(None)
    }

    fn release(&mut self, seq: u64, by: &str) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq) else { return Err("entry-not-found") };
        match &told.state {
            State::Claimed { agent, .. } if agent != by => Err("already-claimed"),
            _ => {
                self.model.get_mut(seq).end(Outcome::Released, None);
                Ok(None)
            }
        }
    }

    fn finish(
        &mut self,
        seq: u64,
        by: &str,
        with_fence: bool,
    ) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq).cloned() else { return Err("entry-not-found") };
        let fence = match &told.state {
            State::Claimed { agent, fence, .. } if agent == by => Some(*fence),
            State::Claimed { .. } => return Err("already-claimed"),
            State::Lapsed(fence) if with_fence => Some(*fence),
            State::Free | State::Lapsed(_) => None,
            // The same result by the same agent again changes nothing.
            State::Done | State::InReview { .. } => return self.finish_again(seq, by),
            State::Failed(_) => return Err("failed"),
            State::Cancelled => return Err("cancelled"),
        };
        if self.model.is_blocked(&told) {
            return Err("blocked");
        }
        let agent = by.to_owned();
        let told = self.model.get_mut(seq);
        told.state = if told.review { State::InReview { agent, fence } } else { State::Done };
        (told.cancel, told.not_before) = (false, None);
        Ok(None)
    }

    fn finish_again(&self, seq: u64, by: &str) -> Result<Option<u64>, &'static str> {
        let entry = self.board.log(&Requests).unwrap().get(Seq(seq)).unwrap();
        let work = entry.work.as_deref().unwrap();
        let is_own = work.agent().is_some_and(|agent| agent.as_str() == by);
        match work {
            _ if is_own => Ok(None),
            Work::InReview(_) => Err("in_review"),
            _ => Err("already-claimed"),
        }
    }

    fn fail(
        &mut self,
        seq: u64,
        by: &str,
        retry_at: Option<i64>,
    ) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq) else { return Err("entry-not-found") };
        match &told.state {
            State::Claimed { agent, .. } if agent == by => {
                self.model.get_mut(seq).end(Outcome::Failed, retry_at);
                Ok(None)
            }
            State::Claimed { .. } | State::Done => Err("already-claimed"),
            State::InReview { .. } => Err("in_review"),
            State::Failed(_) => Err("failed"),
            State::Cancelled => Err("cancelled"),
            State::Free | State::Lapsed(_) => Err("illegal-transition"),
        }
    }

    fn cancel(&mut self, seq: u64) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq).cloned() else { return Err("entry-not-found") };
        let told_mut = self.model.get_mut(seq);
        match told.state {
            State::Cancelled => {}
            State::Done => return Err("already-claimed"),
            State::Failed(_) => return Err("failed"),
            State::Claimed { .. } if !told.cancel => told_mut.cancel = true,
            State::Claimed { .. } | State::InReview { .. } | State::Free | State::Lapsed(_) => {
                (told_mut.cancel, told_mut.not_before) = (false, None);
                told_mut.state = State::Cancelled;
            }
        }
        Ok(None)
    }

    fn judge(&mut self, seq: u64, by: &str, accepted: bool) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq).cloned() else { return Err("entry-not-found") };
        let State::InReview { agent, fence } = told.state else {
            return self.judge_again(seq, by, accepted);
        };
        if agent == by {
            return Err("forbidden");
        }
        let told = self.model.get_mut(seq);
        if accepted {
            told.state = State::Done;
            return Ok(None);
        }
        told.past.push((agent, Outcome::Refused));
        told.failures += u32::from(told.attempts.is_some());
        let is_spent = told.attempts.is_some_and(|attempts| told.failures >= attempts);
        told.state = if is_spent { State::Failed(fence) } else { State::Free };
        Ok(None)
    }

    fn judge_again(&self, seq: u64, by: &str, accepted: bool) -> Result<Option<u64>, &'static str> {
        let entry = self.board.log(&Requests).unwrap().get(Seq(seq)).unwrap();
        let done = entry.work.as_deref().and_then(Work::done).filter(|_| accepted);
        let done = done.filter(|done| done.fence.is_none());
        let verdict = done.and_then(|done| done.verdict.as_deref());
        let is_same = verdict.is_some_and(|verdict| verdict.agent.as_str() == by);
        if is_same { Ok(None) } else { Err("illegal-transition") }
    }

    fn retry(&mut self, seq: u64) -> Result<Option<u64>, &'static str> {
        let Some(told) = self.model.get(seq).cloned() else { return Err("entry-not-found") };
        match told.state {
            State::Done => return Err("already-claimed"),
            State::Failed(_) | State::Cancelled => {
                let told = self.model.get_mut(seq);
                (told.state, told.failures, told.deadline) = (State::Free, 0, None);
            }
            _ => {}
        }
        Ok(None)
    }

    /// Compares each request of the board with the model's.
    fn check(&self) {
        let Self { board, model, .. } = self;
        let requests = board.log(&Requests).unwrap();
        assert_eq!(requests.len(), model.requests.len());
        for (entry, (seq, told)) in requests.iter().zip(&model.requests) {
            assert_eq!(entry.seq.0, *seq);
            let task = entry.task.as_deref().cloned().unwrap_or_default();
            let state = match entry.work.as_deref() {
                None => State::Free,
                Some(Work::Lapsed { fence }) => State::Lapsed(fence.0),
                Some(Work::Claimed(claim)) => State::Claimed {
                    agent: claim.agent.to_string(),
                    fence: claim.fence.0,
                    expires: claim.expires_at.0,
                },
                Some(Work::InReview(review)) => State::InReview {
                    agent: review.done.agent.as_ref().unwrap().to_string(),
                    fence: review.done.fence.map(|fence| fence.0),
                },
                Some(Work::Done(_)) => State::Done,
                Some(Work::Failed(failed)) => State::Failed(failed.fence.map(|fence| fence.0)),
                Some(Work::Cancelled(_)) => State::Cancelled,
            };
            let ends = task.past_attempts.iter().filter(|end| end.outcome != Outcome::Released);
            let past: Vec<_> =
                ends.map(|end| (end.agent.as_ref().unwrap().to_string(), end.outcome)).collect();
            let known = told.past.len().saturating_sub(past.len());
            assert_eq!(past, told.past[known..], "{entry:?}");
            let found = Told {
                state,
                failures: task.failures,
                cancel: task.cancel.is_some(),
                not_before: task.plan.not_before.map(|at| at.0),
                deadline: task.plan.deadline.map(|at| at.0),
                past: told.past.clone(),
                ..told.clone()
            };
            assert_eq!(&found, told, "{entry:?}");
            let is_waiting = model.is_waiting(told);
            assert_eq!(entry.is_claimable(), is_waiting, "{entry:?}");
            let is_claimable = is_waiting && model.has_room(told);
            assert_eq!(board.is_claimable(entry.seq), is_claimable, "{entry:?}");
        }
        for device in [None, Some(1), Some(2)] {
            let wanted = device.map(|device| ("device".to_owned(), json(&device.to_string())));
            let next =
                board.next_claimable(&Wanted(wanted.into_iter().collect()), Rank::FIRST, 999);
            let next = if let Next::Found(rank) = next { Some(rank.seq.0) } else { None };
            assert_eq!(next, model.first(device));
        }
    }
}

fn a_plan() -> impl Strategy<Value = PlanRequest> {
    let after = select(vec![vec![], vec![], vec![1], vec![1, 2]]);
    let time = || option::weighted(0.3, select(vec![50, 120, 400]));
    let rest = (-1_i64..2, time(), time(), prop::bool::weighted(0.3));
    (after, option::of(1_u32..3), rest).prop_map(|(after, attempts, rest)| {
        let (priority, not_before, deadline, review) = rest;
        let when = |ms: Option<i64>| ms.map(duration).map(When::In);
        PlanRequest {
            after: after.into_iter().map(Seq).collect(),
            attempts,
            priority: Priority::new(priority).unwrap(),
            not_before: when(not_before),
            deadline: when(deadline),
            review,
        }
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seq = || 1_u64..6;
    let ttl = || select(vec![60, 150, 900]);
    let device = || option::weighted(0.7, 1_u8..3);
    let cap = |by: Option<&str>, max| Cap { by: by.map(str::to_owned), max };
    let caps = vec![
        vec![],
        vec![cap(None, 2)],
        vec![cap(Some("device"), 1)],
        vec![cap(None, 3), cap(Some("device"), 2)],
    ];
    let op = prop_oneof![
        8 => (device(), a_plan()).prop_map(|(device, plan)| Op::Post { device, plan }),
        5 => (seq(), ttl()).prop_map(|(seq, ttl)| Op::Claim { seq, ttl }),
        8 => (option::weighted(0.4, 1_u8..3), ttl()).prop_map(|(device, ttl)| Op::Next { device, ttl }),
        3 => seq().prop_map(|seq| Op::Release { seq }),
        6 => (seq(), any::<bool>()).prop_map(|(seq, with_fence)| Op::Finish { seq, with_fence }),
        5 => (seq(), option::of(select(vec![40, 200]))).prop_map(|(seq, retry_in)| Op::Fail { seq, retry_in }),
        3 => seq().prop_map(|seq| Op::Cancel { seq }),
        5 => (seq(), any::<bool>()).prop_map(|(seq, accepted)| Op::Judge { seq, accepted }),
        2 => seq().prop_map(|seq| Op::Retry { seq }),
        2 => select(caps).prop_map(Op::Caps),
        2 => any::<Index>().prop_map(Op::Restore),
        1 => any::<Index>().prop_map(Op::Fork),
        2 => Just(Op::Crash),
    ];
    let pause = prop_oneof![3 => Just(0_i64), 4 => 1_i64..60, 1 => 60_i64..500];
    vec((op, select(vec!["A", "B", "C"]), pause), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn requests_are_as_a_plain_model_has_them(steps in steps()) {
        let mut play = Play::new();
        for step in &steps {
            play.take(step);
        }
    }
}
