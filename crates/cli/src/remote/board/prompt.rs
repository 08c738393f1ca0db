//! `blackboard prompt`

use std::io::{self, IsTerminal as _};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::Failure;
use crate::connection::Connection;
use crate::remote::access;
use crate::remote::query::Query;
use crate::remote::screen::{Format, Screen};
use crate::remote::server::JSON;
use blackboard_address::session_url;
use blackboard_board::{PromptFormat, SessionName};

/// Print a session as a prompt for a language model
///
/// The format is markdown on a terminal, and otherwise parts, the content of a message in JSON. On a terminal images are
/// URLs unless --images says otherwise.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard prompt demo --format markdown\n\
\x20 blackboard prompt demo --format anthropic --max-tokens 8000 --screenshots 1")]
pub struct Prompt {
    /// Session to print
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Format of the prompt: for a provider's API, or text
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats()))]
    format: Option<String>,

    /// Parts to print: questions, requests, trajectories, screenshots, state, memory:AGENT
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    include: Vec<String>,

    /// Members of each step in the trajectories to print
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    keys: Vec<String>,

    /// Print the last N entries of each text log
    #[arg(long, value_name = "N")]
    latest: Option<u64>,

    /// Print the last N screenshots as images
    #[arg(long, value_name = "N")]
    screenshots: Option<u64>,

    /// Images in the prompt: inline, url or none
    #[arg(long, value_name = "FORMAT")]
    images: Option<String>,

    /// Maximum number of tokens, as estimated; beyond it, the oldest entries are left out
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Tokenizer family for --max-tokens: openai, anthropic, gemini or other
    #[arg(long, value_name = "FAMILY")]
    tokenizer: Option<String>,

    /// Profile in the session's settings that supplies the options not given here
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Print the board as it was at this revision or checkpoint
    #[arg(long, value_name = "REVISION|CHECKPOINT")]
    at: Option<String>,

    #[command(flatten)]
    connection: Connection,
}

/// The format that is a text.
const MARKDOWN: &str = "markdown";

/// Returns the names of the formats, each with its explanation.
fn formats() -> [PossibleValue; PromptFormat::NAMED.len()] {
    PromptFormat::NAMED.map(|(name, format)| PossibleValue::new(name).help(format.about()))
}

impl Prompt {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let is_terminal = io::stdout().is_terminal();
        let default = if is_terminal { MARKDOWN } else { "parts" };
        let format = self.format.unwrap_or_else(|| default.to_owned());
        let is_text = format == MARKDOWN;
        let images = self.images.or_else(|| is_terminal.then(|| "url".to_owned()));
        let query = Query::of(format!("{}/prompt", session_url(&self.session)))
            .with("format", Some(format))
            .list("include", &self.include)
            .list("keys", &self.keys)
            .with("latest", self.latest)
            .with("screenshots", self.screenshots)
            .with("images", images)
            .with("max_tokens", self.max_tokens)
            .with("tokenizer", self.tokenizer)
            .with("profile", self.profile)
            .with("at", self.at);
        access::run(&self.connection, async |server| {
            let screen = Screen::new(Format::Auto);
            let address = query.address();
            if is_text {
                screen.text(&server.get_as(&address, "text/markdown").await?.text)
            } else {
                screen.json(&server.get_as(&address, JSON).await?.text)
            }
        })
    }
}
