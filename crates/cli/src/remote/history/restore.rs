//! `blackboard restore`

use clap::Args;
use hyper::Method;

use super::point;
use crate::Failure;
use crate::remote::access::Access;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::session_url;
use blackboard_board::SessionName;

/// Reset a board to what it was at a revision or checkpoint
///
/// The reset is a commit of its own, so restoring the revision before it undoes it. Claims end.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard restore demo v1")]
pub struct Restore {
    /// Session to restore
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Revision or checkpoint
    #[arg(value_name = "REVISION|CHECKPOINT")]
    at: String,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Restore {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = format!("{}/restore", session_url(&self.session));
        let body = format!("{{\"at\":{}}}", point(&self.at));
        self.access.write(self.repeat, async |_| Ok(Write::json(Method::POST, address, body)))
    }
}
