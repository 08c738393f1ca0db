//! Blocking work, which waits until the simulation lets it be done.

use std::sync::mpsc::{Sender, channel};

use tokio::runtime::{Builder, EnterGuard, Runtime};

/// A runtime with one blocking thread, which takes its work in order and is held.
pub(super) struct BlockingWork {
    /// Holds the thread until it is dropped.
    held: Sender<()>,
    runtime: Runtime,
}

impl BlockingWork {
    pub(super) fn new() -> Self {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().max_blocking_threads(1).build().unwrap();
        let held = hold(&runtime, || ());
        Self { held, runtime }
    }

    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Does the work that waits.
    pub(super) fn work(&mut self) {
        let (done, is_done) = channel();
        self.held = hold(&self.runtime, move || done.send(()).unwrap());
        is_done.recv().unwrap();
    }
}

/// Holds the thread after the work that waits for it, until the sender is dropped.
fn hold(runtime: &Runtime, reached: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (held, until) = channel::<()>();
    drop(runtime.spawn_blocking(move || {
        reached();
        let _ended = until.recv();
    }));
    held
}
