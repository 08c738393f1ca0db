//! The pulse: a connection of its own that finds whether the service answers, its time and epoch, and whether this server
//! leads.
//!
//! The leader holds an advisory lock for the life of that connection. The service ends a connection that beats no more, so
//! that another server takes the lead from one that stands still or is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio_postgres::Client;
use uuid::{Builder, Uuid};

use super::connection::{ANSWER_MAX, Connections, connect, within};
use super::error::failed;
use super::schema::epoch_of;
use super::statement::{NOW_MS, statement};
use crate::StoreError;
use blackboard_board::{Epoch, Timestamp};
use blackboard_clock::steady::{ms, steady};

/// The time between two beats.
const BEAT: Duration = Duration::from_millis(500);

/// The time between two tries to connect.
const RETRY: Duration = Duration::from_millis(200);

/// The silence after which the service ends the connection, if its version can (14 or later).
const SILENCE: &str = "SELECT set_config('idle_session_timeout', '3s', false) \
    WHERE EXISTS (SELECT FROM pg_settings WHERE name = 'idle_session_timeout')";

/// The findings of the last beat.
#[derive(Debug)]
pub(super) struct Pulse {
    is_there: AtomicBool,
    leads: AtomicBool,
    is_stopped: AtomicBool,
    /// The database's time at the beginning of the steady clock, in milliseconds since 1970. The host's wall clock has no
    /// part in it.
    begins_ms: AtomicI64,
    /// The store's epoch as it was read last.
    epoch: RwLock<Epoch>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            is_there: AtomicBool::new(true),
            leads: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            begins_ms: AtomicI64::new(0),
            epoch: RwLock::new(Epoch(0)),
        }
    }
}

impl Pulse {
    /// Returns true if the service answered last time.
    pub(super) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Notes whether the service answered, and logs a change.
    pub(super) fn note(&self, is_there: bool) {
        if self.is_there.swap(is_there, Ordering::Relaxed) == is_there {
            return;
        }
        if is_there {
            tracing::info!("the database can be reached again");
        } else {
            tracing::error!(
                "the database cannot be reached: requests are rejected until it is back"
            );
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    /// Returns the database's time.
    pub(super) fn time(&self) -> Timestamp {
        Timestamp(self.begins_ms.load(Ordering::Relaxed).saturating_add(ms(steady())))
    }

    pub(super) fn epoch(&self) -> Epoch {
        *self.epoch.read()
    }

    /// Notes the epoch, and logs that another one was drawn.
    pub(super) fn note_epoch(&self, now: Epoch) {
        if self.epoch() == now {
            return;
        }
        let before = std::mem::replace(&mut *self.epoch.write(), now);
        if before != Epoch(0) && before != now {
            tracing::warn!(
                "the store has a new epoch: earlier tags and signed addresses match no more"
            );
        }
    }

    /// Returns an id for the content of a blob or a base. It begins with the database's time, by which the leader finds
    /// what was left behind.
    pub(super) fn content(&self) -> Uuid {
        let since = u64::try_from(self.time().0).unwrap_or_default();
        let random = Uuid::new_v4().as_u128().to_be_bytes();
        let mut last = [0; 10];
        last.iter_mut().zip(random).for_each(|(to, from)| *to = from);
        Builder::from_unix_timestamp_millis(since, &last).into_uuid()
    }

    /// Ends the beats, and the lead with them.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn set_leads(&self, leads: bool, schema: &str) {
        if self.leads.swap(leads, Ordering::Relaxed) != leads {
            tracing::debug!(schema, leads, "the leader has changed");
        }
    }
}

/// Starts the beats.
pub(super) fn start(connections: &Arc<Connections>, pulse: &Arc<Pulse>, schema: &str) {
    let (url, pulse, schema) = (connections.url().clone(), Arc::clone(pulse), schema.to_owned());
    connections.spawn(async move {
        while !pulse.is_stopped.load(Ordering::Relaxed) {
            match connect(&url, &schema, |_| {}).await {
                Ok(client) => {
                    let ended = beats(&client, &pulse, &schema).await;
                    pulse.set_leads(false, &schema);
                    if let Err(error) = ended {
                        tracing::debug!(%error, "the pulse was interrupted");
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "no pulse");
                    pulse.note(false);
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    });
}

async fn beats(client: &Client, pulse: &Pulse, schema: &str) -> Result<(), StoreError> {
    within(ANSWER_MAX, async { client.batch_execute(SILENCE).await.map_err(failed) }).await?;
    while !pulse.is_stopped.load(Ordering::Relaxed) {
        look(client, pulse).await?;
        pulse.note(true);
        if !pulse.leads() {
            let lock = statement! {
                "SELECT pg_try_advisory_lock(hashtextextended('blackboard leader ' || {schema}::text, 0))",
                schema
            };
            pulse.set_leads(within(ANSWER_MAX, lock.value(client)).await?, schema);
        }
        tokio::time::sleep(BEAT).await;
    }
    Ok(())
}

/// Notes the database's time, and the epoch.
pub(super) async fn look(client: &Client, pulse: &Pulse) -> Result<(), StoreError> {
    let time = statement!("SELECT {NOW_MS}, epoch FROM meta WHERE id = 1");
    let before = ms(steady());
    let row = within(ANSWER_MAX, time.row(client)).await?;
    let there: i64 = row.try_get(0).map_err(failed)?;
    let here = before.midpoint(ms(steady()));
    pulse.begins_ms.store(there.saturating_sub(here), Ordering::Relaxed);
    pulse.note_epoch(epoch_of(row.try_get(1).map_err(failed)?)?);
    Ok(())
}
