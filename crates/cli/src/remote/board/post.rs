//! `blackboard post`

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use hyper::Method;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::body::Written;
use crate::remote::input;
use crate::remote::place::LogPlace;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::{JSON, Write};
use blackboard_address::{log_path, log_url};
use blackboard_board::LogName;

const NDJSON: &str = "application/x-ndjson";
const BYTES: &str = "application/octet-stream";

/// Append to a log: a request, a question, a step, a screenshot
///
/// ITEM is JSON if it begins with {, [ or ", and otherwise text, which becomes {"text": …}. An array appends all of
/// its items or none. Without ITEM the body is read from --file or standard input: JSON, one item per line with
/// --ndjson, or an image for screenshots.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard post demo/requests '{\"request\":\"Make a chart\",\"device\":\"linux\"}'\n\
\x20 blackboard post demo/trajectories --ndjson --file steps.ndjson --agent LinuxAgent\n\
\x20 blackboard post demo/screenshots --file screen.png")]
pub struct Post {
    /// Log to append to, as SESSION/requests
    #[arg(value_name = "SESSION/LOG")]
    place: LogPlace,

    /// Item, as JSON or as text
    #[arg(value_name = "ITEM", allow_hyphen_values = true, conflicts_with_all = ["file", "ndjson"])]
    item: Option<String>,

    /// File to read the items or the image from
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Read one item per line
    #[arg(long)]
    ndjson: bool,

    /// For a request: the requests that must be done before it
    #[arg(long, value_name = "SEQ,…", value_delimiter = ',')]
    after: Vec<u64>,

    /// For a request: the number of claims that may fail before it does
    #[arg(long, value_name = "N")]
    attempts: Option<u64>,

    /// For a request: -100 to 100; a higher one is claimed first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,

    /// For a request: it cannot be claimed before this time, or for this duration
    #[arg(long, value_name = "TIME")]
    not_before: Option<String>,

    /// For a request: it fails unless it has ended by this time, or within this duration
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    /// For a request: another agent must accept the result
    #[arg(long)]
    review: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Post {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let LogPlace { session, log } = self.place;
        let after: Vec<String> = self.after.iter().map(u64::to_string).collect();
        let query = Query::of(log_url(&session, &log))
            .with("after", (!after.is_empty()).then(|| after.join(",")))
            .with("attempts", self.attempts)
            .with("priority", self.priority)
            .with("not_before", self.not_before)
            .with("deadline", self.deadline)
            .with("review", self.review.then_some(true));
        let place = format!("{session}/{}", log_path(&log));
        let (item, file, ndjson) = (self.item, self.file, self.ndjson);
        self.access.run(async |server, screen| {
            let body = match item {
                Some(item) if log == LogName::Screenshots && Path::new(&item).is_file() => {
                    return Err(Refusal::IsFile { file: item });
                }
                Some(item) => Bytes::from(input::json_or_text(item)),
                None => input::bytes(file.as_deref())?,
            };
            let media_type = if ndjson { NDJSON } else { media_type(&log, &body) };
            let write = Write {
                method: Method::POST,
                address: query.address(),
                media_type: media_type.into(),
                body,
            };
            let received = server.write(write, &self.repeat.key()).await?;
            screen.show(&received, |written: Written| written.sentence(&place))
        })
    }
}

/// Returns the type of a body: where the log takes images, what is no JSON is one, of a type that the server finds.
fn media_type(log: &LogName, body: &[u8]) -> &'static str {
    let is_json = matches!(body.trim_ascii_start(), [b'{' | b'[' | b'"', ..]);
    if *log == LogName::Screenshots && !is_json { BYTES } else { JSON }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_an_image_in_its_log() {
        let of = |body: &[u8]| media_type(&LogName::Screenshots, body);
        assert_eq!(of(b"\x89PNG\r\n"), BYTES);
        assert_eq!(of(b""), BYTES);
        assert_eq!(of(b" {}"), JSON);
        assert_eq!(of(b"[]"), JSON);
        assert_eq!(of(b"\"text\""), JSON);
        assert_eq!(media_type(&LogName::Requests, b"BM"), JSON);
    }
}
