//! The signals that end a command.

use std::pin::pin;

use crate::remote::refusal::Refusal;
use crate::system::Signals;

/// Whether one has come.
#[derive(Debug)]
pub(super) struct End {
    signals: Signals,
    has_come: bool,
}

impl End {
    pub(super) fn new() -> Result<Self, Refusal> {
        let signals = Signals::new().map_err(Refusal::Output)?;
        Ok(Self { signals, has_come: false })
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
            self.signals.next().await;
            self.has_come = true;
        }
    }
}
