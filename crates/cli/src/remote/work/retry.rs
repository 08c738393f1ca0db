//! `blackboard retry` and `blackboard cancel`

use clap::Args;
use hyper::Method;

use super::claim::{end_of, object, value};
use crate::Failure;
use crate::remote::access::Access;
use crate::remote::place::{EntryPlace, quoted};
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;

/// Give a failed or cancelled request all its attempts again
///
/// The request keeps its seq and its past attempts. Its deadline ends, unless --deadline gives a new one. Exit code 6
/// means that the request is done; one that has not ended stays as it is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard retry demo/3 --deadline 2h")]
pub struct Retry {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// Time at which the request fails unless it has ended, as a duration from now or a time
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Cancel a request
///
/// A request that nobody has claimed ends at once. The holder of a claimed one is asked to stop, and the request ends
/// with the claim; if the holder finishes it nevertheless, it is done. A second 'cancel' ends it at once.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard cancel demo/3 'The customer called'")]
pub struct Cancel {
    /// Request, as SESSION/requests/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::request)]
    request: EntryPlace,

    /// Reason: JSON if it begins with {, [ or ", otherwise a text; - reads it from standard input
    #[arg(value_name = "REASON", allow_hyphen_values = true)]
    reason: Option<String>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Retry {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let deadline = self.deadline.map(|time| format!("\"deadline\":{}", quoted(&time)));
        let address = end_of(&self.request, "retry");
        self.access.write(self.repeat, async |_| {
            Ok(Write::json(Method::POST, address, object([deadline])))
        })
    }
}

impl Cancel {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = end_of(&self.request, "cancelled");
        self.access.write(self.repeat, async |_| {
            let body = object([value("reason", self.reason)?]);
            Ok(Write::json(Method::PUT, address, body))
        })
    }
}
