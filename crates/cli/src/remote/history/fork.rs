//! `blackboard fork`

use clap::Args;
use hyper::Method;

use super::point;
use crate::Failure;
use crate::remote::access::Access;
use crate::remote::place::quoted;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::session_url;
use blackboard_board::SessionName;

/// Create a session from the present or a past board of another one
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard fork demo second-try --at v1")]
pub struct Fork {
    /// Session to fork
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Name of the new session; an existing one is rejected with exit code 6
    #[arg(value_name = "NEW")]
    to: SessionName,

    /// Revision or checkpoint to start from [default: the present one]
    #[arg(long, value_name = "REVISION|CHECKPOINT")]
    at: Option<String>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Fork {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = format!("{}/fork", session_url(&self.session));
        let at = self.at.map(|at| format!(",\"at\":{}", point(&at))).unwrap_or_default();
        let body = format!("{{\"to\":{}{at}}}", quoted(self.to.as_str()));
        self.access.write(self.repeat, async |_| Ok(Write::json(Method::POST, address, body)))
    }
}
