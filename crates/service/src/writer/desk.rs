//! The writer's desk: its thread works there, or a write that finds it free.
//!
//! A lone write that hands itself to the thread pays for two threads that wake each other, about as much as for its
//! append. So it takes the step in its own task; the runtime gives the other tasks of its thread to another one meanwhile.
//! Where writes come together, they are left to the thread, which gathers the next batch while the last one is stored.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::{Rest, Writer};
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::job::{Job, JobQueue};
use blackboard_fairness::Left;

/// The steps of one write each, one after the other, after which a write is a lone one. Of eight clients that wait for
/// their answers, the first to come back always finds the desk free.
pub(crate) const LONE_STEPS: u32 = 8;

/// The desk, shared by the thread and the writes.
#[derive(Clone, Default)]
pub(crate) struct Desk(Arc<Mutex<Seat>>);

/// The writer, and what its thread does.
#[derive(Default)]
struct Seat {
    /// `None` before the thread starts and after it ends, and once a step panicked.
    writer: Option<Writer>,
    /// True if the thread rests until something expires: it does not look for idle moments of the store.
    is_at_rest: bool,
}

impl Desk {
    /// Starts the writer's thread.
    pub(crate) fn start(&self, writer: Writer, deps: &Deps) -> io::Result<()> {
        let (jobs, closed) = (Arc::clone(&writer.jobs.0), Arc::clone(&writer.jobs.0));
        self.0.lock().writer = Some(writer);
        let desk = self.clone();
        let work = move || {
            loop {
                let rest = desk.0.lock().work();
                match rest {
                    Rest::Busy => {}
                    Rest::Pause(until) => jobs.wait(Some(until)),
                    Rest::Idle(until) => jobs.wait(until),
                    Rest::End => return,
                }
            }
        };
        deps.threads.start_vital("writer", move || closed.close(), work)
    }

    /// Hands a job to the writer. If no other job waits and the desk is free, the sender takes the step.
    pub(crate) fn hand_over(&self, job: Job, queue: &JobQueue) -> Result<(), ServiceError> {
        let seat = self.0.try_lock().filter(|seat| seat.is_free() && queue.jobs.is_empty());
        let Some(mut seat) = seat.filter(|_| may_block()) else { return queue.send(job) };
        queue.send_quietly(job)?;
        // The thread finds no writer after a panic, and fails the service.
        let stepped = catch_unwind(AssertUnwindSafe(|| block_in_place(|| seat.step())));
        let wakes = std::mem::take(&mut seat.is_at_rest) || stepped.is_err();
        drop(seat);
        if wakes || !queue.jobs.is_empty() {
            queue.jobs.wake();
        }
        Ok(())
    }
}

impl Seat {
    /// Returns true if a write may take the step of an embedded store's writer: another engine's append waits for a network.
    fn is_free(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| {
            writer.lone_steps >= LONE_STEPS && writer.store.embedded().is_some()
        })
    }

    /// Does the next job. A panic leaves no writer, which fails the jobs that wait.
    fn step(&mut self) -> Result<(), Left> {
        let Some(mut writer) = self.writer.take() else { return Err(Left::Closed) };
        let stepped = writer.step();
        self.writer = Some(writer);
        stepped
    }

    /// Takes the thread's next step. A thread without a writer panics, which fails the service.
    #[expect(clippy::expect_used, reason = "the step of a write in place panicked before")]
    fn work(&mut self) -> Rest {
        let mut writer = self.writer.take().expect("a write in place panicked");
        let rest = match writer.step() {
            Ok(()) => Rest::Busy,
            Err(Left::Nothing) => writer.rest(),
            Err(Left::Closed) => return Rest::End,
        };
        self.is_at_rest = matches!(rest, Rest::Idle(_));
        self.writer = Some(writer);
        rest
    }
}

/// Returns true if a task may block its thread, and the runtime gives the thread's other tasks to another one.
fn may_block() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
