//! Colours of a terminal, around texts that are lines already.

use std::env;
use std::io::{self, IsTerminal as _};

use crate::system::paints;

/// With or without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Coloured,
}

/// The colours of agents: all but those of kinds.
const AGENTS: [u8; 6] = [36, 35, 34, 96, 95, 94];

const FAINT: u8 = 2;
const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;

impl Paint {
    /// Returns colours for a terminal, unless <https://no-color.org> is obeyed.
    pub(super) fn of_terminal() -> Self {
        let is_refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if io::stdout().is_terminal() && !is_refused && paints() {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.with(FAINT, text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.with(YELLOW, text)
    }

    /// Paints an agent's name, the same in the same colour.
    pub(super) fn agent(self, name: &str) -> String {
        let sum = name
            .trim_end()
            .bytes()
            .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let colour = AGENTS.get(sum % AGENTS.len()).copied().unwrap_or(FAINT);
        self.with(colour, name)
    }

    /// Paints a kind of commit: what is made green, what fails or goes red, and what changes yellow.
    pub(super) fn kind(self, kind: &str) -> String {
        let colour = match kind.trim_end() {
            "appended" | "finished" | "created" | "checkpoint_put" | "adopted" => GREEN,
            "failed" | "removed" | "cleared" | "deleted" | "budget_exhausted" => RED,
            kind if kind.ends_with("_expired") || kind.ends_with("_removed") => RED,
            _ => YELLOW,
        };
        self.with(colour, kind)
    }

    fn with(self, code: u8, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
