//! Threads of the service, with the handling of their panics.

pub(crate) mod pace;
pub(crate) mod signal;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use blackboard_metrics as metrics;
use signal::Signal;

/// The pause before a thread starts again. It doubles with each panic up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause. A thread that ran for longer than that begins again with the shortest.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The service's threads, running and failed. They are told to end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Each name with the number of its threads that do not work now.
    down: Mutex<Vec<(&'static str, Arc<AtomicUsize>)>>,
    running: Mutex<Vec<Running>>,
    failed: CancellationToken,
    /// True if no thread starts: a simulation takes their steps.
    are_held: bool,
}

struct Running {
    name: &'static str,
    tell: Box<dyn Fn() + Send + Sync>,
    thread: thread::JoinHandle<()>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&self.name).finish()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.running.get_mut().iter().for_each(|running| (running.tell)());
    }
}

impl Threads {
    /// Threads of which none starts.
    #[cfg(test)]
    pub(super) fn held() -> Self {
        let mut threads = Self::default();
        threads.are_held = true;
        threads
    }

    /// Starts a thread that works until `signal` stops it. After a panic it pauses and works again, with what the
    /// panic left of its state: nothing in `work` may rely on a step that is half done.
    pub(super) fn start(
        &self,
        name: &'static str,
        signal: Arc<Signal>,
        work: impl FnMut(&Signal) + Send + 'static,
    ) -> io::Result<()> {
        self.start_on_queue(name, signal, || (), work)
    }

    /// Starts a thread that waits at a queue, which `close` ends once `signal` is stopped.
    pub(super) fn start_on_queue(
        &self,
        name: &'static str,
        signal: Arc<Signal>,
        close: impl Fn() + Send + Sync + 'static,
        mut work: impl FnMut(&Signal) + Send + 'static,
    ) -> io::Result<()> {
        let (down, own) = (self.down(name), Arc::clone(&signal));
        let run = move || {
            let mut pause = PAUSE_MIN;
            loop {
                let begun = Instant::now();
                let panicked = catch_unwind(AssertUnwindSafe(|| work(&own))).is_err();
                if own.is_stopped() {
                    return;
                }
                if begun.elapsed() > PAUSE_MAX {
                    pause = PAUSE_MIN;
                }
                down.fetch_add(1, Ordering::Relaxed);
                metrics::THREAD_FAILURES.add_one(name);
                tracing::error!(
                    thread = name,
                    panicked,
                    ?pause,
                    "a thread failed; it restarts after a pause"
                );
                if !own.pause(pause) {
                    return;
                }
                down.fetch_sub(1, Ordering::Relaxed);
                pause = (pause * 2).min(PAUSE_MAX);
            }
        };
        let tell = move || {
            signal.stop();
            close();
        };
        self.spawn(name, tell, run)
    }

    /// Starts a thread that returns once `tell` told it to end. A panic fails the service: the next start reads what
    /// is durable, and that is sound.
    pub(super) fn start_vital(
        &self,
        name: &'static str,
        tell: impl Fn() + Send + Sync + 'static,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (down, failed) = (self.down(name), self.failed.clone());
        let run = move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                down.fetch_add(1, Ordering::Relaxed);
                metrics::THREAD_FAILURES.add_one(name);
                tracing::error!(thread = name, "a critical thread panicked; shutting down");
                failed.cancel();
            }
        };
        self.spawn(name, tell, run)
    }

    fn spawn(
        &self,
        name: &'static str,
        tell: impl Fn() + Send + Sync + 'static,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        if self.are_held {
            return Ok(());
        }
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.running.lock().push(Running { name, tell: Box::new(tell), thread });
        Ok(())
    }

    /// Ends all threads, each after the step at hand: those of these names first, in this order. Returns false if none
    /// ran.
    pub(super) fn stop(&self, order: &[&str]) -> bool {
        let mut running = std::mem::take(&mut *self.running.lock());
        let any = !running.is_empty();
        for name in order {
            end(running.extract_if(.., |running| running.name == *name).collect());
        }
        end(running);
        any
    }

    /// Cancelled once a vital thread panicked.
    pub(super) fn failed(&self) -> &CancellationToken {
        &self.failed
    }

    /// Returns each name, and true if all threads of that name work.
    pub(super) fn states(&self) -> Vec<(&'static str, bool)> {
        let down = self.down.lock();
        down.iter().map(|(name, down)| (*name, down.load(Ordering::Relaxed) == 0)).collect()
    }

    fn down(&self, name: &'static str) -> Arc<AtomicUsize> {
        let mut threads = self.down.lock();
        if let Some((_, down)) = threads.iter().find(|(known, _)| *known == name) {
            return Arc::clone(down);
        }
        let down = Arc::default();
        threads.push((name, Arc::clone(&down)));
        down
    }
}

fn end(threads: Vec<Running>) {
    // All are told before the first is waited for.
    threads.iter().for_each(|running| (running.tell)());
    // A panic of the work was caught within.
    threads.into_iter().for_each(|running| drop(running.thread.join()));
}

#[cfg(test)]
mod tests;
