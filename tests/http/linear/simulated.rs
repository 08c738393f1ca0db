//! A simulated board and clients: histories of any length, with flaws on demand.

use std::sync::Arc;
use std::time::Duration;

use super::choice::{Chance, Chooser, Mix};
use super::history::{Call, Op, Outcome, Shown};
use super::tasks::{Claim, Task, Told, Work};

/// How long an answer may be on its way, in ticks. About one call a tick takes effect.
const LATENCY: u64 = 12;

/// What is wrong with the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// Now and then a read shows the board as it was some commits ago, and says so.
    StaleRead,
    /// The same, but it names the present revision.
    HiddenStaleRead,
    /// Now and then a swap is done although there is another version.
    LostUpdate,
    /// Now and then a sum is told, but not kept.
    LostSum,
    /// Now and then a transaction takes the other branch.
    WrongBranch,
    /// Now and then a swap is refused although it might be done.
    Refusal,
    /// Now and then a write takes effect only after its answer.
    Late,
    /// Now and then a request is claimed although another holds it.
    SecondWinner,
    /// Now and then a request is ended under a claim that is over.
    StaleFence,
    /// Now and then a question is answered again.
    SecondAnswer,
    /// Now and then two entries are told one `seq`.
    SameSeq,
}

impl Flaw {
    pub(super) const OF_NUMBERS: [Self; 7] = [
        Self::StaleRead,
        Self::HiddenStaleRead,
        Self::LostUpdate,
        Self::LostSum,
        Self::WrongBranch,
        Self::Refusal,
        Self::Late,
    ];

    pub(super) const OF_TASKS: [Self; 4] =
        [Self::SecondWinner, Self::StaleFence, Self::SecondAnswer, Self::SameSeq];
}

/// `count` calls of that many clients, in the order in which they took effect, on a board of revision 0.
pub(super) fn history(mix: Mix, clients: u32, count: usize, flaw: Flaw) -> Vec<Call> {
    let mut board = Simulated::new(mix, flaw);
    let mut chance = Chance::new(!mix.seed);
    let mut choosers: Vec<(Chooser, u64)> =
        (0..clients).map(|client| (Chooser::new(mix, client), 0)).collect();
    let mut calls = Vec::with_capacity(count);
    let mut now = 0;
    while calls.len() < count {
        now += 1 + chance.below(2);
        let any = chance.place(choosers.len());
        let (chooser, idle) = &mut choosers[any];
        if *idle >= now {
            continue;
        }
        let began = now - chance.below(LATENCY.min(now - *idle));
        let ended = now + chance.below(LATENCY);
        *idle = ended;
        let op = chooser.choose();
        let (outcome, revision) = board.answer(&op);
        chooser.learn(&op, &outcome);
        let late = flaw == Flaw::Late && outcome.committed() && chance.below(20) == 0;
        let back = if late { 2 * LATENCY } else { 0 };
        let at = |tick: u64| Duration::from_micros(tick);
        let (began, ended) = (at(began.saturating_sub(back)), at(ended.saturating_sub(back)));
        calls.push(Call { op, outcome, revision, began, ended: Some(ended) });
    }
    calls
}

type Numbers = Vec<Option<Shown>>;

struct Simulated {
    numbers: Numbers,
    requests: Vec<Work>,
    questions: Vec<Option<i64>>,
    /// The numbers at the last few revisions, the oldest first.
    past: Vec<(u64, Numbers)>,
    revision: u64,
    flaw: Flaw,
    chance: Chance,
}

impl Simulated {
    fn new(mix: Mix, flaw: Flaw) -> Self {
        Self {
            numbers: vec![None; mix.keys],
            requests: Vec::new(),
            questions: Vec::new(),
            past: Vec::new(),
            revision: 0,
            flaw,
            chance: Chance::new(mix.seed),
        }
    }

    fn strikes(&mut self, flaw: Flaw) -> bool {
        self.flaw == flaw && self.chance.below(20) == 0
    }

    fn answer(&mut self, op: &Op) -> (Outcome, u64) {
        let key = op.key().unwrap_or(0);
        let present = self.numbers[key].clone();
        let outcome = match op {
            Op::Task(task) => Outcome::Task(self.task(*task)),
            Op::Read { .. } => return self.read(key),
            Op::Put { value, .. } => self.put(key, *value),
            Op::Swap { seen, value, .. } => {
                let refused = present != *seen && !self.strikes(Flaw::LostUpdate);
                if refused || self.strikes(Flaw::Refusal) {
                    return (Outcome::Shown(present), self.revision);
                }
                self.put(key, *value)
            }
            Op::Add { by, .. } => {
                let (made, shown) = (present.is_none(), self.add(key, *by));
                if self.strikes(Flaw::LostSum) {
                    self.numbers[key] = present;
                }
                Outcome::Added { made, shown }
            }
            Op::Delete { .. } if present.is_none() => {
                return (Outcome::Shown(None), self.revision);
            }
            Op::Delete { .. } => {
                self.commit(key, None);
                Outcome::Deleted
            }
            Op::Transact { asked, expected, value, by, .. } => {
                let found = self.numbers[*asked].as_ref().map(|shown| shown.value);
                if (found == *expected) != self.strikes(Flaw::WrongBranch) {
                    self.put(key, *value);
                    Outcome::Then
                } else {
                    Outcome::Else(self.add(key, *by).value)
                }
            }
        };
        (outcome, self.revision)
    }

    fn task(&mut self, task: Task) -> Told {
        let told = match task {
            Task::AppendRequest => {
                let again = self.strikes(Flaw::SameSeq);
                Told::Appended { seq: append(&mut self.requests, Work::Open, again) }
            }
            Task::AppendQuestion => {
                let again = self.strikes(Flaw::SameSeq);
                Told::Appended { seq: append(&mut self.questions, None, again) }
            }
            Task::ReadRequest { seq } => Told::Request(self.requests[place(seq)].clone()),
            Task::ReadQuestion { seq } => Told::Question(self.questions[place(seq)]),
            Task::Claim { seq, client } => self.claim(place(seq), client),
            Task::GiveBack { claim, client } => self.end(claim, client, Work::Open),
            Task::Finish { claim, client, .. } => self.end(claim, client, Work::Done),
            Task::Answer { seq, text } => {
                if self.questions[place(seq)].is_some() && !self.strikes(Flaw::SecondAnswer) {
                    Told::Refused
                } else {
                    self.questions[place(seq)] = Some(text);
                    Told::Done
                }
            }
        };
        self.revision += u64::from(told.committed());
        told
    }

    fn claim(&mut self, place: usize, client: u32) -> Told {
        let fence = match self.requests[place].clone() {
            Work::Claimed { client: holder, fence } if holder == client => fence,
            Work::Claimed { .. } if !self.strikes(Flaw::SecondWinner) => return Told::Refused,
            Work::Done => return Told::Refused,
            Work::Open | Work::Claimed { .. } => self.revision + 1,
        };
        self.requests[place] = Work::Claimed { client, fence };
        Told::Claimed { fence }
    }

    fn end(&mut self, Claim { seq, fence }: Claim, client: u32, after: Work) -> Told {
        let place = place(seq);
        let holds = self.requests[place] == Work::Claimed { client, fence };
        if !holds && !self.strikes(Flaw::StaleFence) {
            return Told::Refused;
        }
        self.requests[place] = after;
        Told::Done
    }

    fn read(&mut self, key: usize) -> (Outcome, u64) {
        let hidden = self.strikes(Flaw::HiddenStaleRead);
        if hidden || self.strikes(Flaw::StaleRead) {
            let (revision, numbers) = self.old();
            let named = if hidden { self.revision } else { revision };
            return (Outcome::Shown(numbers[key].clone()), named);
        }
        (Outcome::Shown(self.numbers[key].clone()), self.revision)
    }

    fn old(&self) -> (u64, Numbers) {
        self.past.first().cloned().unwrap_or((self.revision, self.numbers.clone()))
    }

    fn put(&mut self, key: usize, value: i64) -> Outcome {
        let made = self.numbers[key].is_none();
        let shown = self.commit(key, Some(value)).expect("a number");
        Outcome::Put { made, tag: shown.tag }
    }

    fn add(&mut self, key: usize, by: i64) -> Shown {
        let sum = self.numbers[key].as_ref().map_or(0, |shown| shown.value) + by;
        self.commit(key, Some(sum)).expect("a number")
    }

    fn commit(&mut self, key: usize, value: Option<i64>) -> Option<Shown> {
        if self.past.len() == 40 {
            self.past.remove(0);
        }
        self.past.push((self.revision, self.numbers.clone()));
        self.revision += 1;
        let tag = format!("\"{key}.{}\"", self.revision);
        self.numbers[key] = value.map(|value| Shown { value, tag: Arc::from(tag) });
        self.numbers[key].clone()
    }
}

/// Where the entry of this `seq` stands in its log.
fn place(seq: u64) -> usize {
    usize::try_from(seq).expect("a small number") - 1
}

/// Appends an entry; gives its `seq`, or `again` that of the one before.
fn append<T>(log: &mut Vec<T>, entry: T, again: bool) -> u64 {
    log.push(entry);
    let seq = log.len() as u64;
    if again && seq > 1 { seq - 1 } else { seq }
}
