//! `blackboard ask`

use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::claim::object;
use crate::remote::access::Access;
use crate::remote::body::Written;
use crate::remote::input;
use crate::remote::place::quoted;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::{Received, Server, Write};
use crate::{Failure, note};
use blackboard_address::{entry_url, log_url};
use blackboard_board::{LogName, Seq, SessionName, Ttl};
use blackboard_printable::line;

/// The longest wait of one request.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The pause before a wait goes on that the server broke off, as for a restart.
const PAUSE: Duration = Duration::from_secs(1);

/// Ask a question and wait for its answer
///
/// Prints the answer; with --format json the entry. The wait continues through a restart of the server. Exit code 7
/// means that nobody answered in time, or that the question was skipped or expired without a default.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard ask demo 'Bars or lines?' --option Bars --option Lines --timeout 10m\n\
\x20 blackboard ask demo 'Delete it?' --expires 1h --default no")]
pub struct Ask {
    /// Session to ask in
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Question; - reads it from standard input
    #[arg(value_name = "QUESTION")]
    question: String,

    /// Wait at most this long; the question stays open
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Ttl>,

    /// Do not wait for the answer
    #[arg(long, conflicts_with = "timeout")]
    no_wait: bool,

    /// Close the question after this time, such as 10m
    #[arg(long, value_name = "DURATION")]
    expires: Option<Ttl>,

    /// Answer that the question gets if it expires
    #[arg(long, value_name = "ANSWER", requires = "expires")]
    default: Option<String>,

    /// Answer that a form offers as a choice; can be given several times
    #[arg(long = "option", value_name = "TEXT")]
    options: Vec<String>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// A question that is not open any more.
#[derive(Deserialize)]
struct Answered {
    item: Item,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    answer: Value,
    #[serde(default)]
    skipped: bool,
}

impl Ask {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { session, question, timeout, no_wait, expires, default, options, repeat, access } =
            self;
        let query = Query::of(log_url(&session, &LogName::Questions))
            .with("expires", expires)
            .with("default", default);
        access.run(async |server, screen| {
            let question = input::argument(question)?;
            let question = format!("\"question\":{}", quoted(&question));
            let options = (!options.is_empty()).then(|| Value::from(options));
            let options = options.map(|options| format!("\"options\":{options}"));
            let item = object([Some(question), options]);
            let write = Write::json(Method::POST, query.address(), item);
            let received = server.write(write, &repeat.key()).await?;
            let written: Written = received.read()?;
            let place = format!("{session}/questions");
            let entry = written.entries.first().filter(|_| !no_wait);
            let Some(entry) = entry else {
                return screen.show(&received, |written: Written| written.sentence(&place));
            };
            if screen.is_table {
                note(format_args!("asked {place}/{}; waiting for the answer", entry.seq));
            }
            let answered = wait(server, &session, entry.seq, timeout).await?;
            let Answered { item } = answered.read()?;
            screen.show(&answered, |_: Answered| answer_line(&item.answer))?;
            ended(entry.seq, &item)
        })
    }
}

/// Waits until the question is not open any more.
async fn wait(
    server: &Server,
    session: &SessionName,
    seq: u64,
    timeout: Option<Ttl>,
) -> Result<Received, Refusal> {
    let time = timeout.map(|time| Duration::from_millis(time.ms().unsigned_abs()));
    let deadline = time.map(|time| Instant::now() + time);
    loop {
        let left = deadline.map_or(WAIT_MAX, |end| end.saturating_duration_since(Instant::now()));
        let ms = left.min(WAIT_MAX).as_millis().max(1);
        let address = Query::of(entry_url(session, &LogName::Questions, Seq(seq)))
            .with("until", Some("answered"))
            .with("wait", Some(format!("{ms}ms")))
            .address();
        let is_over = || deadline.is_some_and(|end| Instant::now() >= end);
        match server.get(&address).await {
            Err(Refusal::Refused { name, .. }) if name == "condition-not-met" => {
                if let Some(time) = timeout.filter(|_| is_over()) {
                    return Err(Refusal::NotAnswered { seq, time: time.to_string() });
                }
            }
            Err(refusal) if refusal.is_passing() && !is_over() => sleep(PAUSE).await,
            answered => return answered,
        }
    }
}

/// Returns the answer as a line.
fn answer_line(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) => text.lines().map(|text| format!("{}\n", line(text))).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("{}\n", line(&answer.to_string()))
        }
    }
}

/// Fails unless there is an answer.
fn ended(seq: u64, item: &Item) -> Result<(), Refusal> {
    match item {
        Item { skipped: true, .. } => Err(Refusal::Skipped { seq }),
        Item { answer: Value::Null, .. } => Err(Refusal::Expired { seq }),
        Item { .. } => Ok(()),
    }
}
