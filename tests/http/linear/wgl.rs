//! Search for a linear order of overlapping calls (Wing, Gong and Lowe).
//!
//! The search is Wing and Gong's: of the calls that no unplaced one precedes, try each as the next. As Lowe
//! has it, a pair of placed calls and state is tried once only. A call without an end may be placed
//! anywhere after its beginning, or nowhere.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

/// When a call was under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) began: Duration,
    pub(crate) ended: Option<Duration>,
}

/// No order explains all. The longest that explains some is that of `placed`; a call of `blocked` would have
/// to come next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) placed: Vec<usize>,
    pub(crate) blocked: Vec<usize>,
}

/// An order of the calls in which `step` takes each from the state before it to the one after it, and which
/// keeps every call that ended before another began before it.
pub(crate) fn linearize<S: Clone + Eq + Hash>(
    initial: S,
    spans: &[Span],
    step: impl Fn(&S, usize) -> Option<S>,
) -> Result<Vec<usize>, Stuck> {
    let mut events = Events::new(spans);
    let mut left = spans.iter().filter(|span| span.ended.is_some()).count();
    let mut placed = Placed::new(spans.len());
    let mut tried = HashSet::new();
    let mut order: Vec<(usize, S)> = Vec::new();
    let mut stuck: Option<Stuck> = None;
    let (mut state, mut at) = (initial, events.first());
    while left > 0 {
        if let Some(call) = events.begins(at) {
            let next = step(&state, call);
            if let Some(next) = next.filter(|next| tried.insert((placed.with(call), next.clone())))
            {
                placed.flip(call);
                left -= usize::from(spans[call].ended.is_some());
                events.lift(call);
                order.push((call, std::mem::replace(&mut state, next)));
                at = events.first();
            } else {
                at = events.after(at);
            }
            continue;
        }
        // Here a call ends that is not placed: none after it may be the next.
        if stuck.as_ref().is_none_or(|stuck| stuck.placed.len() < order.len()) {
            let placed = order.iter().map(|(call, _)| *call).collect();
            stuck = Some(Stuck { placed, blocked: events.open(at) });
        }
        let Some((call, before)) = order.pop() else {
            return Err(stuck.expect("it was noted"));
        };
        placed.flip(call);
        left += usize::from(spans[call].ended.is_some());
        events.put_back(call);
        (state, at) = (before, events.after(events.beginning(call)));
    }
    Ok(order.into_iter().map(|(call, _)| call).collect())
}

/// A set of calls, a bit each.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Placed(Box<[u64]>);

impl Placed {
    fn new(calls: usize) -> Self {
        Self(vec![0; calls.div_ceil(64)].into())
    }

    fn flip(&mut self, call: usize) {
        self.0[call / 64] ^= 1 << (call % 64);
    }

    fn with(&self, call: usize) -> Self {
        let mut more = self.clone();
        more.flip(call);
        more
    }
}

/// The beginnings and ends of the calls that are not placed, in the order of time, as a list with links in
/// both directions: whatever is taken out can be put back where it was.
struct Events {
    /// The call, and whether it begins here; for each event but the last, which stands for the end of time.
    what: Vec<(usize, bool)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Where each call begins and where it ends.
    places: Vec<(usize, Option<usize>)>,
}

impl Events {
    fn new(spans: &[Span]) -> Self {
        let mut events = Vec::new();
        for (call, span) in spans.iter().enumerate() {
            events.push((span.began, false, call));
            events.extend(span.ended.map(|ended| (ended, true, call)));
        }
        // At one moment beginnings come first: what touches is concurrent.
        events.sort_unstable();
        let mut places = vec![(0, None); spans.len()];
        for (at, (_, ends, call)) in events.iter().enumerate() {
            if *ends {
                places[*call].1 = Some(at);
            } else {
                places[*call].0 = at;
            }
        }
        // The one event more is both the last and the one before the first.
        let count = events.len() + 1;
        Self {
            what: events.iter().map(|(_, ends, call)| (*call, !ends)).collect(),
            next: (0..count).map(|at| (at + 1) % count).collect(),
            previous: (0..count).map(|at| (at + count - 1) % count).collect(),
            places,
        }
    }

    fn first(&self) -> usize {
        self.next[self.what.len()]
    }

    fn after(&self, at: usize) -> usize {
        self.next[at]
    }

    fn beginning(&self, call: usize) -> usize {
        self.places[call].0
    }

    /// The call that begins here.
    fn begins(&self, at: usize) -> Option<usize> {
        self.what.get(at).filter(|(_, begins)| *begins).map(|(call, _)| *call)
    }

    /// The calls that begin before this.
    fn open(&self, end: usize) -> Vec<usize> {
        let (mut calls, mut at) = (Vec::new(), self.first());
        while at != end {
            calls.extend(self.begins(at));
            at = self.next[at];
        }
        calls
    }

    fn lift(&mut self, call: usize) {
        let (begins, ends) = self.places[call];
        for at in [Some(begins), ends].into_iter().flatten() {
            let (previous, next) = (self.previous[at], self.next[at]);
            self.next[previous] = next;
            self.previous[next] = previous;
        }
    }

    /// Undoes the last `lift` that is not undone, which was of this call.
    fn put_back(&mut self, call: usize) {
        let (begins, ends) = self.places[call];
        for at in [ends, Some(begins)].into_iter().flatten() {
            let (previous, next) = (self.previous[at], self.next[at]);
            self.next[previous] = at;
            self.previous[next] = at;
        }
    }
}
