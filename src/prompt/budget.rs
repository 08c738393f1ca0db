//! What is left out of a prompt so that it stays within a budget.
//!
//! The caller says what may go, in its order. As few as suffice go, always the first ones: so a larger budget
//! never shows less.

use std::fmt::Write as _;

use super::Cost;

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image, in whose place a line stands.
    Image,
    /// A step of the trajectories.
    Trajectory,
    /// A step of a memory.
    MemoryStep,
    /// A request.
    Request,
    /// A question that has its answer.
    Question,
    /// A screenshot, whose image was left out before if it had one.
    Screenshot,
}

/// One thing that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub kind: Kind,
    /// What it costs.
    pub saves: Cost,
    /// What comes in its place.
    pub instead: Cost,
    /// Whether it takes the place of something that was counted before: a screenshot whose image went already.
    pub again: bool,
}

/// How much was left out, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    images: u64,
    trajectories: u64,
    memory_steps: u64,
    requests: u64,
    questions: u64,
    screenshots: u64,
}

impl LeftOut {
    fn add(&mut self, step: &Step) {
        match step.kind {
            Kind::Image => self.images += 1,
            Kind::Trajectory => self.trajectories += 1,
            Kind::MemoryStep => self.memory_steps += 1,
            Kind::Request => self.requests += 1,
            Kind::Question => self.questions += 1,
            Kind::Screenshot => {
                self.screenshots += 1;
                self.images -= u64::from(step.again).min(self.images);
            }
        }
    }

    /// How many things.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self { images, trajectories, memory_steps, requests, questions, screenshots } = *self;
        images + trajectories + memory_steps + requests + questions + screenshots
    }

    /// The line that says so.
    #[must_use]
    pub fn line(&self, max_tokens: u64) -> String {
        let mut line = format!("[Left out to stay within {max_tokens} tokens:");
        let named = [
            (self.images, "image"),
            (self.trajectories, "trajectory item"),
            (self.memory_steps, "memory item"),
            (self.requests, "request"),
            (self.questions, "answered question"),
            (self.screenshots, "screenshot"),
        ];
        let mut comma = "";
        for (count, name) in named.into_iter().filter(|(count, _)| *count > 0) {
            let plural = if count == 1 { "" } else { "s" };
            let written = write!(line, "{comma} {count} {name}{plural}");
            debug_assert!(written.is_ok(), "a String takes all that is written");
            comma = ",";
        }
        line.push(']');
        line
    }
}

/// What a budget takes from a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// How many of the steps: the first ones.
    pub steps: usize,
    /// What that is.
    pub left_out: LeftOut,
    /// What is left, the line that tells of it included.
    pub cost: Cost,
}

/// Why a budget cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what must stay takes {needed} tokens, and the budget is {max_tokens}")]
pub struct TooSmall {
    /// The least that it takes.
    pub needed: u64,
    /// What there would be.
    pub max_tokens: u64,
}

/// The fewest of the steps, from the first one on, with which a prompt of this cost stays within the budget.
///
/// # Errors
///
/// [`TooSmall`] where all of them are not enough.
pub fn fit(
    cost: Cost,
    steps: &[Step],
    max_tokens: u64,
    line: impl Fn(&LeftOut) -> Cost,
) -> Result<Cut, TooSmall> {
    let (mut cut, mut left) = (Cut { cost, ..Cut::default() }, cost);
    let all = steps;
    let mut steps = all.iter();
    while cut.cost.tokens() > max_tokens {
        let Some(step) = steps.next() else {
            return Err(TooSmall { needed: least(cost, all, line), max_tokens });
        };
        cut.steps += 1;
        cut.left_out.add(step);
        left = left - step.saves + step.instead;
        // What is far above needs no line to be known so.
        cut.cost = if left.tokens() > max_tokens { left } else { left + line(&cut.left_out) };
    }
    Ok(cut)
}

/// The least that a prompt takes, however much is left out of it.
fn least(cost: Cost, steps: &[Step], line: impl Fn(&LeftOut) -> Cost) -> u64 {
    let (mut left, mut left_out, mut least) = (cost, LeftOut::default(), cost.tokens());
    for step in steps {
        left_out.add(step);
        left = left - step.saves + step.instead;
        if left.tokens() < least {
            least = least.min((left + line(&left_out)).tokens());
        }
    }
    least
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
