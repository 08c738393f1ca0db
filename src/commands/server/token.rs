//! `blackboard token`

use std::io::{self, BufRead as _, Read as _, Write};

use clap::{ArgAction, Args, Subcommand};

use super::directory::{Answering, Directory, Unanswered};
use crate::auth::{Scope, SessionPattern};
use crate::board::{AgentName, TokenName, Ttl};
use crate::cli::{Failure, note, put};
use crate::control::{AskError, DisabledTokens, Line, MadeToken, Request, TokenLine};
use crate::printable;
use crate::printable::plain;

/// The maximum length of an answer to a question.
const ANSWER_BYTES_MAX: u64 = 64;

/// Create, list and revoke the tokens of a data directory
///
/// Changes take effect at once, in a running server too; with --store within a second. Once a data directory has had a token, every request to its server needs one, so the first token should have the
/// scope admin. Deleting all tokens with `token disable` opens the server again.
#[derive(Args, Debug)]
pub(in crate::commands) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
    Disable(Disable),
}

/// Create a token and print it; it is not stored and cannot be shown again
#[derive(Args, Debug)]
struct Create {
    /// Name for listing and revoking the token
    #[arg(long, env = "BLACKBOARD_TOKEN_NAME", value_name = "NAME")]
    name: TokenName,

    /// Author of all writes with this token; without memory:read it cannot read the memories of other agents
    #[arg(long, env = "BLACKBOARD_TOKEN_AGENT", value_name = "AGENT")]
    agent: Option<AgentName>,

    /// Sessions that the token can reach, * for any characters; may be given several times. Others answer 404
    #[arg(long, env = "BLACKBOARD_TOKEN_SESSIONS", value_name = "PATTERN", default_value = "*")]
    sessions: Vec<SessionPattern>,

    /// Rights of the token, separated by commas: read, write, memory:read, or admin for everything
    #[arg(
        long,
        env = "BLACKBOARD_TOKEN_SCOPES",
        value_name = "SCOPE,…",
        value_delimiter = ',',
        default_value = "read,write"
    )]
    scopes: Vec<Scope>,

    /// Create the first token even without the scope admin; nobody then has all rights
    #[arg(long, env = "BLACKBOARD_TOKEN_ANYWAY")]
    anyway: bool,

    /// Lifetime, such as 12h or 30d; without it the token is valid until revoked
    #[arg(long, env = "BLACKBOARD_TOKEN_EXPIRES", value_name = "DURATION")]
    expires: Option<Ttl>,

    /// Create the data directory if it holds no store
    #[arg(long, env = "BLACKBOARD_TOKEN_CREATE")]
    create: bool,

    #[command(flatten)]
    directory: Directory,
}

/// List all tokens with their rights, oldest first, without their secrets
#[derive(Args, Debug)]
struct List {
    /// Print one JSON object per line
    #[arg(long, env = "BLACKBOARD_TOKEN_JSON")]
    json: bool,

    #[command(flatten)]
    directory: Directory,
}

/// Revoke a token: its requests are rejected, and its open streams end
#[derive(Args, Debug)]
struct Revoke {
    /// Name or id of the token
    #[arg(value_name = "NAME|ID")]
    token: String,

    #[command(flatten)]
    directory: Directory,
}

/// Delete all tokens, so that requests need none; asks twice
///
/// A running server must listen on a loopback address, without --require-token and --admin-token-file.
#[derive(Args, Debug)]
struct Disable {
    /// Answer yes to a question; give it twice to answer both
    #[arg(long, action = ArgAction::Count)]
    yes: u8,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum Unfinished {
    #[error("nothing was deleted; answer both questions with yes, or give --yes twice")]
    Declined,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("cannot print")]
    Output(#[from] io::Error),
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[from] serde_json::Error),
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        let done = match self.command {
            Command::Create(create) => create.run(),
            Command::List(list) => list.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::Disable(disable) => disable.run(),
        };
        done.map_err(Failure::failed)
    }
}

impl Create {
    /// Only the token goes to standard output, so that a script can capture it.
    fn run(self) -> Result<(), Unfinished> {
        let Self { name, agent, sessions, scopes, expires, anyway, create, directory } = self;
        directory.present_or(create)?;
        let request = Request::CreateToken { name, scopes, sessions, agent, expires, anyway };
        let (lines, done) = asked(&directory.answering()?, &request)?;
        let made: MadeToken = serde_json::from_str(&done)?;
        writeln!(io::stdout(), "{}", made.token)?;
        for line in lines {
            note(format_args!("created {}; it will not be shown again", told(&line)));
        }
        if made.first {
            note(
                "this is the first token: every request now needs one; 'blackboard token disable' deletes all tokens \
                 again",
            );
        }
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<(), Unfinished> {
        self.directory.present_or(false)?;
        let (lines, _) = asked(&self.directory.telling()?, &Request::Tokens {})?;
        let mut out = String::new();
        for line in &lines {
            out += &if self.json {
                plain(&serde_json::to_string(line)?).into_owned()
            } else {
                format!("{}  {}", line.id, printable::line(&told(line)))
            };
            out.push('\n');
        }
        if lines.is_empty() && !self.json {
            note("no tokens: anyone who reaches the server may do everything");
        }
        Ok(put(&out)?)
    }
}

impl Revoke {
    fn run(self) -> Result<(), Unfinished> {
        self.directory.present_or(false)?;
        let request = Request::RevokeToken { token: self.token };
        let (lines, _) = asked(&self.directory.answering()?, &request)?;
        for line in lines {
            note(format_args!("revoked {}", line.name));
        }
        Ok(())
    }
}

impl Disable {
    fn run(self) -> Result<(), Unfinished> {
        self.directory.present_or(false)?;
        let answering = self.directory.answering()?;
        let (tokens, _) = asked(&answering, &Request::Tokens {})?;
        let live = tokens.iter().filter(|token| token.state == "live").count();
        let questions = [
            format!(
                "delete all tokens ({} in total, {live} of them live)? [yes/no] ",
                tokens.len()
            ),
            "allow anyone who reaches the server to read and change every session? [yes/no] "
                .to_owned(),
        ];
        for (question, number) in questions.iter().zip(1..) {
            if self.yes < number && !confirmed(question)? {
                return Err(Unfinished::Declined);
            }
        }
        let (_, done) = asked(&answering, &Request::DisableTokens {})?;
        let DisabledTokens { deleted } = serde_json::from_str(&done)?;
        let tokens = if deleted == 1 { "token" } else { "tokens" };
        note(format_args!("deleted {deleted} {tokens}; none is left, so requests need no token"));
        Ok(())
    }
}

/// Asks a question on standard error, and returns true if the next line of standard input is `yes`.
fn confirmed(question: &str) -> io::Result<bool> {
    let (mut err, mut line) = (io::stderr(), String::new());
    write!(err, "{question}")?;
    err.flush()?;
    io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut line)?;
    Ok(line.trim() == "yes")
}

/// Returns the lines of an answer, and the contents of its last one.
fn asked(answering: &Answering, request: &Request) -> Result<(Vec<TokenLine>, String), Unfinished> {
    let (mut asking, mut lines) = (answering.ask(request)?, Vec::new());
    loop {
        match asking.line()? {
            Line::Part(line) => lines.push(serde_json::from_slice(&line)?),
            Line::Done(told) => return Ok((lines, told)),
        }
    }
}

/// Describes a token in one line for people.
fn told(line: &TokenLine) -> String {
    let scopes: Vec<_> = line.scopes.iter().map(|scope| scope.as_str()).collect();
    let sessions: Vec<_> = line.sessions.iter().map(SessionPattern::as_str).collect();
    let agent = line.agent.as_ref().map(|agent| format!(" as {agent}"));
    let ends = match (line.state.as_str(), &line.ends_at) {
        ("live", Some(at)) => format!(", until {at}"),
        ("live", None) => String::new(),
        (state, Some(at)) => format!(", {state} {at}"),
        (state, None) => format!(", {state}"),
    };
    format!(
        "{}: {} on {}{}{ends}",
        line.name,
        scopes.join(","),
        sessions.join(" "),
        agent.unwrap_or_default(),
    )
}
