//! Questions: let one wait for an answer, answer or skip one.

use crate::intake::fields::is_blank;
use crate::intake::input::inputs;
use crate::intake::kinds::{AnswerText, OnlyTrue};
use crate::refusal::{Refusal, invalid_field};
use blackboard_board::{Command, QuestionCommand, Seq, Ttl};

inputs! {
    /// An answer, or a skip: exactly one of the two.
    Answering as "NewAnswerBody" one_of {
        /// The answer, not blank.
        answer "answer": AnswerText,
        /// Skip the question: it will never have an answer
        skip "skip": OnlyTrue,
    }
}

impl Answering {
    /// Returns the command that answers or skips a question.
    pub fn of(self, question: Seq) -> Result<Command, Refusal> {
        let command = match (self.answer, self.skip) {
            (Some(answer), None) => QuestionCommand::Answer { answer },
            (None, Some(())) => QuestionCommand::Skip,
            (Some(_), Some(())) => {
                let why = "send either 'answer' or 'skip', not both";
                return Err(invalid_field("/skip".to_owned(), why));
            }
            (None, None) => {
                return Err(invalid_field(String::new(), "expected 'answer' or 'skip'"));
            }
        };
        Ok(Command::Question(question, command))
    }
}

/// The time that questions wait, and their answer after it.
pub struct Waiting {
    pub(crate) ttl: Ttl,
    pub(crate) default: Option<String>,
}

impl Waiting {
    /// Returns how questions wait: without a time, for ever. A refusal says what is wrong with the answer.
    pub fn of(ttl: Option<Ttl>, default: Option<String>) -> Result<Option<Self>, &'static str> {
        match (ttl, default) {
            (_, Some(default)) if is_blank(&default) => Err("must not be blank"),
            (Some(ttl), default) => Ok(Some(Self { ttl, default })),
            (None, Some(_)) => Err("needs 'expires'"),
            (None, None) => Ok(None),
        }
    }
}
