//! `blackboard restore`

use clap::Args;
use hyper::Method;

use super::point;
use crate::address::session_url;
use crate::board::SessionName;
use crate::cli::Failure;
use crate::cli::remote::access::Access;
use crate::cli::remote::body::Written;
use crate::cli::remote::repeat::Repeat;
use crate::cli::remote::server::Write;

/// Reset a board to what it was at a revision or checkpoint
///
/// The reset is a commit of its own: restoring the revision before it undoes it. Claims end.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard restore demo v1")]
pub(in crate::cli) struct Restore {
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
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let address = format!("{}/restore", session_url(&self.session));
        let body = format!("{{\"at\":{}}}", point(&self.at));
        self.access.run(async |server, screen| {
            let write = Write::json(Method::POST, address, body);
            let received = server.write(write, &self.repeat.key()).await?;
            screen.show(&received, |written: Written| written.sentence(""))
        })
    }
}
