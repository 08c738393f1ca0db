//! Operations on requests, drawn at random: few agents, devices and requests, so that they meet.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The agents of a play.
pub const AGENTS: [&str; 3] = ["A", "B", "C"];

/// The values of the member `device`, which caps count by and claims match.
pub const DEVICES: [u8; 2] = [1, 2];

/// Terms of a request that is posted. Times are milliseconds from then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Requests that it waits for.
    pub after: Vec<u64>,
    /// How many attempts may fail.
    pub attempts: Option<u32>,
    /// Higher ones are claimed first.
    pub priority: i64,
    /// When it can be claimed.
    pub not_before: Option<i64>,
    /// When it fails.
    pub deadline: Option<i64>,
    /// Whether another agent judges its result.
    pub review: bool,
}

/// How many requests may be claimed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// For each device, or of all.
    pub by_device: bool,
    /// So many.
    pub max: usize,
}

/// An operation. Times are milliseconds.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the contract")]
pub enum Op {
    /// Appends a request.
    Post { device: Option<u8>, plan: Plan },
    /// Claims or renews this one.
    Claim { seq: u64, ttl: i64 },
    /// Claims the first that can be claimed.
    Next { device: Option<u8>, ttl: i64 },
    /// Gives a claim back.
    Release { seq: u64 },
    /// Sets it done.
    Finish { seq: u64, with_fence: bool },
    /// Ends an attempt.
    Fail { seq: u64, retry_in: Option<i64> },
    /// Cancels it.
    Cancel { seq: u64 },
    /// Judges its result.
    Judge { seq: u64, accepted: bool },
    /// Begins again what ended.
    Retry { seq: u64 },
    /// Sets the caps.
    Caps(Vec<Cap>),
    /// Restores an earlier moment of the play.
    Restore(Index),
    /// Goes on in a fork of an earlier moment.
    Fork(Index),
    /// Kills what runs, and goes on with what was stored.
    Crash,
}

/// An operation by one of the agents, so many milliseconds after the one before.
pub type Step = (Op, &'static str, i64);

fn a_plan() -> impl Strategy<Value = Plan> {
    let after = select(vec![vec![], vec![], vec![1], vec![1, 2]]);
    let time = || option::weighted(0.3, select(vec![50, 120, 400]));
    let rest = (-1_i64..2, time(), time(), prop::bool::weighted(0.3));
    (after, option::of(1_u32..3), rest).prop_map(|(after, attempts, rest)| {
        let (priority, not_before, deadline, review) = rest;
        Plan { after, attempts, priority, not_before, deadline, review }
    })
}

fn caps() -> impl Strategy<Value = Vec<Cap>> {
    let of_all = |max| Cap { by_device: false, max };
    let of_each = |max| Cap { by_device: true, max };
    select(vec![vec![], vec![of_all(2)], vec![of_each(1)], vec![of_all(3), of_each(2)]])
}

/// Plays of up to so many steps.
pub fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let seq = || 1_u64..6;
    let ttl = || select(vec![60, 150, 900]);
    let device = |share| option::weighted(share, select(DEVICES.to_vec()));
    let pause = || option::of(select(vec![40, 200]));
    let op = prop_oneof![
        8 => (device(0.7), a_plan()).prop_map(|(device, plan)| Op::Post { device, plan }),
        5 => (seq(), ttl()).prop_map(|(seq, ttl)| Op::Claim { seq, ttl }),
        8 => (device(0.4), ttl()).prop_map(|(device, ttl)| Op::Next { device, ttl }),
        3 => seq().prop_map(|seq| Op::Release { seq }),
        6 => (seq(), any::<bool>()).prop_map(|(seq, with_fence)| Op::Finish { seq, with_fence }),
        5 => (seq(), pause()).prop_map(|(seq, retry_in)| Op::Fail { seq, retry_in }),
        3 => seq().prop_map(|seq| Op::Cancel { seq }),
        5 => (seq(), any::<bool>()).prop_map(|(seq, accepted)| Op::Judge { seq, accepted }),
        2 => seq().prop_map(|seq| Op::Retry { seq }),
        2 => caps().prop_map(Op::Caps),
        2 => any::<Index>().prop_map(Op::Restore),
        1 => any::<Index>().prop_map(Op::Fork),
        2 => Just(Op::Crash),
    ];
    let between = prop_oneof![3 => Just(0_i64), 4 => 1_i64..60, 1 => 60_i64..500];
    vec((op, select(AGENTS.to_vec()), between), 1..max)
}
