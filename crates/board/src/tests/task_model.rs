//! A plain model of requests as tasks, written from the contract: a list that is looked through whole at each step.

use std::collections::BTreeMap;

use crate::*;

/// A request as the contract describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) device: Option<u8>,
    pub(super) priority: i64,
    pub(super) after: Vec<u64>,
    pub(super) attempts: Option<u32>,
    pub(super) not_before: Option<i64>,
    pub(super) deadline: Option<i64>,
    pub(super) review: bool,
    pub(super) failures: u32,
    pub(super) cancel: bool,
    pub(super) state: State,
    /// The ends of claims, but those that were given back.
    pub(super) past: Vec<(String, Outcome)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Free,
    Lapsed(u64),
    Claimed { agent: String, fence: u64, expires: i64 },
    InReview { agent: String, fence: Option<u64> },
    Done,
    Failed(Option<u64>),
    Cancelled,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) requests: BTreeMap<u64, Told>,
    /// The last seq that was given, which restores keep.
    pub(super) last: u64,
    pub(super) caps: Vec<Cap>,
}

impl Model {
    pub(super) fn get(&self, seq: u64) -> Option<&Told> {
        self.requests.get(&seq)
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> &mut Told {
        self.requests.get_mut(&seq).unwrap()
    }

    pub(super) fn is_blocked(&self, told: &Told) -> bool {
        told.after.iter().any(|seq| self.get(*seq).unwrap().state != State::Done)
    }

    pub(super) fn is_waiting(&self, told: &Told) -> bool {
        matches!(told.state, State::Free | State::Lapsed(_))
            && told.not_before.is_none()
            && !self.is_blocked(told)
    }

    pub(super) fn has_room(&self, told: &Told) -> bool {
        self.caps.iter().all(|cap| {
            let counts = |other: &&Told| {
                let same =
                    cap.by.is_none() || (other.device.is_some() && other.device == told.device);
                same && matches!(other.state, State::Claimed { .. })
            };
            let is_counted = cap.by.is_none() || told.device.is_some();
            let claimed = self.requests.values().filter(counts).count();
            !is_counted || claimed < cap.max as usize
        })
    }

    /// Why a claim by this agent is rejected.
    pub(super) fn why(&self, told: &Told) -> Option<&'static str> {
        match &told.state {
            State::Claimed { .. } => Some("already-claimed"),
            State::Done => Some("already-claimed"),
            State::InReview { .. } => Some("in_review"),
            State::Failed(_) => Some("failed"),
            State::Cancelled => Some("cancelled"),
            State::Free | State::Lapsed(_) if self.is_blocked(told) => Some("blocked"),
            State::Free | State::Lapsed(_) if told.not_before.is_some() => Some("not_before"),
            State::Free | State::Lapsed(_) if !self.has_room(told) => Some("running_max"),
            State::Free | State::Lapsed(_) => None,
        }
    }

    pub(super) fn first(&self, device: Option<u8>) -> Option<u64> {
        let fits = |told: &Told| {
            self.is_waiting(told)
                && self.has_room(told)
                && device.is_none_or(|device| told.device == Some(device))
        };
        let fitting = self.requests.iter().filter(|(_, told)| fits(told));
        fitting.min_by_key(|(seq, told)| (-told.priority, **seq)).map(|(seq, _)| *seq)
    }

    /// What falls due by then: deadlines first, then claims, then waits.
    pub(super) fn expire(&mut self, now: i64) {
        for told in self.requests.values_mut() {
            let is_open = !matches!(told.state, State::Done | State::Failed(_) | State::Cancelled);
            if is_open && let Some(deadline) = told.deadline.filter(|at| *at <= now) {
                let fence = match told.state.clone() {
                    State::Claimed { agent, fence, expires } => {
                        let lapsed = expires <= deadline;
                        let outcome = if lapsed { Outcome::Lapsed } else { Outcome::Failed };
                        told.past.push((agent, outcome));
                        Some(fence)
                    }
                    State::InReview { agent, fence } => {
                        told.past.push((agent, Outcome::Failed));
                        fence
                    }
                    State::Lapsed(fence) => Some(fence),
                    _ => None,
                };
                told.state = if std::mem::take(&mut told.cancel) {
                    State::Cancelled
                } else {
                    State::Failed(fence)
                };
                told.not_before = None;
            }
        }
        for told in self.requests.values_mut() {
            if let State::Claimed { expires, .. } = told.state
                && expires <= now
            {
                told.end(Outcome::Lapsed, None);
            }
            told.not_before = told.not_before.filter(|at| *at > now);
        }
    }

    /// The requests of a restored or forked board: no claim holds.
    pub(super) fn freed(&self, now: &Self) -> Self {
        let mut then = Self { caps: now.caps.clone(), last: now.last, ..self.clone() };
        for told in then.requests.values_mut() {
            match told.state {
                State::Claimed { .. } if told.cancel => told.state = State::Cancelled,
                State::Claimed { .. } | State::Lapsed(_) => told.state = State::Free,
                _ => {}
            }
            told.cancel = false;
        }
        then
    }
}

impl Told {
    pub(super) fn end(&mut self, outcome: Outcome, retry_at: Option<i64>) {
        let State::Claimed { agent, fence, .. } = self.state.clone() else { return };
        if outcome != Outcome::Released {
            self.past.push((agent, outcome));
            self.failures += u32::from(self.attempts.is_some());
        }
        let is_spent = outcome != Outcome::Released
            && self.attempts.is_some_and(|attempts| self.failures >= attempts);
        self.state = if std::mem::take(&mut self.cancel) {
            State::Cancelled
        } else if is_spent {
            State::Failed(Some(fence))
        } else {
            self.not_before = retry_at;
            if outcome == Outcome::Lapsed { State::Lapsed(fence) } else { State::Free }
        };
    }
}
