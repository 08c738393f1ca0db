//! The things that an agent of the demonstration can do.

use super::picture::Picture;

/// A thing that an agent does, in one commit.
#[derive(Debug)]
pub(super) enum Deed {
    /// Registers itself.
    Register { kind: &'static str, host: &'static str, device: &'static str },
    /// Changes its status.
    Status(&'static str),
    /// Sets values of the state.
    Facts(&'static [Fact]),
    /// Asks for work.
    Request(Request),
    /// Claims a request.
    Claim(&'static str),
    /// Finishes the request that it has claimed, with this JSON as its result.
    Finish(&'static str, &'static str),
    /// Ends its claim without success, with this JSON as the reason.
    Fail(&'static str, &'static str),
    /// Takes a step, which its memory keeps too.
    Step(Step),
    /// Takes a screenshot.
    Screenshot { picture: Picture, application: &'static str, reason: &'static str },
    /// Asks a person.
    Ask(Question),
    /// Waits for the answer to its question, and gives the default if nobody answered.
    Await { question: &'static str, fact: &'static str },
    /// Names the present revision.
    Checkpoint(&'static str),
    /// Starts another session from a checkpoint, with a fact of its own.
    Fork { checkpoint: &'static str, fact: Fact },
}

/// A path of the state with its value, which is JSON.
pub(super) type Fact = (&'static str, &'static str);

/// A request; others name it by its key.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) key: &'static str,
    pub(super) text: &'static str,
    pub(super) agent: &'static str,
    pub(super) application: &'static str,
    pub(super) after: &'static [&'static str],
    pub(super) attempts: u32,
}

/// A question; others name it by its key.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: &'static str,
    pub(super) text: &'static str,
    pub(super) options: &'static [&'static str],
    pub(super) default: &'static str,
    pub(super) expires: &'static str,
}

/// A step of an agent.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) subtask: &'static str,
    pub(super) observation: &'static str,
    pub(super) thought: &'static str,
    pub(super) action: &'static str,
    /// The agent's status after the step.
    pub(super) status: &'static str,
    /// In dollars.
    pub(super) cost: f64,
    /// In seconds.
    pub(super) duration: f64,
    pub(super) facts: &'static [Fact],
}
