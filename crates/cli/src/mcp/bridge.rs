//! The bridge: lines of the host to the server, and messages of the server to the host.
//!
//! Requests are open side by side. `initialize`, notifications and answers are sent in order with what follows them:
//! the next line is read once the server has them.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::{AbortHandle, Id as TaskId, JoinSet};
use tokio::time::timeout;

use super::channel::{self, DISCOVER, INITIALIZED};
use super::endpoint::{Call, Endpoint, Output, put};
use super::failure::SERVER_ERROR;
use super::headers;
use super::lines::{LINE_BYTES_MAX, Line, Lines};
use super::message::{
    INVALID_REQUEST, Id, Malformed, Message, PARSE_ERROR, Params, RpcError, error_text,
};
use crate::remote::Arrivals;

/// The maximum number of requests that are sent to the server at once; further ones wait.
const SENT_MAX: usize = 64;

/// The maximum number of requests that are open, those that wait included.
const OPEN_MAX: usize = 1_024;

/// The maximum size of the lines of all open requests together, in bytes.
const OPEN_BYTES_MAX: usize = 128 << 20;

/// The maximum number of messages that wait for the host to read them.
const OUTPUT_WAITING_MAX: usize = 16;

/// The size of the buffer of standard input, in bytes.
const INPUT_BUFFER: usize = 64 << 10;

/// The time that the server has to take a notification before the next line is sent.
const NOTIFICATION_MAX: Duration = Duration::from_secs(10);

/// The time that open requests have after the end of the input.
const GRACE_MAX: Duration = Duration::from_secs(10);

/// The time that the host has to read the last messages.
const OUTPUT_END_MAX: Duration = Duration::from_secs(1);

/// The error code of a fault of the bridge's own.
const INTERNAL_ERROR: i32 = -32603;

/// The state of the bridge.
pub(super) struct Bridge {
    endpoint: Arc<Endpoint>,
    output: Output,
    places: Arc<Semaphore>,
    calls: JoinSet<()>,
    /// What waits for the agent, until the host takes it.
    arrivals: Option<Arrivals>,
    has_channel: bool,
    /// The task that sends it, which ends with the bridge.
    channel: JoinSet<()>,
    open: HashMap<TaskId, Open>,
    open_bytes: usize,
    /// The version that `initialize` agreed on.
    negotiated: Option<String>,
}

/// A request without its response.
struct Open {
    id: Id,
    key: String,
    bytes: usize,
    call: AbortHandle,
}

impl Bridge {
    /// Passes messages on until the input ends, the output is closed, or `stop` is ready.
    pub(super) async fn run(
        endpoint: Endpoint,
        arrivals: Option<Arrivals>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel(OUTPUT_WAITING_MAX);
        let bridge = Self {
            endpoint: Arc::new(endpoint),
            output: sender,
            places: Arc::new(Semaphore::new(SENT_MAX)),
            calls: JoinSet::new(),
            has_channel: arrivals.is_some(),
            arrivals,
            channel: JoinSet::new(),
            open: HashMap::new(),
            open_bytes: 0,
            negotiated: None,
        };
        let input = BufReader::with_capacity(INPUT_BUFFER, input);
        let mut writing = pin!(write(output, receiver));
        let read = tokio::select! {
            read = bridge.read(input) => read,
            () = stop => Ok(()),
            written = &mut writing => return written,
        };
        // The last sender is gone with the bridge, so this ends once everything is written.
        let written = timeout(OUTPUT_END_MAX, writing).await.unwrap_or(Ok(()));
        read.and(written)
    }

    async fn read(mut self, input: impl AsyncBufRead + Unpin) -> io::Result<()> {
        let mut lines = Lines::new(input, LINE_BYTES_MAX);
        loop {
            tokio::select! {
                line = lines.next() => match line? {
                    Some(Line::Text(line)) => self.take(line).await,
                    Some(Line::TooLong) => self.refuse_long_line().await,
                    None => break,
                },
                Some(ended) = self.calls.join_next_with_id() => {
                    match ended {
                        Ok((task, ())) => self.close(task, false).await,
                        Err(why) => self.close(why.id(), why.is_panic()).await,
                    }
                }
            }
        }
        let ended = async { while self.calls.join_next().await.is_some() {} };
        if timeout(GRACE_MAX, ended).await.is_err() {
            tracing::warn!("the input ended 10 s ago; requests that are still open are cancelled");
        }
        Ok(())
    }

    async fn take(&mut self, line: Bytes) {
        let message = match Message::read(&line) {
            Ok(message) => message,
            Err(why) => return self.refuse_line(why).await,
        };
        let headers = headers::of(&message, self.negotiated.as_deref());
        match message {
            Message::Request { id, method, .. } => {
                let call = Call { id, headers, body: line };
                if method == "initialize" {
                    self.initialize(call).await;
                } else if method == DISCOVER && self.has_channel {
                    put(&self.output, channel::undiscovered(&call.id)).await;
                } else {
                    self.open(call).await;
                }
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                self.cancel(&params);
            }
            Message::Notification { method, .. } => {
                self.tell(headers, line).await;
                if method == INITIALIZED
                    && let Some(arrivals) = self.arrivals.take()
                {
                    self.channel.spawn(channel::run(arrivals, self.output.clone()));
                }
            }
            Message::Answer { .. } => self.tell(headers, line).await,
        }
    }

    async fn initialize(&mut self, call: Call) {
        let shown = if self.has_channel { channel::declared } else { |response| response };
        self.negotiated = self.endpoint.initialize(call, &self.output, shown).await;
    }

    async fn open(&mut self, call: Call) {
        let (id, bytes) = (call.id.clone(), call.body.len());
        if self.open.len() >= OPEN_MAX || self.open_bytes + bytes > OPEN_BYTES_MAX {
            let message =
                "1,024 requests or 128 MiB of them are open; try again when some are answered";
            return self.refuse(Some(&id), SERVER_ERROR, message).await;
        }
        let (endpoint, output) = (Arc::clone(&self.endpoint), self.output.clone());
        let places = Arc::clone(&self.places);
        let call = self.calls.spawn(async move {
            // Nobody closes the semaphore.
            let _place = places.acquire().await;
            endpoint.call(call, &output).await;
        });
        self.open_bytes += bytes;
        self.open.insert(call.id(), Open { key: id.key(), id, bytes, call });
    }

    /// Drops a request with its connection, which ends the call at the server; nothing more is written of it.
    fn cancel(&self, params: &Params) {
        let Some(key) = params.request_id.as_ref().map(Id::key) else { return };
        self.open.values().filter(|open| open.key == key).for_each(|open| open.call.abort());
    }

    async fn tell(&self, headers: HeaderMap, line: Bytes) {
        if timeout(NOTIFICATION_MAX, self.endpoint.tell(headers, line)).await.is_err() {
            tracing::warn!("the server did not accept a notification within 10 s");
        }
    }

    /// Forgets a request that has ended. A host may have used its id again by then.
    async fn close(&mut self, task: TaskId, has_panicked: bool) {
        let Some(open) = self.open.remove(&task) else { return };
        self.open_bytes -= open.bytes;
        if has_panicked {
            self.refuse(Some(&open.id), INTERNAL_ERROR, "the bridge failed").await;
        }
    }

    async fn refuse_line(&self, why: Malformed) {
        let code = match why {
            Malformed::Json => PARSE_ERROR,
            Malformed::Message => INVALID_REQUEST,
        };
        self.refuse(None, code, &why.to_string()).await;
    }

    async fn refuse_long_line(&self) {
        let most = LINE_BYTES_MAX >> 20;
        self.refuse(None, PARSE_ERROR, &format!("the line has more than {most} MiB")).await;
    }

    async fn refuse(&self, id: Option<&Id>, code: i32, message: &str) {
        tracing::warn!("{message}");
        let error = RpcError { code, message, data: None::<()> };
        put(&self.output, error_text(id, error)).await;
    }
}

/// Writes messages, a line each, until no more can come.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut messages: Receiver<String>,
) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let written = async {
            output.write_all(line(message).as_bytes()).await?;
            output.flush().await
        };
        match written.await {
            // The host closed the pipe: it has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

/// Returns a message as one line. Line ends of JSON text are between its tokens, where a space means the same.
fn line(mut message: String) -> String {
    if message.contains(['\n', '\r']) {
        message = message.replace(['\n', '\r'], " ");
    }
    message.push('\n');
    message
}

#[cfg(test)]
mod tests;
