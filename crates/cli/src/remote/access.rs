//! The flags that all commands on a server take, and the frame of a command.

use clap::Args;
use tokio::runtime::Builder;

use super::body::Written;
use super::refusal::Refusal;
use super::repeat::Repeat;
use super::screen::{Format, Screen};
use super::server::{LIMITS, Server, Write};
use crate::connection::{Connection, EXPOSED};
use crate::{Failure, note};

/// The server and the form of output.
#[derive(Args, Clone, Debug)]
pub(super) struct Access {
    /// Format of the output
    #[arg(
        long,
        env = "BLACKBOARD_FORMAT",
        value_name = "FORMAT",
        value_enum,
        default_value = "auto",
        hide_env_values = true,
        help_heading = "Output"
    )]
    format: Format,

    #[command(flatten)]
    pub(super) connection: Connection,
}

impl Access {
    /// Runs a command to its end.
    pub(super) fn run(
        self,
        work: impl AsyncFnOnce(&Server, Screen) -> Result<(), Refusal>,
    ) -> Result<(), Failure> {
        let screen = Screen::new(self.format);
        run(&self.connection, async |server| work(server, screen).await)
    }

    /// Runs a command that is one write, and prints the revision that it made.
    pub(super) fn write(
        self,
        repeat: Repeat,
        write: impl AsyncFnOnce(&Server) -> Result<Write, Refusal>,
    ) -> Result<(), Failure> {
        self.run(async |server, screen| {
            let write = write(server).await?;
            let received = server.write(write, &repeat.key()).await?;
            screen.show(&received, |written: Written| written.sentence(""))
        })
    }

    /// Chooses the form of output, unless a flag or a variable did.
    pub(super) fn or_json(mut self, is_json: bool) -> Self {
        if is_json {
            self.format = Format::Json;
        }
        self
    }
}

/// Runs a command with a form of output of its own.
pub(super) fn run(
    connection: &Connection,
    work: impl AsyncFnOnce(&Server) -> Result<(), Refusal>,
) -> Result<(), Failure> {
    let connected = connection.client(LIMITS).map_err(Failure::usage)?;
    if connected.is_exposed {
        note(format_args!("warning: {EXPOSED}"));
    }
    let server = Server::new(connected);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let done = runtime.block_on(Box::pin(work(&server)));
    runtime.shutdown_background();
    done.map_err(Failure::from)
}
