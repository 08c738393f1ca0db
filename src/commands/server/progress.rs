//! Progress bars on standard error, on a terminal only.
//!
//! Elsewhere, as in a pipe, a log or with `TERM=dumb`, a bar is hidden and costs nothing. It has no colours, is drawn at
//! most twenty times a second, and is erased when it goes, so that the last line of a command stands alone.

use std::fmt::{self, Display};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::cli::note;
use crate::printable::line;
use crate::store::{Progress, Reached, Stage};

/// The time between two looks at counters, and between two draws while nothing moves.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const BYTES: &str = "{msg} [{bar:24}] {percent:>3} %  {bytes}/{total_bytes}{byte_rate}{left}";
const BYTES_ENDLESS: &str = "{msg} {spinner} {bytes}{byte_rate}  {elapsed}";
const UNITS: &str = "{msg} [{bar:24}] {percent:>3} %  {human_pos}/{human_len}{rate}{left}";
const ENDLESS: &str = "{msg} {spinner} {elapsed}";

/// A bar; erased on drop.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    stage: Stage,
}

impl Bar {
    /// A bar for so many bytes, if their number is known.
    pub(super) fn of_bytes(name: &str, total: Option<u64>) -> Self {
        let template = if total.is_some() { BYTES } else { BYTES_ENDLESS };
        Self::with(name, total, template)
    }

    /// A bar for so many things.
    pub(super) fn of_units(name: &str, total: usize) -> Self {
        Self::with(name, u64::try_from(total).ok(), UNITS)
    }

    /// A bar for work that has not told its stage yet.
    pub(super) fn of_stages() -> Self {
        Self::with(name_of(Stage::Begun), None, ENDLESS)
    }

    /// A bar that is not seen.
    pub(super) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), stage: Stage::Begun }
    }

    fn with(name: &str, total: Option<u64>, template: &str) -> Self {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if bar.is_hidden() {
            return Self::hidden();
        }
        bar.set_style(style(template));
        bar.set_message(line(name).into_owned());
        bar.enable_steady_tick(LOOK_EVERY);
        Self { bar, stage: Stage::Begun }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    pub(super) fn advance(&self, units: u64) {
        self.bar.inc(units);
    }

    /// Moves to this position, where units were skipped.
    pub(super) fn move_to(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Shows how far work has come. A new stage has a bar of its own.
    pub(super) fn show(&mut self, reached: Reached) {
        let Reached { stage, done, total } = reached;
        if self.is_hidden() {
            return;
        }
        if stage != self.stage {
            let template = match (stage, total) {
                (Stage::Database, 1..) => BYTES,
                (_, 1..) => UNITS,
                (_, 0) => ENDLESS,
            };
            *self = Self::with(name_of(stage), (total > 0).then_some(total), template);
            self.stage = stage;
        }
        self.bar.set_position(if total > 0 { done.min(total) } else { done });
    }

    /// Writes a line for people above the bar.
    pub(super) fn note(&self, what: impl Display) {
        self.bar.suspend(|| note(what));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Does work, and shows its counters meanwhile.
pub(super) fn show_while<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    let mut bar = Bar::of_stages();
    if bar.is_hidden() {
        return work();
    }
    thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                bar.show(progress.reached());
            }
        });
        let done = work();
        drop(end);
        done
    })
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants, of which a test has a look.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            tell(out, state, format_args!("  {}/s", HumanCount(whole(state.per_sec()))));
        })
        .with_key("byte_rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            tell(out, state, format_args!("  {}/s", HumanBytes(whole(state.per_sec()))));
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            tell(out, state, format_args!("  {:#} left", HumanDuration(state.eta())));
        })
        .progress_chars("=> ")
}

/// Writes an estimate once there is something to estimate from.
fn tell(out: &mut dyn fmt::Write, state: &ProgressState, estimate: fmt::Arguments<'_>) {
    if state.pos() > 0 && state.per_sec() >= 1.0 {
        // A bar that cannot be written says nothing.
        out.write_fmt(estimate).ok();
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is rounded and not negative"
)]
fn whole(rate: f64) -> u64 {
    rate.max(0.0).round() as u64
}

const fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Begun => "preparing",
        Stage::Database => "database",
        Stage::Commits => "commits",
        Stage::Pages => "database pages",
        Stage::Images => "images",
        Stage::SessionImages => "images of sessions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [BYTES, BYTES_ENDLESS, UNITS, ENDLESS] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn work_is_done_whether_its_progress_is_seen_or_not() {
        let progress = Progress::default();
        let done = show_while(&progress, || {
            progress.begin(Stage::Commits, 3);
            progress.advance(2);
            7
        });
        assert_eq!(done, 7);
        assert_eq!(progress.reached(), Reached { stage: Stage::Commits, done: 2, total: 3 });
    }
}
