//! Entrance of the writer: waits for queue space, boards and prepared values, then for the reply.

use tokio::sync::oneshot;

use super::desk::Desk;
use crate::job::{Job, JobQueue, Pins, QUEUE_BYTES_MAX, Unwritten, WriteJob};
use crate::sessions::session::{Pin, Published};
use crate::{Reply, Service, ServiceError};
use blackboard_board::{
    AgentCommand, BoardCommand, Command, Digest, Edit, Item, Json, LogCommand, Prepared,
    QuestionCommand, RequestCommand, SessionCommand, SessionName, Transaction,
};
use blackboard_fairness::{Place, Share, SharedPlaces, compute};

/// The bytes of one client's values that are prepared at once, or one write's. The prepared form takes up to twenty
/// times as much memory.
const PREPARING_BYTES_MAX: u64 = 8 << 20;

/// The number of times that a write's values are prepared. If other writes change the same part each time, the writer
/// makes them itself.
const PREPARED_TIMES_MAX: usize = 3;

/// The number of times that a write is queued whose board leaves memory while it waits.
const COLD_TRIES_MAX: usize = 8;

/// Entrance of the writer: its queue, and the turns of writes whose large values are made first.
pub(crate) struct Entrance {
    pub(crate) queue: JobQueue,
    pub(crate) desk: Desk,
    /// Bytes of values being prepared for the writer. The queue's room bounds the writes that wait for that.
    pub(crate) preparing: SharedPlaces,
    /// One write at a time prepares its values again.
    preparing_again: SharedPlaces,
    /// The session that gathers answered questions, if any.
    qa_session: Option<SessionName>,
}

impl Entrance {
    pub(crate) fn new(queue: JobQueue, qa_session: Option<SessionName>) -> Self {
        Self {
            queue,
            desk: Desk::default(),
            preparing: SharedPlaces::new(PREPARING_BYTES_MAX, usize::MAX, Share::LeavesRest),
            preparing_again: SharedPlaces::new(1, usize::MAX, Share::All),
            qa_session,
        }
    }
}

impl Service {
    /// Hands a write to the writer and waits for its reply; never [`Unwritten::Cold`].
    pub(crate) async fn enqueue(&self, mut job: Box<WriteJob>) -> Result<Reply, Unwritten> {
        job.room = Some(self.inner.writer.queue.room(weight(&job.write.command))?);
        for tries in 0..COLD_TRIES_MAX {
            let prepares = tries < PREPARED_TIMES_MAX && Prepared::bytes(&job.write.command) > 0;
            // Held until the write is answered, which bounds the values that are made and not yet published. Taken
            // before the pins, or every write that waits for it would keep its boards in memory.
            let turn = if prepares {
                Some(Box::pin(self.turn_to_prepare(&job, tries)).await?)
            } else {
                None
            };
            job.epoch.get_or_insert(self.epoch());
            job.pins = self.pins(&job).await?;
            if turn.is_some() {
                job = Box::pin(self.prepared(job)).await?;
            }
            let (reply, answer) = oneshot::channel();
            job.reply = Some(reply);
            let Entrance { desk, queue, .. } = &self.inner.writer;
            desk.hand_over(Job::Write(job), queue)?;
            // Without an answer the writer panicked with this write in its hands.
            match answer.await {
                Ok(Err(Unwritten::Cold(back))) => job = back,
                Ok(answer) => return answer,
                Err(_) => return Err(ServiceError::Poisoned { outcome_unknown: true }.into()),
            }
        }
        Err(ServiceError::Overloaded.into())
    }

    /// Waits for the turn of a write to have its large values made.
    async fn turn_to_prepare(
        &self,
        job: &WriteJob,
        tries: usize,
    ) -> Result<(Place, Option<Place>), ServiceError> {
        let overloaded = |_| ServiceError::Overloaded;
        // Of many writes to one place all but one find another value there, again and again.
        let again = match tries {
            0 => None,
            _ => {
                let turn = self.inner.writer.preparing_again.turn(1).map_err(overloaded)?;
                Some(turn.await.map_err(overloaded)?)
            }
        };
        let bytes = (Prepared::bytes(&job.write.command) as u64).min(PREPARING_BYTES_MAX);
        let turn = self.inner.writer.preparing.turn(bytes).map_err(overloaded)?;
        Ok((turn.await.map_err(overloaded)?, again))
    }

    /// Makes the large values of a write for the board that is published.
    async fn prepared(&self, mut job: Box<WriteJob>) -> Result<Box<WriteJob>, ServiceError> {
        let session = self.inner.sessions.directory.get(job.session());
        let board = match session.filter(|session| !session.is_damaged()) {
            Some(session) => self.inner.sessions.loader.published(&session).await?.board,
            None => Published::nothing().board,
        };
        let make = move || {
            job.prepared = Prepared::of(&board, &job.write.command);
            job
        };
        compute(make).await.map_err(|_| ServiceError::Fault)
    }

    /// Loads and pins the boards that a write touches.
    async fn pins(&self, job: &WriteJob) -> Result<Pins, ServiceError> {
        let mut pins = Pins::default();
        let source = job.fork_key.as_ref().map(|(name, _)| name);
        let names = [Some(job.session()), source, self.inner.writer.qa_session.as_ref()];
        for (pin, name) in pins.iter_mut().zip(names) {
            if let Some(name) = name.filter(|name| *name != job.session()) {
                Box::pin(self.catch_up(name)).await?;
            }
            let session = name.and_then(|name| self.inner.sessions.directory.get(name));
            // The writer refuses a write to a damaged session.
            let Some(session) = session.filter(|session| !session.is_damaged()) else { continue };
            let session = pin.insert(Pin::new(&session)).session();
            self.inner.sessions.memory.touch(session);
            if !session.is_hot() {
                match Box::pin(self.inner.sessions.loader.published(session)).await {
                    Ok(_) | Err(ServiceError::Damaged) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(pins)
    }
}

/// Weight of a command in the queue: its text, and a constant.
fn weight(command: &Command) -> u64 {
    // A single write of any permitted size may wait alone.
    text_bytes(command).min(QUEUE_BYTES_MAX) as u64
}

fn text_bytes(command: &Command) -> usize {
    const ITSELF: usize = 512;
    const ITEM_ITSELF: usize = 64;
    let of =
        |items: &[Item]| items.iter().map(|item| item.text().len() + ITEM_ITSELF).sum::<usize>();
    let text = |json: &Json| json.text().len();
    let brought = match command {
        Command::Session(SessionCommand::Put { qa_pairs, .. }) => of(qa_pairs),
        Command::Log(_, LogCommand::Append { items, .. } | LogCommand::Replace { items, .. }) => {
            of(items)
        }
        Command::Log(_, LogCommand::PutEntry { item, .. }) => item.text().len(),
        Command::Board(BoardCommand::Replace { logs, state }) => {
            logs.iter().map(|items| of(items)).sum::<usize>() + state.as_ref().map_or(0, text)
        }
        Command::State(_, edit) => match edit {
            Edit::Put { value, .. } | Edit::Merge(value) | Edit::Add(value) => text(value),
            Edit::Append(elements) => elements.iter().map(text).sum(),
            Edit::Remove => 0,
        },
        Command::Agent(
            _,
            AgentCommand::Put { profile: item, .. } | AgentCommand::Patch { patch: item, .. },
        ) => item.text().len(),
        Command::Request(
            _,
            RequestCommand::Finish { result: value, .. }
            | RequestCommand::Fail { reason: value, .. }
            | RequestCommand::Cancel { reason: value }
            | RequestCommand::Judge { reason: value, .. },
        ) => value.as_ref().map_or(0, text),
        Command::Plan { items, plan } => of(items) + size_of_val(&*plan.after),
        Command::ClaimNext { wanted, .. } => {
            wanted.0.iter().map(|(name, value)| name.len() + text(value)).sum()
        }
        Command::Question(_, QuestionCommand::Answer { answer, .. }) => answer.len(),
        Command::Ask { items, default, .. } => of(items) + default.as_ref().map_or(0, String::len),
        Command::Transact(transaction) => {
            let Transaction { tests, then, otherwise } = &**transaction;
            tests.len() * ITSELF + then.iter().chain(otherwise).map(text_bytes).sum::<usize>()
        }
        Command::Session(SessionCommand::ForgetImages { images, .. }) => {
            images.len() * size_of::<Digest>()
        }
        Command::Session(SessionCommand::PutBlob { media_type, .. }) => media_type.as_str().len(),
        Command::Session(
            SessionCommand::Delete | SessionCommand::Restore { .. } | SessionCommand::Adopt { .. },
        )
        | Command::Log(_, LogCommand::Remove { .. } | LogCommand::DeleteEntry { .. })
        | Command::Ack { .. }
        | Command::Board(BoardCommand::Clear { .. })
        | Command::Agent(_, AgentCommand::Remove)
        | Command::RemoveAgents
        | Command::Request(
            _,
            RequestCommand::Claim { .. } | RequestCommand::Release | RequestCommand::Retry { .. },
        )
        | Command::Question(_, QuestionCommand::Skip)
        | Command::Checkpoint(_, _) => 0,
    };
    brought + ITSELF
}
