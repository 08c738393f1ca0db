//! `blackboard delete`

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::session_url;
use blackboard_board::SessionName;

/// Delete a session with all its data
///
/// Asks first, which needs a terminal; a script gives --yes. A deleted session cannot be brought back, except from a
/// backup or an export.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard delete demo --yes")]
pub struct Delete {
    /// Session to delete
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Delete {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { session, yes, repeat, access } = self;
        if !yes {
            confirm(&session)?;
        }
        access.write(repeat, async |_| Ok(Write::delete(session_url(&session))))
    }
}

/// Asks the person at the terminal.
fn confirm(session: &SessionName) -> Result<(), Refusal> {
    let mut stderr = io::stderr();
    if !io::stdin().is_terminal() || !stderr.is_terminal() {
        return Err(Refusal::Unasked { session: session.clone() });
    }
    let question = format!("Delete session {session} with all its data? Type yes: ");
    let mut answer = String::new();
    stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush()).map_err(Refusal::Output)?;
    let unread = |source| Refusal::Input { name: "the answer".to_owned(), source };
    io::stdin().lock().read_line(&mut answer).map_err(unread)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Refusal::Declined) }
}
