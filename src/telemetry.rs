//! The log: for a person on a terminal, JSON lines for everything else, always on standard output.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

/// The target of the one line that is always in the log.
pub const LISTENING: &str = "blackboard::listening";

/// The text is no filter.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no log filter such as info, or warn,blackboard=debug")]
pub struct InvalidFilter(String);

/// Starts the log; what `filter` leaves out is never formatted.
///
/// # Errors
///
/// The filter is none.
pub fn start(filter: &str) -> Result<(), InvalidFilter> {
    let parsed = EnvFilter::builder().parse(filter);
    let filter = parsed.map_err(|_| InvalidFilter(filter.to_owned()))?;
    // Where it listens is told whatever the filter is: without it nobody could use port 0.
    let filter = match format!("{LISTENING}=info").parse() {
        Ok(always) => filter.add_directive(always),
        Err(_) => filter,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    if io::stdout().is_terminal() {
        log.compact().with_target(false).with_timer(ShortTime).init();
    } else {
        log.json().flatten_event(true).with_current_span(false).init();
    }
    Ok(())
}

/// The time of day in UTC.
struct ShortTime;

impl FormatTime for ShortTime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        write!(w, "{}", jiff::Timestamp::now().strftime("%H:%M:%S%.3f"))
    }
}
