//! `blackboard tail`

mod event;
mod line;
mod paint;
mod pairs;
mod past;

use std::future::pending;
use std::io::{self, Write as _};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::time::sleep;

use self::event::Commit;
use self::line::{commit_line, resync_line, sentences};
use self::paint::Paint;
use self::pairs::Pairs;
use super::access::Access;
use super::feed::{Feed, News};
use super::query::Query;
use super::refusal::Refusal;
use super::screen::Screen;
use crate::system::Signals;
use crate::{Failure, note};
use blackboard_address::session_url;
use blackboard_board::SessionName;
use blackboard_printable::plain;

/// The silence after which a tail with `--count` says that it waits.
const SILENCE: Duration = Duration::from_secs(1);

/// Follow a session, one line per event
///
/// Shows each commit once and in order, from now on or after a revision, until it is interrupted. After a restart of
/// the server, or a broken connection, it continues where it was. Times are UTC. The session need not exist yet.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard tail demo\n\
\x20 blackboard tail demo --after 0 --compact\n\
\x20 blackboard tail demo --on state/devices,requests --json")]
pub struct Tail {
    /// Session to follow
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Begin after this revision; 0 begins with the first
    #[arg(long, value_name = "REVISION")]
    after: Option<u64>,

    /// Only changes of these parts: logs, agents, agents/NAME, state, state/path
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    on: Vec<String>,

    /// Only commits by this agent
    #[arg(long, value_name = "AGENT")]
    by: Option<String>,

    /// End after this number of events; waits for those that have not happened yet
    ///
    /// Without --after only new events count: `--after 0 --count 20` shows the first 20 of the session.
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// End after the events that have happened so far; without --after, begin with the first
    #[arg(long)]
    no_follow: bool,

    /// Short lines for questions and claims; the line of an answer or of a claim's end says by whom and after how
    /// long
    ///
    /// Renewals of claims are left out. Questions and claims that are still open are listed at the end.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    compact: bool,

    /// Print each event as one line of JSON, like --format json
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Colour the lines
    #[arg(
        long,
        env = "BLACKBOARD_COLOR",
        value_name = "WHEN",
        value_enum,
        default_value = "auto",
        hide_env_values = true,
        help_heading = "Output"
    )]
    color: Color,

    #[command(flatten)]
    access: Access,
}

/// When lines have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[expect(clippy::doc_markdown, reason = "the text is printed as it stands")]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Tail {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let query = Query::of(format!("{}/events", session_url(&self.session)))
            .list("on", &self.on)
            .with("agent", self.by);
        let paint = match self.color {
            Color::Auto => Paint::of_terminal(),
            Color::Always => Paint::Coloured,
            Color::Never => Paint::Plain,
        };
        self.access.or_json(self.json).run(async |server, screen| {
            let pairs = self.compact.then(Pairs::default);
            let mut printer = Printer { screen, paint, pairs };
            if self.no_follow {
                let printed = past::print(server, &query, self.after, self.count, &mut printer);
                return printed.await.and(printer.end());
            }
            let mut feed = Feed::new(server, query.address(), self.after);
            let followed = follow(&mut feed, &mut printer, self.count).await;
            printer.end().and(followed)
        })
    }
}

/// Prints what comes until a signal, the last event wanted, or a refusal.
async fn follow(
    feed: &mut Feed<'_>,
    printer: &mut Printer,
    count: Option<u64>,
) -> Result<(), Refusal> {
    let mut signals = Signals::new().map_err(Refusal::Output)?;
    let (mut printed, mut announces) = (0, count.is_some());
    while count.is_none_or(|count| printed < count) {
        let news = tokio::select! {
            news = feed.next() => news?,
            () = signals.next() => return Ok(()),
            () = silence(announces) => {
                announces = false;
                note_wait(printed, count);
                continue;
            }
        };
        match printer.print(&news) {
            Err(Refusal::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            printed => printed?,
        }
        printed += 1;
    }
    Ok(())
}

/// Waits until the silence is long enough to be announced, or for ever.
async fn silence(announces: bool) {
    if announces { sleep(SILENCE).await } else { pending().await }
}

/// Says what a count waits for, so that a wait for more events than there are is no hang.
fn note_wait(printed: u64, count: Option<u64>) {
    if let Some(count) = count {
        note(format_args!("{printed} of {count} events so far; waiting for more, Ctrl-C ends"));
    }
}

/// Prints events in one form.
struct Printer {
    screen: Screen,
    paint: Paint,
    pairs: Option<Pairs>,
}

impl Printer {
    fn print(&mut self, news: &News) -> Result<(), Refusal> {
        if !self.screen.is_table {
            return put(&plain(&news.json()));
        }
        match news {
            News::Resync(resync) => put(&resync_line(self.paint, resync)),
            News::Commit { kind, data } => {
                let commit = Commit::read(data)?;
                let said = match &mut self.pairs {
                    Some(pairs) => pairs.sentences(&commit),
                    None => sentences(&commit),
                };
                // It only renews claims.
                if said.is_empty() {
                    return Ok(());
                }
                put(&commit_line(self.paint, kind, &commit, &said))
            }
        }
    }

    /// Prints what is still open.
    fn end(&mut self) -> Result<(), Refusal> {
        let open = self.pairs.take().map(Pairs::open).unwrap_or_default();
        open.iter().try_for_each(|text| put(&self.paint.faint(text)))
    }
}

/// Prints a line at once. The reader may have closed the pipe: it has read enough.
fn put(text: &str) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{text}\n").as_bytes())
        .and_then(|()| out.flush())
        .map_err(Refusal::Output)
}
