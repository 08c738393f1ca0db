//! A commit and its changes, as an event tells them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::remote::refusal::Refusal;

/// A commit.
#[derive(Debug, Deserialize)]
pub(super) struct Commit<'a> {
    pub(super) revision: u64,
    #[serde(borrow)]
    pub(super) at: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) changes: Vec<Change<'a>>,
}

/// A change; its kind says which members it has.
#[derive(Debug, Deserialize)]
pub(super) struct Change<'a> {
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) log: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) entries: Option<Vec<Appended<'a>>>,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    pub(super) count: Option<u64>,
    pub(super) ranges: Option<Vec<(u64, u64)>>,
    pub(super) seq: Option<u64>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) patch: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) elements: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) agent: Option<Cow<'a, str>>,
    pub(super) request: Option<u64>,
    /// Ranges of requests whose time has come.
    pub(super) requests: Option<Vec<(u64, u64)>>,
    /// The verdict on a result.
    pub(super) accept: Option<bool>,
    pub(super) question: Option<u64>,
    pub(super) fence: Option<u64>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reason: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    /// The revision that was restored.
    pub(super) to: Option<u64>,
    #[serde(borrow)]
    pub(super) fork_of: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) sha256: Option<Cow<'a, str>>,
}

/// An appended entry.
#[derive(Debug, Deserialize)]
pub(super) struct Appended<'a> {
    pub(super) seq: u64,
    #[serde(borrow)]
    pub(super) item: &'a RawValue,
}

/// The members of a question's item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Question<'a> {
    #[serde(borrow)]
    pub(super) question: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) answer: Option<&'a RawValue>,
    pub(super) skipped: bool,
    pub(super) expired: bool,
}

impl<'a> Commit<'a> {
    pub(super) fn read(data: &'a str) -> Result<Self, Refusal> {
        serde_json::from_str(data).map_err(Refusal::Event)
    }
}

impl<'a> Question<'a> {
    /// Reads an item; members of other types are none of a question.
    pub(super) fn read(item: &'a RawValue) -> Self {
        serde_json::from_str(item.get()).unwrap_or_default()
    }

    /// Returns the question's text.
    pub(super) fn asked(&self) -> Option<&str> {
        self.question.as_deref().or(self.text.as_deref())
    }

    /// Returns true if the question is not open any more.
    pub(super) const fn is_ended(&self) -> bool {
        self.answer.is_some() || self.skipped || self.expired
    }

    /// Returns the answer, or the reason why there is none.
    pub(super) fn end(&self) -> String {
        let answer = self.answer.map(RawValue::get).filter(|answer| *answer != "null");
        match (answer, self.skipped) {
            (Some(answer), _) if self.expired => format!("expired: {answer}"),
            (Some(answer), _) => answer.to_owned(),
            (None, true) => "skipped".to_owned(),
            (None, false) => "expired".to_owned(),
        }
    }
}
