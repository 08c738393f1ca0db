//! Hints: which sessions another server has just changed, told after the commit on a connection of their own.
//!
//! A hint may be lost, so readers look by themselves too. Nothing is told within a transaction: that would make all
//! commits of the database wait for each other.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use super::connection::{Connections, connect};
use super::error::failed;
use crate::{Hint, StoreError};

/// The number of names that wait to be told.
const NAMES_MAX: usize = 10_000;

/// The bytes of one message; PostgreSQL takes less than 8,000.
const MESSAGE_BYTES_MAX: usize = 7_000;

/// The time between two tries to connect.
const RETRY: Duration = Duration::from_millis(200);

/// The longest time without a message, after which the connection is checked.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The hints of one server.
#[derive(Clone, Debug)]
pub(super) struct Hints(Arc<Inner>);

struct Inner {
    schema: String,
    channel: String,
    /// By which a server knows its own messages.
    origin: String,
    waiting: Mutex<HashSet<Vec<u8>>>,
    added: Notify,
    hear: OnceLock<Box<dyn Fn(Hint) + Send + Sync>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl Hints {
    pub(super) fn new(schema: &str) -> Self {
        Self(Arc::new(Inner {
            schema: schema.to_owned(),
            channel: format!("blackboard_{schema}"),
            origin: Uuid::new_v4().simple().to_string(),
            waiting: Mutex::default(),
            added: Notify::new(),
            hear: OnceLock::new(),
        }))
    }

    /// Calls `hear` at each hint from now on. Only the first caller hears.
    pub(super) fn on_hint(&self, hear: Box<dyn Fn(Hint) + Send + Sync>) {
        // A second listener would be a mistake of the caller.
        self.0.hear.set(hear).ok();
    }

    /// Tells other servers that these sessions have changed. Names beyond the limit are not told.
    pub(super) fn tell(&self, names: impl Iterator<Item = Vec<u8>>) {
        let mut waiting = self.0.waiting.lock();
        let room = NAMES_MAX.saturating_sub(waiting.len());
        waiting.extend(names.take(room));
        let is_some = !waiting.is_empty();
        drop(waiting);
        if is_some {
            self.0.added.notify_one();
        }
    }

    /// Starts to tell and to hear.
    pub(super) fn start(&self, connections: &Arc<Connections>) {
        let (url, hints) = (connections.url().clone(), self.clone());
        connections.spawn(async move {
            loop {
                let heard = hints.clone();
                match connect(&url, &hints.0.schema, move |message| heard.hear(message)).await {
                    Ok(client) => {
                        if let Err(error) = hints.serve(&client).await {
                            tracing::debug!(%error, "hints were interrupted");
                        }
                    }
                    Err(error) => tracing::debug!(%error, "no hints"),
                }
                tokio::time::sleep(RETRY).await;
            }
        });
    }

    async fn serve(&self, client: &Client) -> Result<(), StoreError> {
        let Inner { channel, .. } = &*self.0;
        // A hint is a commit too, which would wait for the disk and for standbys; this connection stores nothing.
        let listen = format!("SET synchronous_commit = off; LISTEN \"{channel}\"");
        client.batch_execute(&listen).await.map_err(failed)?;
        // Hints of the time before are lost.
        self.tell_listener(Hint::Lost);
        let notify = client.prepare("SELECT pg_notify($1, $2)").await.map_err(failed)?;
        loop {
            for message in self.messages() {
                client.execute(&notify, &[channel, &message]).await.map_err(failed)?;
            }
            if tokio::time::timeout(SILENCE_MAX, self.0.added.notified()).await.is_err() {
                client.batch_execute("").await.map_err(failed)?;
            }
        }
    }

    /// Takes out the names that wait.
    fn messages(&self) -> Vec<String> {
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        let mut messages = Vec::new();
        let mut message = self.0.origin.clone();
        for name in waiting.iter().filter_map(|name| std::str::from_utf8(name).ok()) {
            if message.len() + 1 + name.len() > MESSAGE_BYTES_MAX {
                messages.push(std::mem::replace(&mut message, self.0.origin.clone()));
            }
            message.push('\n');
            message.push_str(name);
        }
        if message.len() > self.0.origin.len() {
            messages.push(message);
        }
        messages
    }

    fn hear(&self, message: AsyncMessage) {
        let AsyncMessage::Notification(notification) = message else { return };
        let mut lines = notification.payload().split('\n');
        if lines.next() != Some(&self.0.origin) {
            self.tell_listener(Hint::Changed(lines.map(|name| name.as_bytes().to_vec()).collect()));
        }
    }

    fn tell_listener(&self, hint: Hint) {
        if let Some(hear) = self.0.hear.get() {
            hear(hint);
        }
    }
}
