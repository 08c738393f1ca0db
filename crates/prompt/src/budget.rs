//! The token budget of a prompt: chooses the parts to leave out.
//!
//! The caller lists the parts that may be left out, in order. The fewest that suffice are left out, always the first,
//! so a larger budget never shows less. Weighing starts at the last part and stops at the budget, so parts that are
//! left out are not weighed.

use std::fmt::Write as _;

use super::Cost;

/// The kinds of parts that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image, replaced by a line.
    Image,
    /// A step of the trajectories.
    Trajectory,
    /// A record of a memory.
    MemoryStep,
    /// A request.
    Request,
    /// An answered question.
    Question,
    /// A screenshot. Its image, if it had one, was left out before.
    Screenshot,
}

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The kind of the part.
    pub kind: Kind,
    /// The cost of the part.
    pub saves: Cost,
    /// The cost of its replacement.
    pub instead: Cost,
    /// True if the part was counted before: a screenshot whose image was left out.
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
    /// Adds parts of a kind.
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

    /// A screenshot counts as its image until it is left out itself.
    fn add(&mut self, step: &Step) {
        *self.of(step.kind) += 1;
        self.images -= u64::from(step.again).min(self.images);
    }

    fn take_back(&mut self, step: &Step) {
        let count = self.of(step.kind);
        *count = count.saturating_sub(1);
        self.images += u64::from(step.again);
    }

    /// The number of all parts.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self { images, trajectories, memory_steps, requests, questions, screenshots } = *self;
        images + trajectories + memory_steps + requests + questions + screenshots
    }

    /// The line of the prompt that tells the model of the cut.
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
            debug_assert!(written.is_ok(), "writing to a String does not fail");
            comma = ",";
        }
        line.push(']');
        line
    }
}

/// The result of fitting a prompt to a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The number of steps that are kept, counted from the last.
    pub kept: usize,
    /// The parts that are left out.
    pub left_out: LeftOut,
    /// The cost of the rest, including the line about the cut.
    pub cost: Cost,
}

/// The required parts exceed the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the required parts take {needed} tokens; the budget is {max_tokens}")]
pub struct TooSmall {
    /// The cost of the required parts, in tokens.
    pub needed: u64,
    /// The budget, in tokens.
    pub max_tokens: u64,
}

/// A prompt that optional parts are added back to, the last first, while there is room.
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
    /// Creates a prompt without its optional parts: `rest` is the cost of the required ones, `line` that of the line
    /// about the cut.
    #[must_use]
    pub fn new(rest: Cost, all: LeftOut, line: Cost, max_tokens: u64) -> Self {
        // If even that exceeds the budget, a shorter line may lower the reported need.
        let reach = max_tokens.max((rest + line).tokens());
        Self { max_tokens, reach, cost: rest, left_out: all, kept: Vec::new() }
    }

    /// Adds the next step, from the last on, and returns true if it fits. After the first that does not fit, no other
    /// may be added.
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

    /// Removes steps until the prompt and its line are within the budget.
    ///
    /// # Errors
    ///
    /// [`TooSmall`] if the prompt without steps exceeds the budget.
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
