//! Threads of the service: restarted after a panic, or fatal to the server.

pub(crate) mod signal;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use signal::Signal;

/// The pause before a thread starts again. It doubles with each panic up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause. A thread that ran for longer than that begins again with the shortest.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Starts threads, and knows which of them work.
#[derive(Debug, Default)]
pub(super) struct Supervisor {
    /// Each name with how many threads of it do not work now.
    threads: Mutex<Vec<(&'static str, Arc<AtomicUsize>)>>,
    failed: CancellationToken,
}

/// A running thread. It is told to end when this is dropped.
#[derive(Debug)]
pub(super) struct Supervised {
    signal: Arc<Signal>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Supervised {
    /// Tells the thread to end, without waiting for it.
    pub(super) fn tell(&self) {
        self.signal.stop();
    }

    /// Ends the thread, after the step it is at.
    pub(super) fn stop(mut self) {
        self.tell();
        // A panic of its work does not come this far.
        self.thread.take().map(thread::JoinHandle::join);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.tell();
    }
}

impl Supervisor {
    /// Starts a thread that works until `signal` stops it. After a panic it pauses and works again, with what the
    /// panic left of its state: nothing in `work` may rely on a step that is half done.
    pub(super) fn start(
        &self,
        name: &'static str,
        signal: Arc<Signal>,
        mut work: impl FnMut(&Signal) + Send + 'static,
    ) -> io::Result<Supervised> {
        let (down, own) = (self.watched(name), Arc::clone(&signal));
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
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Supervised { signal, thread: Some(thread) })
    }

    /// Starts a thread that ends by itself. Nothing goes on after its panic: a restart of the server reads what is
    /// durable, and that is sound.
    pub(super) fn start_vital(
        &self,
        name: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<Supervised> {
        let (down, failed) = (self.watched(name), self.failed.clone());
        let run = move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                down.fetch_add(1, Ordering::Relaxed);
                metrics::THREAD_FAILURES.add_one(name);
                tracing::error!(thread = name, "a vital thread panicked; the server stops");
                failed.cancel();
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Supervised { signal: Arc::default(), thread: Some(thread) })
    }

    /// Cancelled once a vital thread panicked.
    pub(super) fn failed(&self) -> &CancellationToken {
        &self.failed
    }

    /// Every name of a thread, with whether all threads of that name work.
    pub(super) fn threads(&self) -> Vec<(&'static str, bool)> {
        let threads = self.threads.lock();
        threads.iter().map(|(name, down)| (*name, down.load(Ordering::Relaxed) == 0)).collect()
    }

    fn watched(&self, name: &'static str) -> Arc<AtomicUsize> {
        let mut threads = self.threads.lock();
        if let Some((_, down)) = threads.iter().find(|(known, _)| *known == name) {
            return Arc::clone(down);
        }
        let down = Arc::default();
        threads.push((name, Arc::clone(&down)));
        down
    }
}

#[cfg(test)]
mod tests;
