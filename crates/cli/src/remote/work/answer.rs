//! `blackboard answer`

use clap::Args;
use hyper::Method;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::input;
use crate::remote::place::{EntryPlace, quoted};
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::entry_url;
use blackboard_board::LogName;

/// Answer a question, or skip it
///
/// The first answer wins; a later one is rejected with exit code 6. 'blackboard inbox' lists the open questions.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard answer demo/1 'Bars'\n\
\x20 blackboard answer demo/2 --skip")]
pub struct Answer {
    /// Question, as SESSION/questions/3 or SESSION/3
    #[arg(value_name = "SESSION/SEQ", value_parser = EntryPlace::question)]
    question: EntryPlace,

    /// Answer; - reads it from standard input
    #[arg(
        value_name = "ANSWER",
        allow_hyphen_values = true,
        required_unless_present = "skip",
        conflicts_with = "skip"
    )]
    answer: Option<String>,

    /// End the question without an answer
    #[arg(long)]
    skip: bool,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Answer {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let EntryPlace { session, seq } = self.question;
        let address = format!("{}/answer", entry_url(&session, &LogName::Questions, seq));
        self.access.write(self.repeat, async |_| {
            let body = match self.answer {
                Some(answer) => format!("{{\"answer\":{}}}", quoted(&input::argument(answer)?)),
                None => "{\"skip\":true}".to_owned(),
            };
            Ok(Write::json(Method::PUT, address, body))
        })
    }
}
