//! The token budget of a prompt: which of its parts are left out.
//!
//! The caller lists the parts that may be cut, in order. As few as suffice are cut, always the first, so a larger
//! budget never shows less. Weighing starts at the last part and stops at the budget, so parts that are cut are not
//! weighed.

use std::fmt::Write as _;

use super::Cost;

/// The kinds of parts that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image, replaced by a line.
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

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub kind: Kind,
    /// The cost.
    pub saves: Cost,
    /// The cost of its replacement.
    pub instead: Cost,
    /// Whether it takes the place of something that was counted before: a screenshot whose image went already.
    pub again: bool,
}

/// The numbers of parts left out, by kind.
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
    /// So many of a kind besides.
    #[must_use]
    pub const fn and(mut self, kind: Kind, count: u64) -> Self {
        *self.of(kind) += count;
        self
    }

    const fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Image => &mut self.images,
            Kind::Trajectory => &mut self.trajectories,
            Kind::MemoryStep => &mut self.memory_steps,
            Kind::Request => &mut self.requests,
            Kind::Question => &mut self.questions,
            Kind::Screenshot => &mut self.screenshots,
        }
    }

    /// A screenshot whose image went before is an image that went as long as it stays itself.
    fn add(&mut self, step: &Step) {
        *self.of(step.kind) += 1;
        self.images -= u64::from(step.again).min(self.images);
    }

    fn take_back(&mut self, step: &Step) {
        let count = self.of(step.kind);
        *count = count.saturating_sub(1);
        self.images += u64::from(step.again);
    }

    /// The number of parts.
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

/// The cut that a budget makes in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The number of steps that are kept, from the last on.
    pub kept: usize,
    /// The parts that are left out.
    pub left_out: LeftOut,
    /// The cost of the rest, including the line about the cut.
    pub cost: Cost,
}

/// The budget cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the required parts take {needed} tokens, the budget is {max_tokens}")]
pub struct TooSmall {
    /// The least that it takes.
    pub needed: u64,
    /// The tokens needed.
    pub max_tokens: u64,
}

/// A prompt to which what may go from it is added, the last step first, as long as there is room.
#[derive(Clone, Debug)]
pub struct Fitting {
    max_tokens: u64,
    /// The limit up to which adding continues.
    reach: u64,
    cost: Cost,
    left_out: LeftOut,
    kept: Vec<Step>,
}

impl Fitting {
    /// A prompt of which all that may go is gone: what is left of it costs `rest`, and the line that tells of it
    /// `line`.
    #[must_use]
    pub fn new(rest: Cost, all: LeftOut, line: Cost, max_tokens: u64) -> Self {
        // Where even that is too much, what is needed may be less with a shorter line.
        let reach = max_tokens.max((rest + line).tokens());
        Self { max_tokens, reach, cost: rest, left_out: all, kept: Vec::new() }
    }

    /// Keeps the next step, from the last one on, if it fits. After the first that does not fit, nothing fits.
    pub fn keep(&mut self, step: Step) -> bool {
        let cost = self.cost - step.instead + step.saves;
        if cost.tokens() > self.reach {
            return false;
        }
        self.cost = cost;
        self.left_out.take_back(&step);
        self.kept.push(step);
        true
    }

    /// The most of what was kept with which the prompt stays within the budget.
    ///
    /// # Errors
    ///
    /// [`TooSmall`] where nothing of it is little enough.
    pub fn fit(mut self, line: impl Fn(&LeftOut) -> Cost) -> Result<Cut, TooSmall> {
        let mut needed = u64::MAX;
        loop {
            let is_whole = self.left_out.total() == 0;
            let cost = if is_whole { self.cost } else { self.cost + line(&self.left_out) };
            if cost.tokens() <= self.max_tokens {
                return Ok(Cut { kept: self.kept.len(), left_out: self.left_out, cost });
            }
            needed = needed.min(cost.tokens());
            let Some(step) = self.kept.pop() else {
                return Err(TooSmall { needed, max_tokens: self.max_tokens });
            };
            self.cost = self.cost - step.saves + step.instead;
            self.left_out.add(&step);
        }
    }
}

#[cfg(test)]
mod tests;
