//! The output of commands: a table on a terminal, and otherwise the server's JSON as it came.

mod table;

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use serde::Deserialize;

pub(super) use self::table::Table;
use super::refusal::Refusal;
use super::server::Received;
use crate::put;
use blackboard_printable::{line, plain};

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table on a terminal, JSON otherwise
    Auto,
    /// Columns for people
    Table,
    /// The server's response
    Json,
}

/// Where output goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub(super) is_table: bool,
    is_terminal: bool,
}

impl Screen {
    pub(super) fn new(format: Format) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_table = match format {
            Format::Auto => is_terminal,
            Format::Table => true,
            Format::Json => false,
        };
        Self { is_table, is_terminal }
    }

    /// Prints an answer: as it came, or as the text that its members give.
    pub(super) fn show<'a, T: Deserialize<'a>>(
        self,
        received: &'a Received,
        text: impl FnOnce(T) -> String,
    ) -> Result<(), Refusal> {
        if self.is_table { self.put(&text(received.read()?)) } else { self.json(&received.text) }
    }

    /// Prints JSON. On a terminal, characters that it might obey or hide are escaped, which JSON reads the same.
    pub(super) fn json(self, text: &str) -> Result<(), Refusal> {
        let text = text.trim_end_matches('\n');
        let shown = if self.is_terminal { plain(text) } else { text.into() };
        self.put(&format!("{shown}\n"))
    }

    /// Prints a text of the board: as it is, but on a terminal without what it might obey or hide.
    pub(super) fn text(self, text: &str) -> Result<(), Refusal> {
        if !self.is_terminal {
            return self.put(text);
        }
        let lines = text.lines().map(|text| format!("{}\n", line(text)));
        self.put(&lines.collect::<String>())
    }

    /// Prints lines that are made for a terminal already.
    pub(super) fn put(self, text: &str) -> Result<(), Refusal> {
        put(text).map_err(Refusal::Output)
    }
}
