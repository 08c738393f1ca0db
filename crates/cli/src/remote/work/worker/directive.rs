//! Directives to the worker's agent: `agents/NAME/paused` and `agents/NAME/stopped` of the state.

use std::convert::Infallible;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::claims::WAIT;
use super::{PAUSE, Worker};
use crate::note;
use crate::remote::refusal::Refusal;
use crate::remote::server::Received;
use blackboard_address::state_url;
use blackboard_board::StatePath;

/// What people ask of the agent at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    /// To work.
    None,
    /// To pause.
    All,
    /// To pause the work on this request.
    Request(u64),
}

/// The agent's values in the state.
#[derive(Default, Deserialize)]
struct Values {
    #[serde(default)]
    paused: Value,
    #[serde(default)]
    stopped: Value,
}

impl Directive {
    fn of(value: &Value) -> Self {
        let request = value.as_object().and_then(|members| members.get("request"));
        match (value, request.and_then(Value::as_u64)) {
            (Value::Null, _) => Self::None,
            (_, Some(request)) => Self::Request(request),
            (_, None) => Self::All,
        }
    }

    fn of_values(values: &Values) -> Self {
        match (Self::of(&values.paused), Self::of(&values.stopped)) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, stopped) => stopped,
            (paused, _) => paused,
        }
    }

    /// Returns true if work on this request shall end.
    pub(super) fn covers(self, seq: u64) -> bool {
        self == Self::All || self == Self::Request(seq)
    }
}

/// Keeps the present directive, as long as the worker runs.
pub(super) async fn follow(worker: &Worker<'_>, direct: &watch::Sender<Directive>) -> Infallible {
    let mut etag = String::new();
    loop {
        match read(worker, &etag).await {
            Ok(Some(received)) => {
                // Anything but an object has neither value.
                let values = received.read::<Values>().unwrap_or_default();
                set(worker, direct, Directive::of_values(&values));
                etag.clone_from(&received.etag);
                if etag.is_empty() {
                    sleep(PAUSE).await;
                }
            }
            Ok(None) => {}
            Err(refusal) if refusal.is_of("condition-not-met") => {
                set(worker, direct, Directive::None);
            }
            Err(refusal) if refusal.is_absence() => {
                set(worker, direct, Directive::None);
                etag.clear();
                sleep(PAUSE).await;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Reads the agent's values once they exist, or once they have changed.
async fn read(worker: &Worker<'_>, etag: &str) -> Result<Option<Received>, Refusal> {
    let path = StatePath::from_segments(["agents", worker.agent.as_str()]);
    // Every name of an agent is a segment of a path.
    let path = path.unwrap_or_else(|_| StatePath::root());
    let address = format!("{}?wait={WAIT}", state_url(&worker.session, &path));
    if etag.is_empty() {
        return worker.server.get(&format!("{address}&until=exists")).await.map(Some);
    }
    worker.server.get_newer(&address, etag).await
}

fn set(worker: &Worker<'_>, direct: &watch::Sender<Directive>, directive: Directive) {
    let is_new = direct.send_if_modified(|present| {
        let is_new = *present != directive;
        *present = directive;
        is_new
    });
    let agent = &worker.agent;
    match directive {
        Directive::None if is_new => note(format_args!("{agent} resumes")),
        Directive::All if is_new => note(format_args!("{agent} is paused")),
        Directive::None | Directive::All | Directive::Request(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_for_all_requests_or_for_one() {
        let of = |text: &str| Directive::of_values(&serde_json::from_str(text).unwrap());
        assert_eq!(of("{}"), Directive::None);
        assert_eq!(of(r#"{"paused":null,"mood":1}"#), Directive::None);
        assert_eq!(of(r#"{"paused":true}"#), Directive::All);
        assert_eq!(of(r#"{"paused":{"request":3},"stopped":true}"#), Directive::All);
        let third = of(r#"{"stopped":{"request":3}}"#);
        assert!(third.covers(3) && !third.covers(4) && Directive::All.covers(4));
    }
}
