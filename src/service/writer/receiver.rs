//! Receiver of the writer's queue; when dropped, by a panic too, it fails all waiting writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fairness::{Client, Left, Queue};
use crate::service::job::{Job, WriteJob};

/// The time of an append for each byte: a state of 6 MB in one text took 30 ms besides its decision.
const APPEND_A_BYTE: Duration = Duration::from_nanos(5);

/// The size from which a write joins no batch with other clients' writes, which would wait for its append, about 1.3
/// ms.
const LARGE_BYTES: u64 = 256 << 10;

pub(crate) struct JobReceiver(pub(crate) Arc<Queue<Job>>);

impl JobReceiver {
    /// Waits for the next job until this time.
    pub(crate) fn next(&self, until: Option<Instant>) -> Result<(Client, Job), Left> {
        self.0.pop(until)
    }

    /// Returns the next write for a batch with writes of these clients, if one waits and may join.
    pub(crate) fn join(&self, clients: &[Client]) -> Option<(Client, Box<WriteJob>)> {
        let (client, job) = self.0.try_pop().ok()?;
        let may_join = |job: &WriteJob| {
            job.room.as_ref().is_none_or(|room| room.bytes < LARGE_BYTES)
                || clients.iter().all(|other| *other == client)
        };
        match job {
            Job::Write(job) if may_join(&job) => return Some((client, job)),
            other @ (Job::Write(_) | Job::Rebase(_)) => self.0.put_back(client, other),
        }
        None
    }

    /// Puts back a write for the next batch.
    pub(crate) fn put_back(&self, client: Client, job: Box<WriteJob>) {
        self.0.put_back(client, Job::Write(job));
    }

    /// Counts a job's time on the thread, and the expected time of its append.
    pub(crate) fn charge(&self, client: Client, took: Duration, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.0.charge(client, took + APPEND_A_BYTE * bytes);
    }
}

impl Drop for JobReceiver {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_pop().is_ok() {}
    }
}
