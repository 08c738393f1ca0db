//! The parts of a base that are no logs: the state, the agents, the keys, and the work on requests.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::change::restore_profile;
use crate::board::{
    Agent, AgentName, Claim, Digest, Done, Json, Remembered, Revision, State, StatePath, Timestamp,
    Work,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredState {
    document: Box<RawValue>,
    /// Of the root and of each member of an object, in the order of the document.
    changed: Vec<Revision>,
    expiries: Vec<(StatePath, Timestamp)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAgent {
    name: AgentName,
    profile: Box<RawValue>,
    registered_at: Timestamp,
    updated_at: Timestamp,
    changed: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredKey {
    key: Box<str>,
    fingerprint: Digest,
    answer: Box<RawValue>,
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum StoredWork {
    Claimed {
        agent: AgentName,
        fence: Revision,
        expires_at: Timestamp,
    },
    Lapsed {
        fence: Revision,
    },
    Done {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<Revision>,
        #[serde(
            default,
            deserialize_with = "super::present",
            skip_serializing_if = "Option::is_none"
        )]
        result: Option<Box<RawValue>>,
    },
}

impl From<&State> for StoredState {
    fn from(state: &State) -> Self {
        Self {
            document: Json::of(&state.text()).raw().to_owned(),
            changed: state.revisions(),
            expiries: state.expiries().map(|(path, at)| (path.clone(), at)).collect(),
        }
    }
}

impl TryFrom<StoredState> for State {
    type Error = Unreadable;

    fn try_from(stored: StoredState) -> Result<Self, Unreadable> {
        let StoredState { document, changed, expiries } = stored;
        Self::restore(document.get(), &changed, expiries).ok_or(Unreadable::State)
    }
}

impl From<(&AgentName, &Agent)> for StoredAgent {
    fn from((name, agent): (&AgentName, &Agent)) -> Self {
        Self {
            name: name.clone(),
            profile: agent.profile.item().raw().to_owned(),
            registered_at: agent.registered_at,
            updated_at: agent.updated_at,
            changed: agent.changed,
            last_seen: agent.last_seen,
        }
    }
}

impl StoredAgent {
    pub(super) fn restore(self) -> Result<(AgentName, Agent), Unreadable> {
        let agent = Agent {
            profile: restore_profile(Cow::Owned(self.profile))?,
            registered_at: self.registered_at,
            updated_at: self.updated_at,
            changed: self.changed,
            last_seen: self.last_seen,
        };
        Ok((self.name, agent))
    }
}

impl From<(&Arc<str>, &Remembered)> for StoredKey {
    fn from((key, remembered): (&Arc<str>, &Remembered)) -> Self {
        Self {
            key: Box::from(&**key),
            fingerprint: remembered.fingerprint,
            answer: remembered.answer.raw().to_owned(),
            at: remembered.at,
        }
    }
}

impl StoredKey {
    pub(super) fn restore(self) -> (Arc<str>, Remembered) {
        let answer = Json::from(self.answer);
        let remembered = Remembered { fingerprint: self.fingerprint, answer, at: self.at };
        (self.key.into(), remembered)
    }
}

impl From<&Work> for StoredWork {
    fn from(work: &Work) -> Self {
        match work.clone() {
            Work::Claimed(Claim { agent, fence, expires_at }) => {
                Self::Claimed { agent, fence, expires_at }
            }
            Work::Lapsed { fence } => Self::Lapsed { fence },
            Work::Done(Done { agent, at, fence, result }) => {
                let result = result.map(|result| result.raw().to_owned());
                Self::Done { agent, at, fence, result }
            }
        }
    }
}

impl From<StoredWork> for Work {
    fn from(stored: StoredWork) -> Self {
        match stored {
            StoredWork::Claimed { agent, fence, expires_at } => {
                Self::Claimed(Claim { agent, fence, expires_at })
            }
            StoredWork::Lapsed { fence } => Self::Lapsed { fence },
            StoredWork::Done { agent, at, fence, result } => {
                Self::Done(Done { agent, at, fence, result: result.map(Json::from) })
            }
        }
    }
}
