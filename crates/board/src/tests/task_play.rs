//! Requests against a plain model: priority, caps, times, cancellation, review and retries together, with expiry, crashes,
//! restores and forks.

use std::sync::Arc;

use blackboard_task_model::{DEVICES, End, Model, Op, Plan, State, Step, Task, Verdict, steps};
use proptest::prelude::*;
use proptest::sample::Index;

use super::board::*;
use crate::*;
use crate::{RequestCommand, SessionCommand};
use LogName::Requests;

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
        let (command, revision) = (self.command(op), self.board.revision().0 + 1);
        let expected = self.model.take(op, agent, self.now, revision);
        let found = take(&mut self.board, &write_by(agent, command), self.now);
        let found: Verdict = match &found {
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

    fn command(&self, op: &Op) -> Command {
        let request = |seq: &u64, command| Command::Request(Seq(*seq), command);
        let (fence, reason) = (None, None);
        match op {
            Op::Post { device, plan } => post(*device, plan),
            Op::Next { device, ttl } => {
                let wanted =
                    device.map(|device| ("device".to_owned(), json(&format!("{device}.0"))));
                let wanted = Wanted(wanted.into_iter().collect());
                Command::ClaimNext { wanted, from: Rank::FIRST, ttl: duration(*ttl) }
            }
            Op::Caps(caps) => {
                let cap = |cap: &blackboard_task_model::Cap| Cap {
                    by: cap.by_device.then(|| "device".to_owned()),
                    max: cap.max.try_into().unwrap(),
                };
                let running_max = Set::To(caps.iter().map(cap).collect());
                let patch = SettingsPatch { running_max, ..SettingsPatch::default() };
                let (settings, labels) = (Set::To(patch), Set::Keep);
                Command::Session(SessionCommand::Put { settings, labels, qa_pairs: Vec::new() })
            }
            Op::Claim { seq, ttl } => request(seq, RequestCommand::Claim { ttl: duration(*ttl) }),
            Op::Release { seq } => request(seq, RequestCommand::Release),
            Op::Finish { seq, with_fence } => {
                let fence = self.model.fence(*seq).filter(|_| *with_fence).map(Revision);
                request(seq, RequestCommand::Finish { fence, result: Some(json("7")) })
            }
            Op::Fail { seq, retry_in } => {
                let (reason, retry_in) = (Some(json("\"so\"")), retry_in.map(duration));
                request(seq, RequestCommand::Fail { fence, reason, retry_in })
            }
            Op::Cancel { seq } => request(seq, RequestCommand::Cancel { reason }),
            Op::Judge { seq, accepted } => {
                let (fence, accepted) = (self.model.review_fence(*seq).map(Revision), *accepted);
                request(seq, RequestCommand::Judge { fence, accepted, reason })
            }
            Op::Retry { seq } => request(seq, RequestCommand::Retry { deadline: None }),
            Op::Restore(_) | Op::Fork(_) | Op::Crash => unreachable!("no write"),
        }
    }

    /// Compares each request of the board with the model's.
    fn check(&self) {
        let Self { board, model, .. } = self;
        let requests = board.log(&Requests).unwrap();
        assert_eq!(requests.len(), model.requests.len());
        for (entry, (seq, expected)) in requests.iter().zip(&model.requests) {
            assert_eq!(entry.seq.0, *seq);
            assert_eq!(&shown(entry, expected), expected, "{entry:?}");
            assert_eq!(entry.is_claimable(), model.is_waiting(expected), "{entry:?}");
            let is_claimable = model.is_claimable(expected);
            assert_eq!(board.is_claimable(entry.seq), is_claimable, "{entry:?}");
        }
        for device in [None].into_iter().chain(DEVICES.map(Some)) {
            let wanted = device.map(|device| ("device".to_owned(), json(&device.to_string())));
            let next =
                board.next_claimable(&Wanted(wanted.into_iter().collect()), Rank::FIRST, 999);
            let next = if let Next::Found(rank) = next { Some(rank.seq.0) } else { None };
            assert_eq!(next, model.first(device));
        }
    }
}

fn post(device: Option<u8>, plan: &Plan) -> Command {
    let text = device.map_or("{}".to_owned(), |device| format!("{{\"device\":{device}}}"));
    let when = |ms: Option<i64>| ms.map(duration).map(When::In);
    let plan = PlanRequest {
        after: plan.after.iter().map(|seq| Seq(*seq)).collect(),
        attempts: plan.attempts,
        priority: Priority::new(plan.priority).unwrap(),
        not_before: when(plan.not_before),
        deadline: when(plan.deadline),
        review: plan.review,
    };
    if plan.is_empty() {
        append(Requests, vec![item(&text)])
    } else {
        Command::Plan { items: vec![item(&text)], plan }
    }
}

/// An entry as the model would have it: its terms are as posted, and past attempts the last ten.
fn shown(entry: &Entry, expected: &Task) -> Task {
    let task = entry.task.as_deref().cloned().unwrap_or_default();
    let fence = |fence: Option<Revision>| fence.map(|fence| fence.0);
    let done = |done: &Done| (done.agent.as_ref().unwrap().to_string(), fence(done.fence));
    let state = match entry.work.as_deref() {
        None => State::Free,
        Some(Work::Lapsed { fence }) => State::Lapsed(fence.0),
        Some(Work::Claimed(claim)) => State::Claimed {
            agent: claim.agent.to_string(),
            fence: claim.fence.0,
            expires: claim.expires_at.0,
        },
        Some(Work::InReview(review)) => {
            let (agent, fence) = done(&review.done);
            State::InReview { agent, fence }
        }
        Some(Work::Done(end)) => {
            let (agent, fence) = done(end);
            let judge = end.verdict.as_ref().map(|verdict| verdict.agent.to_string());
            State::Done { agent, fence, judge }
        }
        Some(Work::Failed(failed)) => State::Failed(fence(failed.fence)),
        Some(Work::Cancelled(_)) => State::Cancelled,
    };
    let ends = task.past_attempts.iter().filter_map(|attempt| {
        let end = match attempt.outcome {
            Outcome::Failed => End::Failed,
            Outcome::Lapsed => End::Lapsed,
            Outcome::Refused => End::Refused,
            Outcome::Released => return None,
        };
        Some((attempt.agent.as_ref().unwrap().to_string(), end))
    });
    let past = expected.with_forgotten(ends.collect());
    Task {
        state,
        failures: task.failures,
        cancel: task.cancel.is_some(),
        not_before: task.plan.not_before.map(|at| at.0),
        deadline: task.plan.deadline.map(|at| at.0),
        past,
        ..expected.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn requests_are_as_a_plain_model_has_them(steps in steps(80)) {
        let mut play = Play::new();
        for step in &steps {
            play.take(step);
        }
    }
}
