//! The signals that end a command.

use std::pin::pin;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::remote::refusal::Refusal;

/// SIGINT or SIGTERM.
#[derive(Debug)]
pub(super) struct End {
    interrupt: Signal,
    terminate: Signal,
    has_come: bool,
}

impl End {
    pub(super) fn new() -> Result<Self, Refusal> {
        let of = |kind| signal(kind).map_err(Refusal::Output);
        Ok(Self {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
            has_come: false,
        })
    }

    /// Returns true if a signal has come.
    pub(super) const fn has_come(&self) -> bool {
        self.has_come
    }

    /// Does some work, or nothing more of it once a signal comes.
    pub(super) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.comes() => None,
            done = work => Some(done),
        }
    }

    /// Does some work to its end, and notices a signal meanwhile.
    pub(super) async fn after<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        match self.or(&mut work).await {
            Some(done) => done,
            None => work.await,
        }
    }

    async fn comes(&mut self) {
        if !self.has_come {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            self.has_come = true;
        }
    }
}
