//! Hooks of agent hosts: the JSON that a host gives, and what it expects.
//!
//! Whatever fails here, the host goes on as if there were no hook: a note, and exit code 0.

use std::io::{self, Read as _, Write as _};
use std::process;
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::PIECE;
use super::notice::{Notice, Reader};
use super::record::Record;
use super::waiting::Waiting;
use super::watch::{Wanted, Watch};
use crate::connection::Connection;
use crate::remote::refusal::Refusal;
use crate::remote::server::{LIMITS, Received, Server};
use crate::system::parent_id;
use crate::{note, put};
use blackboard_board::SessionName;

/// The maximum size of a hook's input, in bytes: the result of a tool may be in it.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The maximum length of the name that a host gives its session, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The time that a hook has that does not wait.
const HOOK_MAX: Duration = Duration::from_secs(5);

/// The first pause before a server is asked again, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The exit code by which a hook of Claude Code says that the model must go on.
const GO_ON: i32 = 2;

/// A host of agents that runs hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Gemini CLI
    GeminiCli,
}

/// A moment at which a host runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The model can be given context.
    Context,
    /// The model is about to stop.
    Stop,
}

impl Host {
    const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
        }
    }

    fn moment(self, event: &str) -> Option<Moment> {
        match (self, event) {
            (_, "SessionStart") => Some(Moment::Context),
            (Self::ClaudeCode | Self::Codex, "UserPromptSubmit" | "PostToolUse") => {
                Some(Moment::Context)
            }
            (Self::GeminiCli, "BeforeAgent" | "AfterTool") => Some(Moment::Context),
            (Self::ClaudeCode | Self::Codex, "Stop") | (Self::GeminiCli, "AfterAgent") => {
                Some(Moment::Stop)
            }
            _ => None,
        }
    }

    /// Returns what the host reads from standard output.
    fn output(self, moment: Moment, event: &str, text: &str) -> String {
        let output = match (moment, self) {
            (Moment::Context, _) => {
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
            }
            (Moment::Stop, Self::ClaudeCode | Self::Codex) => {
                json!({"decision": "block", "reason": text})
            }
            (Moment::Stop, Self::GeminiCli) => json!({"decision": "deny", "reason": text}),
        };
        format!("{output}\n")
    }
}

/// The members of a hook's input that count.
#[derive(Deserialize)]
struct Input {
    session_id: String,
    hook_event_name: String,
}

/// What a hook does about what it has found.
enum Found {
    /// Nothing is new.
    Nothing,
    /// It has been reported.
    Told,
}

/// Why a hook found nothing out.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the input is not that of a hook: JSON with session_id and hook_event_name")]
    Input,
    #[error("name the agent with --agent (BLACKBOARD_AGENT)")]
    Nameless,
    #[error(transparent)]
    Unusable(#[from] crate::connection::Unusable),
    #[error("the server did not answer within {} s", HOOK_MAX.as_secs())]
    Slow,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("what was reported cannot be noted: {0}")]
    Record(#[from] io::Error),
}

/// A run of a hook.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) host: Host,
    pub(super) session: SessionName,
    pub(super) wanted: Wanted,
    pub(super) wait: Option<Duration>,
}

/// A hook at work for one session of its host.
struct Turn<'a> {
    host: Host,
    event: &'a str,
    moment: Moment,
    /// The name of the host's session.
    name: &'a str,
    server: &'a Server,
    reader: Reader<'a>,
    record: Record,
    /// The hook reports by its exit code, from the background if need be.
    is_waiting: bool,
}

impl Hook {
    /// Reports what is new, or notes why it cannot. Does not return if the exit code says something.
    pub(super) fn run(self, connection: &Connection) {
        match self.answered(connection) {
            Ok(None) => {}
            // A runtime would wait for nothing, and the host reads the code.
            Ok(Some(code)) => process::exit(code),
            Err(failed) => note(format_args!("the hook reports nothing: {failed}")),
        }
    }

    /// Returns the exit code if it is not 0.
    fn answered(self, connection: &Connection) -> Result<Option<i32>, Failed> {
        let Self { host, session, wanted, wait } = self;
        let input = input()?;
        let Some(moment) = host.moment(&input.hook_event_name) else { return Ok(None) };
        let wait = wait.filter(|_| moment == Moment::Stop);
        let connected = connection.client(LIMITS)?;
        let url = connected.client.base().to_string();
        let server = Server::new(connected);
        let agent = server.agent().ok_or(Failed::Nameless)?;
        let reader = Reader { session: &session, agent };
        let turn = Turn {
            host,
            event: &input.hook_event_name,
            moment,
            name: &format!("{} {}", host.name(), input.session_id),
            server: &server,
            reader,
            record: Record::of(&url, reader)?,
            is_waiting: wait.is_some() && host == Host::ClaudeCode,
        };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let watch = Watch::new(&session, agent, wanted).map_err(Refusal::from)?;
        let found = runtime.block_on(Box::pin(async {
            match wait {
                Some(wait) => turn.wait(watch, wait).await,
                None => timeout(HOOK_MAX, turn.look(watch)).await.map_err(|_| Failed::Slow)?,
            }
        }))?;
        runtime.shutdown_background();
        let is_code = turn.is_waiting && matches!(found, Found::Told);
        Ok(is_code.then_some(GO_ON))
    }
}

impl Turn<'_> {
    /// Reports what is new now.
    async fn look(&self, mut watch: Watch) -> Result<Found, Failed> {
        watch.skip(self.after()?);
        match watch.look(self.server).await {
            // Nobody has written to the session yet.
            Err(refusal) if refusal.is_of("session-not-found") => Ok(Found::Nothing),
            received => self.tell(&received?),
        }
    }

    /// Waits for something new, while the host is there and no later hook waits for the same session of it.
    async fn wait(&self, mut watch: Watch, wait: Duration) -> Result<Found, Failed> {
        let (end, parent, own) = (Instant::now() + wait, parent_id(), Uuid::new_v4().to_string());
        let name = self.name;
        self.record.change(|record| {
            record.session(name).waiter = Some(own.clone());
            Ok(())
        })?;
        let mut pause = PAUSES.0;
        loop {
            let told = self.record.change(|record| Ok(record.session(name).clone()))?;
            let left = end.saturating_duration_since(Instant::now());
            if told.waiter.as_ref() != Some(&own) || parent_id() != parent || left.is_zero() {
                return Ok(Found::Nothing);
            }
            watch.skip(told.after);
            match watch.change(self.server, left.min(PIECE)).await {
                Ok(None) => pause = PAUSES.0,
                Ok(Some(received)) => {
                    pause = PAUSES.0;
                    if let Found::Told = self.tell(&received)? {
                        return Ok(Found::Told);
                    }
                }
                Err(_) => {
                    sleep(pause.min(left)).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    fn after(&self) -> io::Result<Option<u64>> {
        self.record.change(|record| Ok(record.session(self.name).after))
    }

    /// Reports what is new, and notes it once the host has it. A paused agent is not made to go on.
    fn tell(&self, received: &Received) -> Result<Found, Failed> {
        let waiting: Waiting<'_> = received.read()?;
        if waiting.paused && self.moment == Moment::Stop {
            return Ok(Found::Nothing);
        }
        let things = waiting.things();
        let found = self.record.change(|record| {
            let news = record.news(self.name, &things);
            if news.is_empty() {
                record.tell(self.name, &[], Some(waiting.next));
                return Ok(Found::Nothing);
            }
            let notice = Notice::of(self.reader, &news, waiting.hidden(), waiting.paused);
            self.print(&notice.text)?;
            let whole = notice.things.len() == news.len();
            record.tell(self.name, &notice.things, whole.then_some(waiting.next));
            Ok(Found::Told)
        })?;
        Ok(found)
    }

    fn print(&self, text: &str) -> io::Result<()> {
        if self.is_waiting {
            return writeln!(io::stderr(), "{text}");
        }
        put(&self.host.output(self.moment, self.event, text))
    }
}

fn input() -> Result<Input, Failed> {
    let mut text = Vec::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut text)?;
    let input: Input = serde_json::from_slice(&text).map_err(|_| Failed::Input)?;
    let is_named = (1..=NAME_BYTES_MAX).contains(&input.session_id.len());
    if is_named { Ok(input) } else { Err(Failed::Input) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_moments_and_its_words() {
        let stop = |host: Host, event: &str| {
            let moment = host.moment(event).unwrap();
            assert_eq!(moment, Moment::Stop);
            host.output(moment, event, "a\"b")
        };
        let block = "{\"decision\":\"block\",\"reason\":\"a\\\"b\"}\n";
        assert_eq!(stop(Host::ClaudeCode, "Stop"), block);
        assert_eq!(stop(Host::Codex, "Stop"), block);
        let deny = "{\"decision\":\"deny\",\"reason\":\"a\\\"b\"}\n";
        assert_eq!(stop(Host::GeminiCli, "AfterAgent"), deny);
        for (host, events) in [
            (Host::ClaudeCode, ["SessionStart", "UserPromptSubmit", "PostToolUse"]),
            (Host::Codex, ["SessionStart", "UserPromptSubmit", "PostToolUse"]),
            (Host::GeminiCli, ["SessionStart", "BeforeAgent", "AfterTool"]),
        ] {
            for event in events {
                let moment = host.moment(event).unwrap();
                let output = host.output(moment, event, "a");
                let expected = json!({"hookEventName": event, "additionalContext": "a"});
                let output: serde_json::Value = serde_json::from_str(&output).unwrap();
                assert_eq!(output, json!({"hookSpecificOutput": expected}));
            }
            assert_eq!(host.moment("SubagentStop"), None);
        }
        assert_eq!(Host::GeminiCli.moment("Stop"), None);
    }
}
