//! The log: text on a terminal, JSON lines elsewhere, always on standard output.

mod escaping;
mod json_line;
mod lines;
#[cfg(feature = "otlp")]
mod otlp;

use std::io::{self, IsTerminal};
use std::{panic, thread};

#[cfg(feature = "otlp")]
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
#[cfg(feature = "otlp")]
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::fmt::{self, format::Writer, time::FormatTime};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

#[cfg(feature = "otlp")]
use crate::http::ANSWERED;
use escaping::Plain;
use json_line::JsonLine;
use lines::{Lines, Writing};
#[cfg(feature = "otlp")]
use otlp::{Sending, Spans};

/// The target of the line with the server's address, which no filter hides.
pub const LISTENING: &str = "blackboard::listening";

/// The target of the line with the first token's path, which no filter hides.
pub const FIRST_TOKEN: &str = "blackboard::token";

/// The libraries whose lines repeat what clients send. No filter shows them.
const SILENT: [&str; 1] = ["rmcp"];

/// Keeps the log's writer thread running; dropped, it writes the queued lines first. Without a thread, a system call
/// per line would delay each answer.
#[must_use]
#[derive(Debug)]
pub struct Log {
    _writing: Writing,
    #[cfg(feature = "otlp")]
    _sending: Option<Sending>,
}

/// A failed start of the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a filter.
    #[error("{0:?} is not a log filter such as info or warn,blackboard=debug")]
    Filter(String),
    /// The collector's address or headers are unusable.
    #[cfg(feature = "otlp")]
    #[error("cannot send spans to the --otlp-endpoint")]
    Endpoint(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The log's thread could not be started.
    #[error("cannot start the logging thread")]
    Thread(#[from] io::Error),
}

/// The settings of the log.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The filter; excluded events are never formatted.
    pub filter: &'a str,
    /// The collector that receives a span per exchange.
    #[cfg(feature = "otlp")]
    pub otlp_endpoint: Option<&'a str>,
}

/// Starts the log.
///
/// # Errors
///
/// The filter is invalid, or no thread could be started.
pub fn start(wanted: Wanted<'_>) -> Result<Log, Error> {
    let parsed = EnvFilter::builder().parse(wanted.filter);
    let filter = parsed.map_err(|_| Error::Filter(wanted.filter.to_owned()))?;
    // These are told whatever the filter is: without them nobody could use port 0, or get in.
    let always = [LISTENING, FIRST_TOKEN].map(|target| format!("{target}=info"));
    let never = SILENT.map(|target| format!("{target}=off"));
    let filter = always.iter().chain(&never).fold(filter, |filter, text| match text.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    });
    let lines = Lines::default();
    let writing = lines.begin(io::stdout())?;
    let log = fmt::layer().with_writer(move || Plain(lines.clone()));
    let log = if io::stdout().is_terminal() {
        log.compact().with_target(false).with_timer(ShortTime).boxed()
    } else {
        log.event_format(JsonLine).boxed()
    };
    let told = tracing_subscriber::registry().with(log.with_filter(filter));
    #[cfg(feature = "otlp")]
    let (spans, sending) = wanted.otlp_endpoint.map(Spans::to).transpose()?.unzip();
    #[cfg(feature = "otlp")]
    let told = told.with(spans.map(|spans| spans.with_filter(exchanges())));
    told.init();
    log_panics();
    Ok(Log {
        _writing: writing,
        #[cfg(feature = "otlp")]
        _sending: sending,
    })
}

/// Selects the events that become spans: successful probes are logged below this level.
#[cfg(feature = "otlp")]
fn exchanges() -> FilterFn {
    let is_one: fn(&Metadata<'_>) -> bool =
        |metadata| metadata.target() == ANSWERED && *metadata.level() <= Level::INFO;
    FilterFn::new(is_one).with_max_level_hint(Level::INFO)
}

/// Logs every panic, wherever it is caught: no other place reports a panic of a response body. A message is logged
/// only if it is a literal of this program: a formatted one may quote a client, such as that of a string cut within
/// a character. The previous hook, which prints every message, is not called.
fn log_panics() {
    panic::set_hook(Box::new(|panicked| {
        let why = panicked.payload().downcast_ref::<&'static str>().copied();
        let place = panicked.location().map(tracing::field::display);
        let thread = thread::current();
        tracing::error!(why, place, thread = thread.name(), "a component of the server panicked");
    }));
}

/// Prints the time of day in UTC.
struct ShortTime;

impl FormatTime for ShortTime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        write!(w, "{}", jiff::Timestamp::now().strftime("%H:%M:%S%.3f"))
    }
}

#[cfg(test)]
mod tests;
