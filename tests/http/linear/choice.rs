//! Choices of a client: by a seed and by earlier answers.

use std::sync::Arc;

use super::history::{Op, Outcome, Shown};
use super::tasks::Known;

/// Numbers that are put are multiples of this, and no sum of what is added comes so far.
const STRIDE: i64 = 1_000_000;

/// How many turns a client stays with a key.
const STAY: usize = 5;

/// `SplitMix64`: numbers that look like chance and are the same for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).expect("below a usize")
    }
}

/// What a load is like.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) seed: u64,
    pub(crate) keys: usize,
    /// Whether transactions ask one number and write another, so that keys cannot be judged each alone.
    pub(crate) crossing: bool,
    /// Whether half of the calls are about requests and questions.
    pub(crate) tasks: bool,
}

pub(crate) struct Chooser {
    mix: Mix,
    chance: Chance,
    /// The turns that it took, from a number that is no other client's.
    turn: usize,
    value: i64,
    seen: Vec<Option<Shown>>,
    known: Known,
}

impl Chooser {
    pub(crate) fn new(mix: Mix, client: u32) -> Self {
        let seed = mix.seed ^ (u64::from(client) << 32);
        let first = STAY * usize::try_from(client).expect("a small number");
        let value = i64::from(client + 1) * 1_000_000 * STRIDE;
        let (chance, seen, known) = (Chance::new(seed), vec![None; mix.keys], Known::of(client));
        Self { mix, chance, turn: first, value, seen, known }
    }

    /// The keys take turns, so that each has its share, and few of the clients are at one key at once: a
    /// swap needs some luck, but not too much.
    pub(crate) fn choose(&mut self) -> Op {
        if self.mix.tasks && self.chance.below(2) == 0 {
            return Op::Task(self.known.choose(&mut self.chance));
        }
        let key = self.turn / STAY % self.mix.keys;
        self.turn += 1;
        self.value += STRIDE;
        let value = self.value;
        let by = i64::try_from(1 + self.chance.below(9)).expect("a digit");
        match self.chance.below(100) {
            0..32 => Op::Read { key },
            32..37 => Op::Put { key, value },
            37..72 => Op::Swap { key, seen: self.seen[key].clone(), value },
            72..86 => Op::Add { key, by },
            86..89 => Op::Delete { key },
            _ => {
                let asked = if self.mix.crossing { self.chance.place(self.mix.keys) } else { key };
                let expected = self.seen[asked].as_ref().map(|shown| shown.value);
                Op::Transact { asked, expected, key, value, by }
            }
        }
    }

    pub(crate) fn learn(&mut self, op: &Op, outcome: &Outcome) {
        if let (Op::Task(task), Outcome::Task(told)) = (op, outcome) {
            self.known.learn(*task, told);
        }
        let Some(key) = op.key() else { return };
        let seen = &mut self.seen[key];
        match (op, outcome) {
            (_, Outcome::Shown(shown)) => seen.clone_from(shown),
            (_, Outcome::Added { shown, .. }) => *seen = Some(shown.clone()),
            (Op::Put { value, .. } | Op::Swap { value, .. }, Outcome::Put { tag, .. }) => {
                *seen = Some(Shown { value: *value, tag: Arc::clone(tag) });
            }
            (_, Outcome::Deleted) => *seen = None,
            // A transaction tells no tag: what was seen before is worth a refusal.
            _ => {}
        }
    }
}
