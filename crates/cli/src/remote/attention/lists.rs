//! The lists of an agent's attention, as the server sends them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The kinds of things that wait, in the order in which a model reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Cancellations of requests that the agent holds
    Cancels,
    /// Messages that the agent has not acknowledged
    Messages,
    /// Answers to questions that the agent asked
    Answers,
    /// Requests that wait for a review
    Reviews,
    /// Requests that can be claimed
    Claimable,
}

impl Kind {
    /// Returns the name of the list.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cancels => "cancels",
            Self::Messages => "messages",
            Self::Answers => "answers",
            Self::Reviews => "reviews",
            Self::Claimable => "claimable",
        }
    }

    /// Returns the name of one thing of the list.
    pub(crate) const fn one(self) -> &'static str {
        match self {
            Self::Cancels => "cancel",
            Self::Messages => "message",
            Self::Answers => "answer",
            Self::Reviews => "review",
            Self::Claimable => "claimable",
        }
    }
}

/// An answer to a look at an agent's attention, with entries in this form.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "Entry: Deserialize<'de>"))]
pub(crate) struct Lists<Entry> {
    messages: Option<List<Entry>>,
    claimable: Option<List<Entry>>,
    answers: Option<List<Entry>>,
    cancels: Option<List<Entry>>,
    reviews: Option<List<Entry>>,
    #[serde(default)]
    pub(crate) paused: bool,
    pub(crate) next: u64,
}

/// A list: how many things wait, and the newest of them.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct List<Entry> {
    pub(crate) count: u64,
    pub(crate) newest: Vec<Entry>,
}

impl<Entry> Lists<Entry> {
    /// Returns a list, unless it was left out.
    pub(crate) const fn list(&self, kind: Kind) -> Option<&List<Entry>> {
        match kind {
            Kind::Cancels => self.cancels.as_ref(),
            Kind::Messages => self.messages.as_ref(),
            Kind::Answers => self.answers.as_ref(),
            Kind::Reviews => self.reviews.as_ref(),
            Kind::Claimable => self.claimable.as_ref(),
        }
    }
}

impl<Entry> List<Entry> {
    /// Returns how many things wait that are older than those of the list.
    pub(crate) const fn hidden(&self) -> u64 {
        self.count.saturating_sub(self.newest.len() as u64)
    }
}
