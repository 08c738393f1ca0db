//! Player of the recorded example run: one call after another, each by its agent.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use crate::remote::refusal::Refusal;
use crate::remote::repeat::Key;
use crate::remote::server::{Received, Server, Write};
use blackboard_address::segment;
use blackboard_board::{AgentName, SessionName};

/// The calls in their order, a line each; `record.mjs` makes them, and describes their members.
pub(super) const RECORDING: &str = include_str!("recording.ndjson");

/// The longest time for which a server may be away, as for a restart.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// The pause before a call is repeated whose server is away.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The pauses for which a person has time to answer.
const ANSWER_PAUSES: u32 = 8;

/// The longest time for which a person has time to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A call of the recording.
#[derive(Deserialize)]
struct Call<'a> {
    agent: Option<AgentName>,
    method: &'a str,
    path: &'a str,
    /// Absent for a read.
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    /// Names for values of the answer that later calls contain, each with its JSON pointer.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// The code of a refusal that does not end the run.
    unless: Option<&'a str>,
}

/// A run of the recording in a session.
pub(super) struct Player<'a> {
    server: &'a Server,
    /// The time between two calls.
    pub(super) pause: Duration,
    values: BTreeMap<String, Value>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        server: &'a Server,
        session: &SessionName,
        draft: &SessionName,
        time: Duration,
    ) -> Self {
        let calls = u32::try_from(RECORDING.lines().count()).unwrap_or(u32::MAX);
        let pause = time / calls.saturating_add(ANSWER_PAUSES);
        let answer_ms = (pause * ANSWER_PAUSES).min(ANSWER_TIME_MAX).as_millis().max(1);
        let values = [
            ("session", session.as_str().to_owned()),
            ("draft", draft.as_str().to_owned()),
            ("time", format!("{answer_ms}ms")),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.into())).into();
        Self { server, pause, values }
    }

    /// Makes the call of a line, and keeps values of its answer.
    pub(super) async fn play(&mut self, line: &str) -> Result<(), Refusal> {
        let call: Call<'_> = serde_json::from_str(line).map_err(Refusal::Recording)?;
        let answer = match self.exchange(&call).await {
            Err(Refusal::Refused { name, .. }) if call.unless == Some(&name) => return Ok(()),
            answer => answer?,
        };
        for (name, pointer) in call.keep {
            if let Some(value) = answer.read::<Value>()?.pointer(&pointer) {
                self.values.insert(name, value.clone());
            }
        }
        Ok(())
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Received, Refusal> {
        let address = self.filled(call.path, |name, value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (format!("<{name}>"), segment(&text).to_string())
        });
        let Some(body) = call.body else {
            return through(async || self.server.get(&address).await).await;
        };
        let body =
            self.filled(body.get(), |name, value| (format!("\"<{name}>\""), value.to_string()));
        let method = Method::from_bytes(call.method.as_bytes())
            .map_err(|error| Refusal::Recording(serde_json::Error::custom(error)))?;
        let (write, key) = (Write::json(method, address, body), Key::new());
        through(async || self.server.write_by(write.clone(), &key, call.agent.as_ref()).await).await
    }

    /// Replaces the names of values by the values.
    fn filled(&self, text: &str, forms: impl Fn(&str, &Value) -> (String, String)) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| {
            let (name, value) = forms(name, value);
            text.replace(&name, &value)
        })
    }
}

/// Repeats an exchange while the server is away.
pub(super) async fn through(
    exchange: impl AsyncFn() -> Result<Received, Refusal>,
) -> Result<Received, Refusal> {
    let end = Instant::now() + AWAY_MAX;
    loop {
        match exchange().await {
            Err(refusal) if refusal.is_passing() && Instant::now() < end => {
                sleep(RETRY_PAUSE).await;
            }
            done => return done,
        }
    }
}
