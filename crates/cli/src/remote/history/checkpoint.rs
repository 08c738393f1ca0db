//! `blackboard checkpoint`

use clap::Args;
use hyper::Method;
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Written;
use crate::remote::place::quoted;
use crate::remote::repeat::Repeat;
use crate::remote::screen::Table;
use crate::remote::server::Write;
use blackboard_address::{checkpoint_url, session_url};
use blackboard_board::{CheckpointName, SessionName};

/// Name the present revision of a session, or list its checkpoints
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard checkpoint demo\n\
\x20 blackboard checkpoint demo v1")]
pub struct Checkpoint {
    /// Session of the checkpoint
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Name of the checkpoint; without it, all are listed
    #[arg(value_name = "NAME")]
    name: Option<CheckpointName>,

    /// Delete the checkpoint; the revision stays readable
    #[arg(long, requires = "name")]
    delete: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Page {
    checkpoints: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    revision: u64,
    at: String,
    agent: Option<String>,
}

impl Checkpoint {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let all = format!("{}/checkpoints", session_url(&self.session));
        let write = self.name.map(|name| {
            if self.delete {
                Write::delete(checkpoint_url(&self.session, &name))
            } else {
                let body = format!("{{\"name\":{}}}", quoted(name.as_str()));
                Write::json(Method::POST, all.clone(), body)
            }
        });
        self.access.run(async |server, screen| match write {
            Some(write) => {
                let received = server.write(write, &self.repeat.key()).await?;
                screen.show(&received, |written: Written| written.sentence(""))
            }
            None => screen.show(&server.get(&all).await?, table),
        })
    }
}

fn table(page: Page) -> String {
    let mut table = Table::of(&["NAME", "REVISION", "AT", "AGENT"]);
    for Listed { name, revision, at, agent } in page.checkpoints {
        table.row([name, revision.to_string(), at, agent.unwrap_or_default()]);
    }
    table.text()
}
