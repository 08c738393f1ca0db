//! Receiver of the writer's queue; when dropped, by a panic too, it fails all waiting writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fairness::{Client, Left, Queue};
use crate::service::job::{Job, WriteJob};

/// How long an append keeps the writer for each byte: a state of 6 MB in one text took 30 ms besides its decision.
const APPEND_A_BYTE: Duration = Duration::from_nanos(5);

/// From so many bytes on a write waits for a batch in which no other client's write is: that one would wait for its
/// append, about 1.3 ms.
const LARGE_BYTES: u64 = 256 << 10;

pub(crate) struct JobReceiver(pub(crate) Arc<Queue<Job>>);

impl JobReceiver {
    /// The next job, waited for at most until then.
    pub(crate) fn next(&self, until: Option<Instant>) -> Result<(Client, Job), Left> {
        self.0.pop(until)
    }

    /// The next write for a batch that has writes of these clients, if one is there and may join them.
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

    /// Puts a write back that is of the next batch.
    pub(crate) fn put_back(&self, client: Client, job: Box<WriteJob>) {
        self.0.put_back(client, Job::Write(job));
    }

    /// Counts what a job took of the thread, and what the append of so many bytes will.
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
