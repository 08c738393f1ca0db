//! `blackboard review`

use clap::{ArgGroup, Args};
use hyper::Method;

use super::claim::{end_of, object, value};
use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Entry;
use crate::remote::place::EntryPlace;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::{Server, Write};
use blackboard_address::entry_url;
use blackboard_board::LogName;

/// Accept or reject the result of a request that is in review
///
/// Needs another agent than the one that did the request. An accepted request is done; a rejected result is a failed
/// attempt. 'blackboard show SESSION/requests' lists what is in review.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("verdict").required(true).args(["accept", "refuse"]))]
#[command(after_help = "Examples:\n\
\x20 blackboard review demo/3 --accept --agent Ada\n\
\x20 blackboard review demo/3 --refuse 'The axis has no unit' --agent Ada")]
pub struct Review {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// Reason: JSON if it begins with {, [ or ", otherwise a text; - reads it from standard input
    #[arg(value_name = "REASON")]
    reason: Option<String>,

    /// Accept the result
    #[arg(long)]
    accept: bool,

    /// Reject the result
    #[arg(long)]
    refuse: bool,

    /// Fence of the attempt that is judged [default: that of the present result]
    #[arg(long, value_name = "N")]
    fence: Option<u64>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Review {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { request, reason, accept, fence, repeat, access, .. } = self;
        access.write(repeat, async |server| {
            let fence = match fence {
                Some(fence) => Some(fence),
                None => present(server, &request).await?,
            };
            let body = object([
                Some(format!("\"accept\":{accept}")),
                fence.map(|fence| format!("\"fence\":{fence}")),
                value("reason", reason)?,
            ]);
            Ok(Write::json(Method::PUT, end_of(&request, "verdict"), body))
        })
    }
}

/// Returns the fence of the result that is in review. One without a claim has none.
async fn present(server: &Server, request: &EntryPlace) -> Result<Option<u64>, Refusal> {
    let address = entry_url(&request.session, &LogName::Requests, request.seq);
    let read = server.get(&address).await?;
    let entry: Entry<'_> = read.read()?;
    match entry.task().in_review {
        Some(end) => Ok(end.fence),
        None => Err(Refusal::NotInReview { seq: entry.seq }),
    }
}
