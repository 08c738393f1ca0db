//! Differences between two boards of a session, paged.
//!
//! Their order is fixed. The boards share one history, so parts with the same revision are equal, and are skipped.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

use blackboard_auth::Caller;
use blackboard_board::json::Kind;
use blackboard_board::{
    AgentName, Board, Entry, Item, Labels, Life, Log, LogName, Run, Seq, Settings, StatePath,
    StateValue,
};

/// The values at a place before and after. They differ, and at least one exists.
#[derive(Clone, Debug)]
pub(crate) struct Sides<T> {
    pub(crate) before: Option<T>,
    pub(crate) after: Option<T>,
}

/// A place at which the boards differ.
#[derive(Clone, Debug)]
pub(crate) enum Difference {
    Entry(LogName, Sides<Arc<Entry>>),
    State(Arc<Step>, Sides<StateValue>),
    Agent(AgentName, Sides<Item>),
    Settings(Sides<Arc<Settings>>),
    Labels(Sides<Arc<Labels>>),
}

/// The kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Added,
    Changed,
    Removed,
}

/// A path in the state: the last name, and the path above. Paths share their common beginnings, since names may be
/// long and differences many.
#[derive(Debug)]
pub(crate) struct Step {
    above: Option<Arc<Self>>,
    name: String,
}

/// A page of differences.
#[derive(Debug, Default)]
pub struct Differences {
    pub(crate) found: Vec<Difference>,
    pub(crate) more: bool,
    skip: usize,
    limit: usize,
}

impl Step {
    /// Returns the names from the root.
    pub(crate) fn names(&self) -> Vec<&str> {
        let above = std::iter::successors(Some(self), |step| step.above.as_deref());
        let mut names: Vec<_> = above.map(|step| step.name.as_str()).collect();
        names.reverse();
        names
    }
}

impl<T> Sides<T> {
    fn how(&self) -> How {
        match (&self.before, &self.after) {
            (None, _) => How::Added,
            (Some(_), None) => How::Removed,
            (Some(_), Some(_)) => How::Changed,
        }
    }
}

impl Difference {
    /// Returns the kind of difference.
    pub(crate) fn how(&self) -> How {
        match self {
            Self::Entry(_, sides) => sides.how(),
            Self::State(_, sides) => sides.how(),
            Self::Agent(_, sides) => sides.how(),
            Self::Settings(sides) => sides.how(),
            Self::Labels(sides) => sides.how(),
        }
    }
}

impl Differences {
    /// Finds at most `limit` differences that this caller may see, after the first `skip`.
    pub(crate) fn between(
        caller: &Caller,
        before: &Board,
        after: &Board,
        skip: usize,
        limit: usize,
    ) -> Self {
        let mut page = Self { skip, limit, ..Self::default() };
        page.more = page.boards(caller, before, after).is_break();
        page
    }

    fn push(&mut self, make: impl FnOnce() -> Difference) -> ControlFlow<()> {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.found.len() < self.limit {
            self.found.push(make());
        } else {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn boards(&mut self, caller: &Caller, before: &Board, after: &Board) -> ControlFlow<()> {
        for (name, (a, b)) in LogName::BOARD.iter().zip(before.logs().iter().zip(after.logs())) {
            self.logs(name, Some(a), Some(b))?;
        }
        let (before_owned, after_owned) = (before.owned_logs(), after.owned_logs());
        let owned: BTreeSet<LogName> =
            before_owned.chain(after_owned).map(|(name, _)| name).collect();
        for name in owned.iter().filter(|name| caller.sees(name)) {
            self.logs(name, before.log(name), after.log(name))?;
        }
        let root = |board: &Board| board.state().value(&StatePath::root());
        if let (Some(a), Some(b)) = (root(before), root(after)) {
            self.objects(None, &a, &b)?;
        }
        for (name, a, b) in both(before.agents().iter(), after.agents().iter()) {
            let (a, b) = (a.map(|a| a.profile.item()), b.map(|b| b.profile.item()));
            if a != b {
                let sides = || Sides { before: a.cloned(), after: b.cloned() };
                self.push(|| Difference::Agent(name.clone(), sides()))?;
            }
        }
        let set = |board: &Board| board.life().map(set).filter(|set| **set != Settings::default());
        self.lives((set(before), set(after)), Difference::Settings)?;
        let labelled = |board: &Board| board.life().map(labels).filter(|all| !all.is_empty());
        self.lives((labelled(before), labelled(after)), Difference::Labels)
    }

    fn logs(&mut self, name: &LogName, a: Option<&Log>, b: Option<&Log>) -> ControlFlow<()> {
        if a.map(Log::changed) == b.map(Log::changed) {
            return ControlFlow::Continue(());
        }
        let by_seq = |log: Option<&Log>| log.cloned().unwrap_or_default();
        // Runs that both boards share are skipped.
        let (a, b) = by_seq(a).apart(&by_seq(b));
        for (_, a, b) in both(entries(&a), entries(&b)) {
            if !same_entry(a, b) {
                let sides = || Sides { before: a.cloned(), after: b.cloned() };
                self.push(|| Difference::Entry(name.clone(), sides()))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Compares the members of two objects. The recursion is bounded: no document is deeper than 128 levels.
    fn objects(
        &mut self,
        above: Option<&Arc<Step>>,
        a: &StateValue,
        b: &StateValue,
    ) -> ControlFlow<()> {
        if a.changed() == b.changed() {
            return ControlFlow::Continue(());
        }
        let step = |name: &str| Arc::new(Step { above: above.cloned(), name: name.to_owned() });
        for (name, b) in b.members() {
            match a.member(name) {
                Some(a) if a.changed() == b.changed() => {}
                Some(a) if a.kind() == Kind::Object && b.kind() == Kind::Object => {
                    self.objects(Some(&step(name)), &a, &b)?;
                }
                Some(a) if text(&a) == text(&b) => {}
                a => self
                    .push(|| Difference::State(step(name), Sides { before: a, after: Some(b) }))?,
            }
        }
        for (name, a) in a.members() {
            if b.member(name).is_none() {
                self.push(|| {
                    Difference::State(step(name), Sides { before: Some(a), after: None })
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn lives<T: PartialEq>(
        &mut self,
        (before, after): (Option<T>, Option<T>),
        make: impl FnOnce(Sides<T>) -> Difference,
    ) -> ControlFlow<()> {
        if before == after {
            return ControlFlow::Continue(());
        }
        self.push(|| make(Sides { before, after }))
    }
}

fn set(life: &Life) -> Arc<Settings> {
    Arc::clone(&life.settings)
}

fn labels(life: &Life) -> Arc<Labels> {
    Arc::clone(&life.labels)
}

fn text(value: &StateValue) -> String {
    let mut text = String::new();
    value.write(&mut text);
    text
}

/// Returns true if no change is visible, even if the entry was changed and changed back.
fn same_entry(a: Option<&Arc<Entry>>, b: Option<&Arc<Entry>>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.revision == b.revision || (a.item == b.item && a.work == b.work && a.task == b.task)
}

fn entries(runs: &[Run]) -> impl Iterator<Item = (&Seq, &Arc<Entry>)> {
    runs.iter().flat_map(Run::entries).map(|entry| (&entry.seq, entry))
}

/// Merges two sequences in key order. Each key comes with the values of both.
fn both<'a, K: Ord + 'a, V: 'a>(
    a: impl Iterator<Item = (&'a K, &'a V)>,
    b: impl Iterator<Item = (&'a K, &'a V)>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    Both { a: a.peekable(), b: b.peekable() }
}

struct Both<A: Iterator, B: Iterator> {
    a: Peekable<A>,
    b: Peekable<B>,
}

impl<'a, K: Ord + 'a, V: 'a, A, B> Iterator for Both<A, B>
where
    A: Iterator<Item = (&'a K, &'a V)>,
    B: Iterator<Item = (&'a K, &'a V)>,
{
    type Item = (&'a K, Option<&'a V>, Option<&'a V>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = match (self.a.peek(), self.b.peek()) {
            (Some((a, _)), Some((b, _))) => (*a).min(*b),
            (Some((key, _)), None) | (None, Some((key, _))) => *key,
            (None, None) => return None,
        };
        let a = self.a.next_if(|(own, _)| *own == key).map(|(_, value)| value);
        let b = self.b.next_if(|(own, _)| *own == key).map(|(_, value)| value);
        Some((key, a, b))
    }
}
