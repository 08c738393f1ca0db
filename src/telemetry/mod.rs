//! The log: text on a terminal, JSON lines elsewhere, always on standard output.

mod escaping;
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
use lines::{Lines, Writing};
#[cfg(feature = "otlp")]
use otlp::{Sending, Spans};

/// The target of the line that says where the server listens. It is always in the log.
pub const LISTENING: &str = "blackboard::listening";

/// The target of the line that says where the first token lies. It is always in the log too.
pub const FIRST_TOKEN: &str = "blackboard::token";

/// While it is there the log is written, by a thread of its own: a call into the kernel for each line held up
/// the answer that it tells of. What waits when it goes is written first.
#[must_use]
#[derive(Debug)]
pub struct Log {
    _writing: Writing,
    #[cfg(feature = "otlp")]
    _sending: Option<Sending>,
}

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no filter.
    #[error("{0:?} is no log filter such as info, or warn,blackboard=debug")]
    Filter(String),
    /// The collector cannot be sent to.
    #[cfg(feature = "otlp")]
    #[error("no spans can be sent to the --otlp-endpoint")]
    Endpoint(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The thread that writes it could not be made.
    #[error("the log's thread could not be started")]
    Thread(#[from] io::Error),
}

/// What is to be told, and to whom.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What the log tells; what it leaves out is never formatted.
    pub filter: &'a str,
    /// The collector that gets a span for each exchange.
    #[cfg(feature = "otlp")]
    pub otlp_endpoint: Option<&'a str>,
}

/// Starts the log.
///
/// # Errors
///
/// The filter is none, or there is no room for another thread.
pub fn start(wanted: Wanted<'_>) -> Result<Log, Error> {
    let parsed = EnvFilter::builder().parse(wanted.filter);
    let filter = parsed.map_err(|_| Error::Filter(wanted.filter.to_owned()))?;
    // These are told whatever the filter is: without them nobody could use port 0, or get in.
    let filter = [LISTENING, FIRST_TOKEN].iter().fold(filter, |filter, target| {
        match format!("{target}=info").parse() {
            Ok(always) => filter.add_directive(always),
            Err(_) => filter,
        }
    });
    let lines = Lines::default();
    let writing = lines.begin(io::stdout())?;
    let log = fmt::layer().with_writer(move || Plain(lines.clone()));
    let log = if io::stdout().is_terminal() {
        log.compact().with_target(false).with_timer(ShortTime).boxed()
    } else {
        log.json().flatten_event(true).with_current_span(false).boxed()
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

/// What spans are made of: probes that succeed are told below this level.
#[cfg(feature = "otlp")]
fn exchanges() -> FilterFn {
    let is_one: fn(&Metadata<'_>) -> bool =
        |metadata| metadata.target() == ANSWERED && *metadata.level() <= Level::INFO;
    FilterFn::new(is_one).with_max_level_hint(Level::INFO)
}

/// Lets every panic be in the log, wherever it is caught: those of an answer's body end nowhere else. Its message is
/// told only where it is a text of this program: one that was made may quote what a client sent, as that of a string
/// cut within a character does. The hook from before, which prints every message, is not called.
fn log_panics() {
    panic::set_hook(Box::new(|panicked| {
        let why = panicked.payload().downcast_ref::<&'static str>().copied();
        let place = panicked.location().map(tracing::field::display);
        let thread = thread::current();
        tracing::error!(why, place, thread = thread.name(), "a part of the server panicked");
    }));
}

/// The time of day in UTC.
struct ShortTime;

impl FormatTime for ShortTime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        write!(w, "{}", jiff::Timestamp::now().strftime("%H:%M:%S%.3f"))
    }
}

#[cfg(test)]
mod tests;
